"""`ostinato gates`: define them, see who has reported and who is missing, report, open them and begin anew."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import definitions, output
from ostinato.cli.asking import Yes
from ostinato.cli.definitions import Name
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.cli import applying
    from ostinato.gates import status as status_
    from ostinato.reactions import gates as gates_

group = typer.Typer(
    cls=Group, help="Define gates, see who is missing, report, open and reset them.", no_args_is_help=True
)

SHOWN_KEYS = 10
Key = Annotated[str, typer.Argument(metavar="KEY", help="The business key, like 2025-11-29.", show_default=False)]
MemberName = Annotated[str, typer.Argument(metavar="MEMBER", help="Who reports.", show_default=False)]
Why = Annotated[str, typer.Option("--reason", help="Why, for the history.", metavar="TEXT", show_default=False)]
CorrelationId = Annotated[
    str | None, typer.Option("--correlation-id", help="What it belongs to.", metavar="ID", show_default=False)
]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="gates")


def _cells(gate: dict[str, Any]) -> list[str]:
    members: Any = gate["members"]
    expects = "at run time" if isinstance(members, str) else f"{len(members):,}"
    triggers = ", ".join(kind for target in gate.get("trigger", []) for kind in target)
    return [expects, gate.get("key", ""), triggers or "nothing"]


def _shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.gates.shelf


KIND = definitions.Kind("gate", _shelf, ["members", "key", "triggers"], _cells)
definitions.register(group, KIND)


@contextlib.asynccontextmanager
async def _opened(settings: Settings, name: str, key: str = "") -> AsyncGenerator[tuple[app_.Ostinato, gates_.Gate]]:
    """The gate. What is not there is told with what may have been meant."""
    from ostinato import errors
    from ostinato.cli import session
    from ostinato.core import documents

    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        gate = app.gate(name)
        try:
            yield app, gate
        except errors.GateKeyNotFound as error:
            keys = [found.key for found in await gate.keys()]  # or the gate itself is not there
            hint = documents.nearest(key, keys).strip()
            if not hint and keys:
                hint = f"the last keys are {documents.listed(keys)}"
            message = error.message + (f": {hint}" if hint else "")
            raise errors.GateKeyNotFound(message, **error.details) from None


# --- looking ------------------------------------------------------------------------------------------------------


@command(group, "show")
async def show(
    settings: Settings,
    name: Name,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="A business key: how it stands.", show_default=False)
    ] = None,
) -> None:
    """Show a gate and its last keys, or how it stands for one key."""
    from ostinato.cli import gate_views, session

    async with _opened(settings, name, key or "") as (app, gate):
        if key is not None:
            found = await gate.status(key)
            output.document(found) if settings.json else gate_views.show_status(found, session.now(app))
            return
        stored = await app.gates.shelf.stored(name)
        keys = await _standing(gate, None, SHOWN_KEYS)
        now = session.now(app)
    if settings.json:
        output.document(definitions.document(stored) | {"keys": keys})
        return
    output.say(output.pretty(definitions.content(stored)))
    output.say("")
    gate_views.show_keys(keys, now)


@command(group, "keys")
async def keys(
    settings: Settings,
    name: Name,
    before: Annotated[
        str | None, typer.Option("--before", help="Only keys before this one.", metavar="KEY", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 20,
) -> None:
    """List the keys that somebody has reported for, the last ones first, and how they stand."""
    from ostinato.cli import gate_views, session

    async with _opened(settings, name) as (app, gate):
        found = await _standing(gate, before, limit)
        now = session.now(app)
    more = found[-1].key if len(found) == limit else None
    if settings.json:
        output.document({"gate": name, "keys": found, "before": more})
        return
    gate_views.show_keys(found, now)
    if more is not None:
        output.note(f"more: --before {more}")


async def _standing(gate: gates_.Gate, before: str | None, most: int) -> list[status_.Status]:
    return [await gate.status(found.key) for found in await gate.keys(before=before, most=most)]


@command(group, "missing")
async def missing(settings: Settings, name: Name, key: Key) -> int:
    """Name those who have not reported, one to a line. The exit code is 0 if nobody is missing, and 1 otherwise.

    It is 3 if nobody at all has reported for the key."""
    from ostinato.cli import failures

    async with _opened(settings, name, key) as (_, gate):
        found = await gate.status(key)
    if settings.json:
        output.document({"gate": name, "key": key, "status": found.status, "missing": found.missing})
    for member in found.missing if not settings.json else ():
        output.say(member)
    return failures.FAILED if found.missing else failures.OK


# --- reporting ----------------------------------------------------------------------------------------------------


@command(group, "arrive")
async def arrive(
    settings: Settings,
    name: Name,
    key: Key,
    member: MemberName,
    data: Annotated[
        str | None, typer.Option("--data", help="What it reports: an object.", metavar="JSON", show_default=False)
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="How it went, like success.", metavar="TEXT", show_default=False)
    ] = None,
    correlation_id: CorrelationId = None,
) -> None:
    """Report to a gate in the name of a member. A report that was made before changes nothing."""
    from ostinato.cli import loading

    given = None if data is None else loading.value(data, "--data")
    async with _opened(settings, name, key) as (_, gate):
        answer = await gate.arrive(key, member, given, status=status, correlation_id=correlation_id)
        sentence = (await gate.status(key)).sentence
    if settings.json:
        output.document({"gate": name, "key": key, "member": member, "answer": answer})
    else:
        output.say(f"{_OUTCOMES[answer.outcome]}: {member}. {sentence}")


_OUTCOMES = {
    "arrived": "arrived",
    "failed": "reported as failed",
    "duplicate": "had reported before",
    "late": "too late, and recorded as such",
}


@command(group, "freeze")
async def freeze(
    settings: Settings,
    name: Name,
    key: Key,
    members: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MEMBER[:KIND]…]", help="Who is expected. Nobody: it opens.", show_default=False),
    ] = None,
    correlation_id: CorrelationId = None,
) -> None:
    """Say who is expected for a key, at a gate that gets its members at run time. Without members it opens at once."""
    from ostinato.cli import session

    async with _opened(settings, name, key) as (_, gate):
        expected = [_member(text) for text in members or []]
        answer = await gate.freeze(key, expected, correlation_id=correlation_id, actor=session.actor())
    if settings.json:
        output.document({"gate": name, "key": key, "answer": answer})
        return
    count = f"{len(expected):,} member{'' if len(expected) == 1 else 's'}"
    output.say(f"expected: {count}" if answer.created else f"had been set before: {count}")


def _member(text: str) -> dict[str, str]:
    name, _, kind = text.partition(":")
    return {"name": name} | ({"kind": kind} if kind else {})


# --- by hand ------------------------------------------------------------------------------------------------------


@command(group, "open")
async def open_(settings: Settings, name: Name, key: Key, reason: Why, yes: Yes = False) -> int:
    """Open a gate without those who are missing. Who did it and why is recorded."""
    from ostinato.cli import failures, session
    from ostinato.core import documents

    async with _opened(settings, name, key) as (_, gate):
        if not yes and not _confirmed(settings, await gate.status(key), "open it without those who are missing?"):
            return failures.FAILED
        without = await gate.open(key, reason=reason, actor=session.actor())
    if settings.json:
        output.document({"gate": name, "key": key, "opened": True, "missing": without})
    else:
        output.say(f"opened: gate {name} for {key}, without {documents.listed(without) or 'anybody missing'}")
    return failures.OK


@command(group, "reset")
async def reset(settings: Settings, name: Name, key: Key, reason: Why, yes: Yes = False) -> int:
    """Forget what was reported for a key: the next report begins anew. What it has triggered goes on."""
    from ostinato.cli import failures, session

    async with _opened(settings, name, key) as (_, gate):
        if not yes and not _confirmed(settings, await gate.status(key), "forget what was reported?"):
            return failures.FAILED
        job_id = await gate.reset(key, reason=reason, actor=session.actor())
    if settings.json:
        output.document({"gate": name, "key": key, "reset": True, "jobId": job_id})
    else:
        output.say(f"reset: gate {name} for {key} (its history: ostinato events {job_id})")
    return failures.OK


def _confirmed(settings: Settings, found: status_.Status, question: str) -> bool:
    from ostinato.cli import asking

    asking.check_can_ask(settings, f"gate {found.gate!r} for {found.key!r}: {found.sentence}. Confirm with --yes")
    output.say(found.sentence)
    return typer.confirm(question)
