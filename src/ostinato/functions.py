"""Functions: Python code registered under a name, with the policy for running it."""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Collection
from typing import Any

from ostinato import errors
from ostinato.core import documents, graph, rows
from ostinato.core.retry import Retry


class Function:
    """A registered function. It stays an ordinary callable, so that it can be tested by calling it."""

    def __init__(
        self, name: str, code: Callable[..., Any], *, retry: Retry, timeout: float | None, queue: str = "default"
    ) -> None:
        graph.check_name(name, "the name of a function")
        check_retry(retry, "retry")
        if timeout is not None and graph.check_seconds(timeout, "timeout") <= 0:
            raise errors.InvalidInput("timeout must be more than 0 seconds", field="timeout")
        if isinstance(code, Function):  # under a second name, or in a second application
            code = code.code
        self.name = name
        self.code: Callable[..., Any] = code
        self.retry = retry
        self.timeout = timeout
        self.queue = queue
        self.policy = rows.FunctionPolicy(retry.max_attempts, timeout)
        self.is_async = inspect.iscoroutinefunction(code) or inspect.iscoroutinefunction(type(code).__call__)
        self.__doc__ = code.__doc__
        self.__name__ = getattr(code, "__name__", name)
        parameters = _parameters(name, code)
        self.takes_context = any(p.name == "ctx" for p in parameters)
        self.takes_anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self._accepted = {
            p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "ctx"
        }
        self._required = {p.name for p in parameters if p.name in self._accepted and p.default is p.empty}
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        if positional:
            raise errors.InvalidInput(
                f"function {name!r} has positional-only parameters {positional}: inputs come by name"
            )
        # A hint, read once: whether it pays to have the outputs of its dependencies at hand before the function starts.
        self.reads_outputs = "dependency_outputs" in _names(code)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.code(*args, **kwargs)

    def known(self, given: dict[str, Any]) -> dict[str, Any]:
        """Those of the arguments that it has names for."""
        return given if self.takes_anything else {name: given[name] for name in given.keys() & self._accepted}

    def bind(self, ctx: Any, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments for a call, or an error that no retry can mend."""
        if given.keys() != self._accepted:
            missing = self._required - given.keys()
            unknown: set[str] = set() if self.takes_anything else given.keys() - self._accepted
            if missing or unknown:
                raise errors.TerminalError(_mismatch(self.name, missing, unknown))
        if not self.takes_context:
            return given
        if "ctx" in given:
            raise errors.TerminalError(f"function {self.name!r} got an input field `ctx`, which is the context's name")
        return {"ctx": ctx, **given}


def check_retry(value: object, field: str) -> None:
    if not isinstance(value, Retry):
        raise errors.InvalidInput(
            f"{field} must be a Retry(max_attempts=…, …), not {documents.short(value)}", field=field
        )


def _parameters(name: str, code: object) -> Collection[inspect.Parameter]:
    if callable(code):
        with contextlib.suppress(ValueError, TypeError):  # what is built in may not say what it takes
            return inspect.signature(code).parameters.values()
    raise errors.InvalidInput(
        f"function {name!r} cannot be called with its input by name: register a function, not {documents.short(code)}"
    )


def _mismatch(name: str, missing: set[str], unknown: set[str]) -> str:
    parts: list[str] = []
    if missing:
        parts.append(f"needs the input {', '.join(repr(field) for field in sorted(missing))}")
    if unknown:
        parts.append(f"does not take the input {', '.join(repr(field) for field in sorted(unknown))}")
    return f"function {name!r} {' and '.join(parts)}"


def _names(code: Callable[..., Any]) -> tuple[str, ...]:
    inner = getattr(inspect.unwrap(code), "__code__", None)
    return inner.co_names if type(inner) is types.CodeType else ()
