"""What Prometheus is told: true numbers, of one's own tenant only, and not more series than is good for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import StreamingResponse

from ostinato import Retry, errors
from ostinato.api import metrics, routing
from ostinato.core import commands, rows
from ostinato.engine import observing
from tests.api import support
from tests.api.support import Site, ended, problem, submitted
from tests.api.test_server import run, start
from tests.engine.support import job, task

Numbers = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def read(client: httpx2.AsyncClient) -> Numbers:
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def number(found: Numbers, name: str, **labels: str) -> float | None:
    return found.get((name, tuple(sorted(({"tenant": "default"} | labels).items()))))


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.Metrics, "DEPTH_SECONDS", 0.0)


async def test_tasks_and_jobs_are_counted_by_function_and_state(site: Site) -> None:
    tries = 0

    @site.home.function("flaky", retry=Retry(max_attempts=3, base_delay=0))
    async def flaky() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionError

    client = site.client()
    await ended(client, await submitted(client, job(task("a"), task("b"), task("c", "flaky"))))
    await ended(client, await submitted(client, job(task("a", "break"))))
    found = await read(client)
    assert number(found, "ostinato_tasks_completed_total", function="echo") == 2
    assert number(found, "ostinato_tasks_completed_total", function="flaky") == 1
    assert number(found, "ostinato_task_retries_total", function="flaky") == 2
    assert number(found, "ostinato_tasks_failed_total", function="break") == 1
    assert number(found, "ostinato_task_run_seconds_count", function="flaky") == 3
    assert number(found, "ostinato_task_wait_seconds_count", function="echo") == 2
    assert number(found, "ostinato_task_run_seconds_bucket", function="echo", le="60.0") == 2
    assert number(found, "ostinato_jobs_ended_total", state="completed") == 1
    assert number(found, "ostinato_jobs_ended_total", state="failed") == 1
    assert number(found, "ostinato_dead_letters") == 1
    assert (number(found, "ostinato_commit_batch_size_count") or 0) >= 2
    assert number(found, "ostinato_commit_seconds_count") == number(found, "ostinato_commit_batch_size_count")


async def test_queues_have_their_depth_and_age(url: str) -> None:
    async with support.opened(url, engine={"work": False}) as site:
        client = site.client()
        await submitted(client, job(task("a"), task("b", queue="slow"), task("c", queue="slow")))
        found = await read(client)
        assert number(found, "ostinato_queue_tasks", queue="default", function="echo") == 1
        assert number(found, "ostinato_queue_tasks", queue="slow", function="echo") == 2
        age = number(found, "ostinato_queue_oldest_seconds", queue="slow", function="echo")
        assert age is not None
        assert 0 <= age < 60


async def test_the_depth_is_not_read_again_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.Metrics, "DEPTH_SECONDS", 60.0)
    async with support.opened(url, engine={"work": False}) as site:
        client = site.client()
        await read(client)
        await submitted(client)
        assert number(await read(client), "ostinato_queue_tasks", queue="default", function="echo") is None


async def test_requests_are_counted_by_route_not_by_path(site: Site) -> None:
    client = site.client()
    for path in ("/v1/jobs/one", "/v1/jobs/two", "/v1/jobs?limit=0", "/v1/secret-path"):
        await client.get(path)
    await client.request("BREW", "/v1/jobs")
    found = await read(client)
    assert number(found, "ostinato_http_requests_total", method="GET", route="/v1/jobs/{jobId}", status="404") == 2
    assert number(found, "ostinato_http_requests_total", method="GET", route="/v1/jobs", status="422") == 1
    assert number(found, "ostinato_http_requests_total", method="GET", route="(none)", status="404") == 1
    assert number(found, "ostinato_http_requests_total", method="OTHER", route="(none)", status="405") == 1
    assert number(found, "ostinato_http_request_seconds_count", route="/v1/jobs/{jobId}") == 2
    assert "secret" not in str(found)


async def test_each_tenant_sees_itself_alone(site: Site) -> None:
    ours, theirs = await site.admin(), await site.admin("other")
    await submitted(theirs, job(task("a", "their-function")))
    await submitted(ours)
    await site.client().get("/v1/jobs")  # nobody's
    for client, tenants in ((ours, {"default", metrics.NOBODY}), (theirs, {"other"})):
        found = await read(client)
        assert {dict(labels)["tenant"] for _, labels in found} == tenants
    assert "their-function" not in (await ours.get("/metrics")).text
    assert "their-function" in (await theirs.get("/metrics")).text


async def test_it_needs_admin(site: Site) -> None:
    problem(await site.client(await site.key("jobs:read")).get("/metrics"), 403, "forbidden")
    problem(await site.client().get("/metrics"), 401, "unauthenticated")


async def test_names_do_not_make_series_without_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_FUNCTIONS", 3)
    monkeypatch.setattr(metrics, "MOST_TENANTS", 2)
    async with support.opened(url, engine={"work": False}) as site:
        client = site.client()
        await submitted(client, job(*[task(f"t{n}", f"f{n}") for n in range(6)]))
        found = await read(client)
        depths = {dict(labels)["function"] for name, labels in found if name == "ostinato_queue_tasks"}
        assert len(depths) == 4
        assert number(found, "ostinato_queue_tasks", queue=metrics.OTHERS, function=metrics.OTHERS) == 3
        series = site.server.metrics.of("default")
        for n in range(6):
            series.function(f"f{n}").completed += 1
        assert len(series.functions) == 4
        assert series.functions[metrics.OTHERS].completed == 3
        for n in range(5):
            site.server.metrics.of(f"tenant-{n}")
        assert len(site.server.metrics._tenants) == 2


async def test_what_stays_open_is_a_gauge(url: str) -> None:
    more = routing.Routes()
    seen: list[Numbers] = []

    @more("GET", "/v1/stream", scope=routing.ANY)
    async def stream() -> StreamingResponse:
        async def parts() -> Any:
            yield "data: 1\n\n"
            seen.append(await read(site.client()))

        return StreamingResponse(parts(), media_type="text/event-stream")

    async with support.opened(url, more=[more]) as site:
        await site.client().get("/v1/stream")
        assert number(seen[0], "ostinato_open_streams", kind="sse") == 1
        after = await read(site.client())
        assert number(after, "ostinato_open_streams", kind="sse") is None
        assert number(after, "ostinato_http_requests_total", method="GET", route="/v1/stream", status="200") == 1
        assert number(after, "ostinato_http_request_seconds_count", route="/v1/stream") is None


async def test_a_lost_lease_and_a_late_report_are_counted(url: str) -> None:
    async with support.opened(url, engine={"work": False, "maintain": False}) as site:
        engine, client = site.home.engine, site.client()
        await submitted(client, job(task("a")))
        policies = {"echo": rows.FunctionPolicy(5, None)}
        claim = commands.Claim("nobody-knows", "token", policies, frozenset({"default"}), 1)
        (lease,) = (await engine.store.execute("default", [], claim)).leases
        await engine.reaper.sweep()
        with pytest.raises(errors.LeaseLost):
            await engine.execute(commands.Complete(lease, b"1"))
        found = await read(client)
        assert number(found, "ostinato_leases_lost_total") == 1
        assert number(found, "ostinato_late_reports_total") == 1


async def test_an_observer_that_fails_stops_nothing(site: Site) -> None:
    class Broken:
        def committed(self, commit: observing.Commit) -> None:
            raise RuntimeError("no")

        def lost(self, tenant: str, leases: int) -> None:
            raise RuntimeError("no")

    site.home.engine.observers.add(Broken())
    client = site.client()
    assert (await ended(client, await submitted(client)))["state"] == "completed"


def test_a_worker_serves_its_own_numbers_and_nothing_else(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from ostinato import Ostinato\napp = Ostinato()\n@app.function\ndef hello(): ...\n"
    )
    worker = start(url, "worker", f"{tmp_path}/shop.py", "--metrics-port", "0")
    try:
        assert worker.stdout is not None
        found = re.search(r"metrics on (http://\S+)", worker.stdout.readline())
        assert found is not None
        assert "ostinato_commit_seconds_count" in httpx2.get(f"{found[1]}/metrics").text
        assert httpx2.get(f"{found[1]}/readyz").status_code == 200
        assert httpx2.get(f"{found[1]}/v1/jobs").status_code == 404
        run(url, "keys", "create", "--scopes", "jobs:read")
        assert httpx2.get(f"{found[1]}/metrics").status_code == 401
    finally:
        worker.terminate()
        worker.communicate(timeout=30)
