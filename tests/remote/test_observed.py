"""What a remote worker does is counted and traced as if it were done by the server's own."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.api.test_metrics import number, read
from tests.engine.support import PATIENCE, job, task
from tests.remote.conftest import Office
from tests.remote.test_remote import make, working

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_its_tasks_are_counted_by_function(office: Office) -> None:
    admin = await office.site.admin()
    async with working(office, make()):
        made = await office.site.home.submit(job(task("a"), task("b", after="a")))
        await made.result(timeout=PATIENCE)
    found = await read(admin)
    assert number(found, "ostinato_tasks_completed_total", function="echo") == 2
    assert number(found, "ostinato_task_run_seconds_count", function="echo") == 2


async def test_its_attempts_belong_to_the_trace_of_the_job(office: Office) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    producer = office.site.client(await office.site.key("jobs:write", "jobs:read"))
    async with working(office, make()) as running:
        running.worker._tracer = provider.get_tracer("test")  # pyright: ignore[reportPrivateUsage]
        answer = await producer.post("/v1/jobs", json=job(task("a")), headers={"traceparent": PARENT})
        made = await office.site.home.job(answer.json()["jobId"])
        await made.result(timeout=PATIENCE)
    (span,) = spans.get_finished_spans()
    assert format(span.context.trace_id, "032x") == PARENT.split("-")[1]
    assert span.attributes is not None
    assert span.attributes["ostinato.task"] == "a"
