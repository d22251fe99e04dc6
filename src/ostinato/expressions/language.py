"""JSONata expressions. They are read and evaluated in another process: the library may take this one down with it."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

from ostinato import errors
from ostinato.core import codec
from ostinato.expressions import processes

LONGEST = 16 * 1024
"""Characters of one expression."""
SECONDS = 0.5
MAX_RESULT = 1024 * 1024
"""Characters of what one template or expression gives, as JSON."""
REQUIRED: Any = object()

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'|`[^`]*`|/\*.*?\*/", re.DOTALL)
_EVAL = re.compile(r"\$eval(?![A-Za-z0-9_])")
_CODE = re.compile(r"(?:Parse error: )?(?P<code>[A-Z][0-9]{4}): ", re.ASCII)
_MEANING = {
    "D1011": "it calls itself too deeply",
    "D1012": "it takes too long",
    "D2014": "it makes a range that is too long",
    "D2015": "it makes a sequence that is too long",
}


@dataclasses.dataclass(frozen=True)
class Expression:
    text: str
    field: str
    """Where it stands, for errors."""

    def evaluate(
        self,
        data: Any,
        *,
        timeout: float = SECONDS,
        now: float | None = None,
        default: Any = REQUIRED,
        whose: str = "",
    ) -> Any:
        """Its value over `data`. If it has none that is an error, unless there is a `default`.

        `now` is what `$now()` and `$millis()` say, in seconds since the epoch, and the seed of `$random()` and
        `$shuffle()`. It may run for `timeout` seconds when it is the turn of the tenant `whose`: in an event loop,
        call it with `threads.run`.
        """
        return evaluate([self], data, timeout=timeout, now=now, default=default, whose=whose)[0]


def compile(text: str, field: str, whose: str = "") -> Expression:
    """Raises InvalidInput, with the field, if this is not an expression. It waits for another process: in an event
    loop, call it with `threads.run`."""
    try:
        wrong = _wrong(text, whose)
    except processes.Ended:
        wrong = "it takes too long to read"
    if wrong:
        raise errors.InvalidInput(f"{field} is not a valid expression: {wrong}", field=field)
    return Expression(text, field)


@functools.lru_cache(maxsize=1024)
def _wrong(text: str, whose: str) -> str:
    """Remembered, but not that it took too long: perhaps the machine was busy."""
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST:,} characters"
    if _EVAL.search(_QUOTED.sub(" ", text)):
        return "the function $eval is not available"
    answer = processes.ask({"check": text, "seconds": SECONDS}, SECONDS, whose)
    return _CODE.sub("", answer.get("error", ""))


def evaluate(
    expressions: Sequence[Expression],
    data: Any,
    *,
    timeout: float = SECONDS,
    now: float | None = None,
    default: Any = REQUIRED,
    whose: str = "",
) -> list[Any]:
    """The values of several expressions over the same data, within one bound on time and size."""
    request = {
        "texts": [expression.text for expression in expressions],
        "data": codec.encode(data, "data").decode(),
        "now": None if now is None else round(now * 1000),
        "seconds": timeout,
        "bytes": MAX_RESULT,
    }
    try:
        answer = processes.ask(request, timeout, whose)
    except processes.Ended:
        fields = [expression.field for expression in expressions]
        some = fields[0] if len(fields) == 1 else f"one of {', '.join(fields[:5])}"
        raise errors.ExpressionFailed(
            f"{some} could not be evaluated: it takes too long, or too much memory", field=fields[0]
        ) from None
    if "error" in answer:
        index: int = answer["index"]
        raise _failed(expressions[index], _because(answer["error"]))
    return [_value(*pair, default) for pair in zip(expressions, answer["values"], strict=True)]


def _value(expression: Expression, text: str | None, default: Any) -> Any:
    if text is None:
        if default is REQUIRED:
            raise _failed(expression, "it has no value here. Is there a field that is not in the data?")
        return default
    try:
        return codec.decode(text)
    except RecursionError:
        raise _failed(expression, "the result is nested too deeply") from None


def _because(error: str) -> str:
    error = error.removeprefix("host function raised PermissionError: ")
    found = _CODE.match(error)
    return error if found is None else _MEANING.get(found["code"], error[found.end() :])


def _failed(expression: Expression, why: str) -> errors.ExpressionFailed:
    return errors.ExpressionFailed(f"{expression.field} could not be evaluated: {why}", field=expression.field)
