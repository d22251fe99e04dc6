"""Spans from the submission of a job through every attempt of its tasks, for whoever has set up OpenTelemetry.

The trace goes with the job, as a W3C `traceparent`: an attempt in another process, days later, belongs to it still. It
is taken from the current span or from the request that submits, and passed on even where nobody records spans.
"""

from __future__ import annotations

import contextlib
import contextvars
import re
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

from ostinato.core import commands, rows

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer

NAME = "ostinato"
_PARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_incoming: contextvars.ContextVar[str | None] = contextvars.ContextVar("ostinato_traceparent", default=None)


def tracer() -> Tracer | None:
    """Who records spans; None if nobody does. Asked once by each engine, so that it costs nothing afterwards.

    Whoever set OpenTelemetry up has imported it, so it is not imported here to find out that nobody has.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    return provider.get_tracer(NAME)


@contextlib.contextmanager
def incoming(header: str | None) -> Generator[None]:
    """What is submitted in here belongs to the trace that a request names. What is no `traceparent` names none."""
    token = _incoming.set(header if header is not None and _PARENT.fullmatch(header) else None)
    try:
        yield
    finally:
        _incoming.reset(token)


def inherited(using: Tracer | None) -> str | None:
    """What is started here without a span of its own belongs to this: the current span, or the one of the request."""
    if using is not None:
        from opentelemetry import trace

        current = trace.get_current_span().get_span_context()
        if current.is_valid:
            return _traceparent(current)
    return _incoming.get()


def submission(using: Tracer | None, tenant: str, command: commands.Submit) -> contextlib.AbstractContextManager[None]:
    """Give a job its trace: that of the span around its submission, or the one that came with the request."""
    parent = _incoming.get()
    if using is None:
        command.trace_parent = parent
        return _NO_SPAN
    return _span_of_submission(using, tenant, command, parent)


_NO_SPAN = contextlib.nullcontext()


@contextlib.contextmanager
def _span_of_submission(using: Tracer, tenant: str, command: commands.Submit, parent: str | None) -> Generator[None]:
    from opentelemetry import trace

    current = trace.get_current_span()
    context = None if parent is None or current.get_span_context().is_valid else _remote(parent)
    about = {"ostinato.tenant": tenant, "ostinato.job": command.job_id, "ostinato.tasks": len(command.spec.tasks)}
    name = f"submit {command.spec.name}"
    with using.start_as_current_span(name, context, trace.SpanKind.PRODUCER, about) as span:
        command.trace_parent = _traceparent(span.get_span_context())
        yield


@contextlib.contextmanager
def attempt(using: Tracer, tenant: str, lease: rows.Lease) -> Generator[Span]:
    """A span around an attempt, below the submission of its job."""
    from opentelemetry import context, trace

    parent = context.Context() if lease.trace_parent is None else _remote(lease.trace_parent)
    about = {
        "ostinato.tenant": tenant,
        "ostinato.job": lease.job_id,
        "ostinato.task": lease.task_id,
        "ostinato.function": lease.name,
        "ostinato.attempt": lease.attempt,
    }
    with using.start_as_current_span(lease.name, parent, trace.SpanKind.CONSUMER, about) as span:
        yield span


def ended(span: Span, report: object) -> None:
    """Say in the span of an attempt how it ended. The message of an error may hold data: only its type is told."""
    from opentelemetry import trace

    outcome = _outcome(report)
    span.set_attribute("ostinato.outcome", outcome)
    if isinstance(report, commands.Fail):
        span.set_attribute("error.type", report.failure.type)
        span.set_status(trace.StatusCode.ERROR)


def _outcome(report: object) -> str:
    match report:
        case commands.Complete():
            return "completed"
        case commands.Fail():
            return "failed" if report.final else "retry"
        case commands.Suspend():
            return "waiting"
        case commands.Release():
            return "released"
        case _:
            return "lost"


def _traceparent(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _remote(parent: str):
    from opentelemetry import context, trace

    _, trace_id, span_id, flags = parent.split("-")
    found = trace.SpanContext(int(trace_id, 16), int(span_id, 16), True, trace.TraceFlags(int(flags, 16)))
    return trace.set_span_in_context(trace.NonRecordingSpan(found), context.Context())
