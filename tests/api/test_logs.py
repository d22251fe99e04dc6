"""Log lines: one JSON document each, saying what they are about, and never what nobody should read."""

from __future__ import annotations

import io
import json
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato import logs, outgoing
from ostinato.engine import observing
from tests.api import support
from tests.api.support import Site, ended, submitted
from tests.api.test_server import serving, start
from tests.engine.support import job, task
from tests.outgoing import support as endpoints


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is written to the log, with the logging of this process put back afterwards."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    stream = io.StringIO()
    logs.configure("json", "info", stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)


def lines(stream: io.StringIO, message: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in found if line["message"] == message]


async def test_a_task_logs_with_all_it_belongs_to(site: Site, written: io.StringIO) -> None:
    helper = logging.getLogger("somebody.elses.library")

    @site.home.function("tell")
    async def tell(ctx: Any) -> None:
        ctx.log.info("from the task")
        helper.warning("from below")

    @site.home.function("tell-from-thread")
    def tell_from_thread() -> None:
        helper.warning("from a thread")

    client = site.client()
    tasks = [task("a", "tell"), task("b", "tell-from-thread")]
    job_id = await submitted(client, job(*tasks, correlationId="corr-1"))
    await ended(client, job_id)
    for message, task_id in (("from the task", "a"), ("from below", "a"), ("from a thread", "b")):
        (line,) = lines(written, message)
        about = {"tenant": "default", "job_id": job_id, "task_id": task_id, "attempt": 1, "correlation_id": "corr-1"}
        assert line | about == line
        assert line["timestamp"].endswith("Z")
        assert line["level"] in ("info", "warning")


async def test_no_address_that_is_called_is_logged(written: io.StringIO) -> None:
    """There may be a token in it: errors do not tell it either."""
    async with endpoints.running() as endpoint:
        await outgoing.Caller(outgoing.CallOptions(allow=("127.0.0.1",))).post(f"{endpoint.url}&token=t0p", b"{}")
        assert "token=t0p" in endpoint.requests[0].line
    assert written.getvalue() == ""


async def test_a_request_is_logged_by_its_route_and_key(site: Site, written: io.StringIO) -> None:
    key = await site.key()
    client = site.client(key, **{"X-Request-Id": "req-1"})
    await client.get("/v1/jobs/secret-id?limit=secret-query")
    (line,) = lines(written, "request")
    assert line["ms"] >= 0
    expected = {"method": "GET", "route": "/v1/jobs/{jobId}", "status": 422, "request_id": "req-1", "tenant": "default"}
    assert line | expected | {"key_id": key.split("_")[1]} == line
    assert "secret" not in written.getvalue()
    assert key.split("_")[2] not in written.getvalue()


async def test_what_is_refused_is_logged_too(site: Site, written: io.StringIO) -> None:
    await site.key()
    await site.client().get("/v1/jobs")
    (line,) = lines(written, "request")
    assert line["status"] == 401
    assert "tenant" not in line


async def test_neither_payloads_nor_keys_get_into_the_log(site: Site, written: io.StringIO) -> None:
    key = await site.key()
    client = site.client(key)
    job_id = await submitted(client, job(task("a", input={"password": "planted"}), task("b", "break", "a")))
    await ended(client, job_id)
    logging.getLogger("careless").error("the key is %s", key)
    assert "planted" not in written.getvalue()
    assert key not in written.getvalue()
    (line,) = [line for line in map(json.loads, written.getvalue().splitlines()) if line["logger"] == "careless"]
    assert line["message"] == f"the key is ost_{key.split('_')[1]}_…"


async def test_a_bug_is_logged_with_its_request(url: str, written: io.StringIO) -> None:
    more = support.routing.Routes()

    @more("GET", "/v1/broken", scope=support.routing.ANY)
    async def broken() -> dict[str, str]:
        raise RuntimeError("out of luck")

    async with support.opened(url, more=[more]) as site:
        await site.client(**{"X-Request-Id": "req-7"}).get("/v1/broken")
    (line,) = [line for line in map(json.loads, written.getvalue().splitlines()) if line["level"] == "error"]
    assert line["request_id"] == "req-7"
    assert "out of luck" in line["exception"]


async def test_a_tenants_committer_does_not_log_in_the_name_of_its_first_request(
    site: Site, written: io.StringIO
) -> None:
    class Probe:
        def committed(self, commit: observing.Commit) -> None:
            logging.getLogger("probe").warning("who am I?")

        def lost(self, tenant: str, leases: int) -> None: ...

    site.home.engine.observers.add(Probe())
    await submitted(await site.admin("other"), job(task("a", "unknown")))
    said = lines(written, "who am I?")
    assert said
    assert not any("request_id" in line for line in said)


async def test_the_trace_that_a_request_names_goes_with_its_jobs(site: Site) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = await site.client(traceparent=parent).post("/v1/jobs", json=[job(task("a")), job(task("b"))])
    for made in answer.json()["jobs"]:
        assert (await site.home.engine.store.job("default", made["jobId"])).trace_parent == parent


def test_server_and_worker_write_json_in_a_pipe(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from ostinato import Ostinato\napp = Ostinato()\n"
        "@app.function\ndef hello(ctx):\n    ctx.log.info('hello')\n    print('done', flush=True)\n"
    )
    worker = start(url, "worker", f"{tmp_path}/shop.py")
    assert worker.stdout is not None
    assert worker.stdout.readline().startswith("ready")
    with serving(url, "--log-level", "info") as (process, address):
        support.httpx2.post(f"{address}/v1/jobs", json={"tasks": [{"taskId": "a", "name": "hello"}]})
        assert worker.stdout.readline() == "done\n"
        process.send_signal(signal.SIGTERM)
        _, served = process.communicate(timeout=30)
    worker.terminate()
    _, worked = worker.communicate(timeout=30)
    (said,) = [json.loads(line) for line in worked.splitlines()]
    assert (said["message"], said["task_id"], said["logger"]) == ("hello", "a", "ostinato.task")
    (asked,) = [json.loads(line) for line in served.splitlines() if line.startswith("{")]
    assert (asked["route"], asked["status"]) == ("/v1/jobs", 201)


async def test_b9_requests_of_the_ui_are_noted_for_debugging_only(site: Site, written: io.StringIO) -> None:
    """B9: a page that somebody looks at asks all the time."""
    for headers in ({"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}):
        asked = await site.client(**headers).post("/graphql", json={"query": "{ viewer { tenant } }"})
        assert asked.status_code == 200
    assert (await site.client().get("/ui/")).status_code == 200
    assert (await site.client().get("/")).status_code == 307
    assert lines(written, "request") == []
    await site.client(Origin="http://localhost").get("/v1/jobs/none")
    await site.client().get("/v1/jobs")
    assert [(line["route"], line["status"]) for line in lines(written, "request")] == [
        ("/v1/jobs/{jobId}", 404),
        ("/v1/jobs", 200),
    ]
    logging.getLogger().setLevel(logging.DEBUG)
    await site.client().get("/ui/")
    assert [line["level"] for line in lines(written, "request")][2:] == ["debug"]
