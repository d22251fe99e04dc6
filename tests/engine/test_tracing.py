"""Spans: one for the submission, one below it for each attempt, in whichever process; and none for nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ostinato import Ostinato, Retry, tracing
from tests.engine import support
from tests.engine.support import job, task

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """OpenTelemetry as a program sets it up, for this test alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


def about(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("ostinato."): value for name, value in (span.attributes or {}).items()}


def parents(spans: Sequence[ReadableSpan]) -> set[int | None]:
    return {None if span.parent is None else span.parent.span_id for span in spans}


def flaky(app: Ostinato) -> None:
    @app.function("flaky", retry=Retry(max_attempts=3, base_delay=0.01))
    async def run(ctx: Any) -> None:
        if ctx.attempt < 2:
            raise ConnectionError("with data that is nobody's business")
        await ctx.sleep(0.01)


async def test_every_attempt_is_a_span_below_the_submission(url: str, spans: InMemorySpanExporter) -> None:
    app = support.make(url)
    flaky(app)
    async with app:
        made = await app.submit(job(task("a", "flaky"), name="report"))
        await made.result(10)
    (submitted,) = named(spans, "submit report")
    assert about(submitted) == {"tenant": "default", "job": made.job_id, "tasks": 1}
    attempts = named(spans, "flaky")
    assert [about(span)["outcome"] for span in attempts] == ["retry", "waiting", "completed"]
    assert [about(span)["attempt"] for span in attempts] == [1, 2, 2]
    assert parents(attempts) == {submitted.context.span_id}
    expected = {"tenant": "default", "job": made.job_id, "task": "a", "function": "flaky"}
    assert about(attempts[0]) | expected | {"error.type": "ConnectionError"} == about(attempts[0])
    assert not attempts[0].status.is_ok
    assert "nobody" not in str([span.to_json() for span in spans.get_finished_spans()])


async def test_the_trace_of_the_caller_goes_on(url: str, spans: InMemorySpanExporter) -> None:
    tracer = trace.get_tracer_provider().get_tracer("test")
    async with support.opened(url) as app:
        with tracer.start_as_current_span("the caller") as caller:
            made = await app.submit(job(task("a"), name="inner"))
        await made.result(10)
    (submitted,) = named(spans, "submit inner")
    assert parents([submitted]) == {caller.get_span_context().span_id}
    assert {span.context.trace_id for span in spans.get_finished_spans()} == {caller.get_span_context().trace_id}


async def test_another_process_goes_on_with_the_trace_that_a_request_named(
    url: str, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that submits records no spans, and passes the trace on all the same."""
    with monkeypatch.context() as patched:
        patched.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
        async with support.opened(url, work=False, check_functions=False) as producer:
            with tracing.incoming(PARENT):
                made = await producer.submit(job(task("a")))
    async with support.opened(url) as worker:
        await (await worker.job(made.job_id)).result(10)
    (span,) = named(spans, "echo")
    assert span.parent is not None
    assert f"00-{span.parent.trace_id:032x}-{span.parent.span_id:016x}-01" == PARENT


async def test_the_trace_is_no_part_of_the_request_that_a_key_stands_for(url: str) -> None:
    async with support.opened(url) as app:
        with tracing.incoming(PARENT):
            first = await app.submit(job(task("a"), idempotencyKey="once"))
        again = await app.submit(job(task("a"), idempotencyKey="once"))
        assert (again.job_id, again.created) == (first.job_id, False)
        assert (await app.engine.store.job("default", first.job_id)).trace_parent == PARENT


@pytest.mark.parametrize(
    "header", ["", "00-00", PARENT.upper(), PARENT.replace("b7ad6b7169203331", "0" * 16), "x" * 99]
)
async def test_what_is_no_traceparent_is_left_out(sqlite_url: str, header: str) -> None:
    async with support.opened(sqlite_url) as app:
        with tracing.incoming(header):
            made = await app.submit(job(task("a")))
        assert (await app.engine.store.job("default", made.job_id)).trace_parent is None


async def test_without_a_provider_there_is_nobody_to_tell(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with support.opened(sqlite_url) as app:
        assert app.engine.tracer is None
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert tracing.tracer() is None
    assert "opentelemetry.trace" not in sys.modules
