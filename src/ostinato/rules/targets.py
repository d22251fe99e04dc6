"""What is to happen when a rule matches or a gate opens: one of five things each, as data.

All values are templates, filled in when the target fires. So a definition is checked as far as its values are known
before: names and required fields always, types and ranges where there is no expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from ostinato import errors
from ostinato.core import documents, graph
from ostinato.rules import templates

MOST_TARGETS = 10
MOST_TASKS = 10_000
"""Of a job that is written out; an expression may give more."""
LONGEST_KEY = 256
MOST_HEADERS = 50
SECRET = re.compile(r"secret://[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


class GateTarget(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Report to a gate."""

    name: str
    key: str
    member: str
    data: dict[str, Any] | str = {}
    status: str | None = None
    correlation_id: str | None = None


class SignalTarget(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Send a signal to a job."""

    job_id: str
    name: str
    payload: Any = None


class WebhookTarget(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Call an address. `secret` signs the call, and is given by reference: `secret://NAME`. Without a body of its own,
    the call carries what the target was fired with."""

    url: str
    secret: str | None = None
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET


class Target(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one of these is given."""

    job: dict[str, Any] | None = None
    gate: GateTarget | None = None
    signal: SignalTarget | None = None
    index: dict[str, Any] | None = None
    webhook: WebhookTarget | None = None

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if getattr(self, name) is not None)


KINDS: tuple[str, ...] = Target.__struct_fields__


def read(given: Any, field: str, *, least: int = 1) -> list[Target]:
    """The checked targets of a rule or gate; `field` is where the list stands."""
    items = documents.as_list(given, field, least, MOST_TARGETS)
    return [_read(item, f"{field}[{index}]") for index, item in enumerate(items)]


def expressions(targets: Sequence[Target], field: str) -> Iterator[tuple[str, str]]:
    """Every expression in the targets, with the path of its field."""
    return templates.expressions(msgspec.to_builtins(targets), field)


def check_name(value: str, field: str) -> None:
    """Refuse what cannot be the name of a rule or gate."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.InvalidInput(
            f"{field} {documents.short(value)} is not a valid name: use 1 to 128 letters, digits, . _ or -, "
            "starting with a letter or digit",
            field=field,
        )


def check_key(value: Any, field: str) -> None:
    """Refuse what cannot be the business key of a gate."""
    documents.check_text(value, field, LONGEST_KEY)


def check_status(value: Any, field: str) -> None:
    """Refuse what cannot be the status of an arrival."""
    if not isinstance(value, str) or not 1 <= len(value) <= 64 or not value.isprintable():
        raise errors.InvalidStatus(
            f"{field} must be a text of 1 to 64 characters like 'success', not {documents.short(value)}", field=field
        )


def check_url(value: str, field: str) -> None:
    """The form of the address only; where it leads is asked when it is called."""
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or not value.isprintable():
        raise errors.InvalidInput(f"{field} must be an address like https://example.com/hook", field=field)
    if parts.username is not None or parts.password is not None:
        raise errors.InvalidInput(f"{field} must not have a user or password in it: sign with `secret`", field=field)


def check_secret(value: str, field: str) -> None:
    """Refuse a secret itself where a reference to one belongs; the message does not repeat what was given."""
    if not SECRET.fullmatch(value):
        raise errors.InvalidInput(
            f"{field} must be a reference of the form secret://NAME: a definition is shown to those who may read it",
            field=field,
        )


def _read(document: Any, field: str) -> Target:
    given = {name: value for name, value in documents.check_names(document, Target, field).items() if value is not None}
    if len(given) != 1:
        what = f"has {' and '.join(given)}" if given else "says nothing"
        raise errors.InvalidInput(f"{field} {what}: a target is exactly one of {', '.join(KINDS)}", field=field)
    templates.check(given, field)
    [(kind, value)] = given.items()
    return msgspec.structs.replace(Target(), **{kind: _READERS[kind](value, f"{field}.{kind}")})


def _job(given: Any, field: str) -> dict[str, Any]:
    document = _check_shape(given, graph.JobSpec, field)
    tasks = document["tasks"]
    if not templates.is_template(tasks):
        for index, task in enumerate(documents.as_list(tasks, f"{field}.tasks", 1, MOST_TASKS)):
            if not templates.is_template(task):
                _check_shape(task, graph.TaskSpec, f"{field}.tasks[{index}]")
    if not templates.has_expressions(document):
        try:
            graph.read_job(document)
        except errors.InvalidInput as error:
            where = documents.join(field, str(error.details.get("field", "tasks")))
            raise type(error)(f"{field}: {error.message}", **(error.details | {"field": where})) from None
    return document


def _gate(document: Any, field: str) -> GateTarget:
    target = documents.read(document, GateTarget, field)
    _literal(target.name, f"{field}.name", check_name)
    _literal(target.key, f"{field}.key", check_key)
    _literal(target.member, f"{field}.member", graph.check_id)
    _literal(target.correlation_id, f"{field}.correlationId", graph.check_id)
    _literal(target.status, f"{field}.status", check_status)
    if isinstance(target.data, str) and not templates.is_template(target.data):
        raise errors.InvalidInput(
            f"{field}.data must be an object, or an expression that gives one: {{% … %}}", field=f"{field}.data"
        )
    return target


def _signal(document: Any, field: str) -> SignalTarget:
    target = documents.read(document, SignalTarget, field)
    _literal(target.job_id, f"{field}.jobId", graph.check_id)
    _literal(target.name, f"{field}.name", graph.check_name)
    return target


def _index(document: Any, field: str) -> dict[str, Any]:
    given = documents.as_object(document, field)
    for name in ("executionArn", "stateMachineArn", "status", "startDate"):
        if name not in given:
            raise errors.InvalidInput(f"{field}.{name} is missing: the index needs it", field=f"{field}.{name}")
    return given


def _webhook(document: Any, field: str) -> WebhookTarget:
    target = documents.read(document, WebhookTarget, field)
    _literal(target.url, f"{field}.url", check_url)
    if target.secret is not None:
        check_secret(target.secret, f"{field}.secret")
    if len(target.headers) > MOST_HEADERS:
        raise errors.InvalidInput(f"{field}.headers has more than {MOST_HEADERS} headers", field=f"{field}.headers")
    for name, value in target.headers.items():
        if not _HEADER.fullmatch(name) or not value.isprintable():
            raise errors.InvalidInput(
                f"{field}.headers: {documents.short(name)} is not a valid header: its name must be a token like "
                "X-Name, and its value printable",
                field=f"{field}.headers",
            )
    return target


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "job": _job,
    "gate": _gate,
    "signal": _signal,
    "index": _index,
    "webhook": _webhook,
}


def _check_shape(given: Any, kind: type[msgspec.Struct], field: str) -> dict[str, Any]:
    """Check names, and the types of the values that are known before the target fires; those of tasks come after."""
    document = documents.check_names(given, kind, field)
    for part in documents.fields_of(kind):
        name = part.encode_name
        if name in document and name != "tasks" and not templates.has_expressions(document[name]):
            documents.check_type(document[name], part.type, f"{field}.{name}")
    return document


def _literal(value: str | None, field: str, check: Callable[[str, str], object]) -> None:
    """Check a value that is no expression."""
    if value is not None and not templates.is_template(value):
        check(value, field)


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts
