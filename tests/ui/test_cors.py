"""B3: pages of an allowed origin use the API from a real browser, and pages of other origins do not."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.engine.support import job, task
from tests.ui.support import Site

FETCH = """
async ([url, method, key, body]) => {
  const headers = {Authorization: `Bearer ${key}`}
  if (body !== null) headers['Content-Type'] = 'application/json'
  try {
    const answer = await fetch(url, {method, headers, body: body === null ? undefined : JSON.stringify(body)})
    const text = await answer.text()
    return {status: answer.status, id: answer.headers.get('x-request-id'), body: text ? JSON.parse(text) : null}
  } catch (error) {
    return String(error)
  }
}
"""
STREAM = """
async ([url, key]) => {
  const answer = await fetch(url, {headers: {Authorization: `Bearer ${key}`}})
  const {value} = await answer.body.getReader().read()
  return new TextDecoder().decode(value)
}
"""
SOCKET = """
([url]) => new Promise((resolve) => {
  const socket = new WebSocket(url)
  socket.onopen = () => resolve('open')
  socket.onerror = () => resolve('refused')
})
"""


class Blank(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title>")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """The port of a server of pages. By its address it is one origin, and by its name another."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def open_site(elsewhere: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("cors")
    with Site(f"sqlite:///{folder}/ui.db", allowed_origins=(f"http://127.0.0.1:{elsewhere}",)) as made:
        made.admin = made.key("admin")
        yield made


@pytest.fixture
def stranger(context: BrowserContext) -> Iterator[Page]:
    """A page whose errors are part of the test."""
    made = context.new_page()
    yield made
    made.close()


def fetched(page: Page, site: Site, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
    return page.evaluate(FETCH, [site.address + path, method, site.admin if key is None else key, body])


GATE: dict[str, Any] = {"members": ["a"]}


def test_b3_a_page_of_an_allowed_origin_uses_all_of_the_api(open_site: Site, elsewhere: int, stranger: Page) -> None:
    """B3: with a key and JSON, so each of these is asked for in a preflight first."""
    stranger.goto(f"http://127.0.0.1:{elsewhere}/")
    made = fetched(stranger, open_site, "POST", "/v1/jobs", job(task("a")))
    assert made["status"] == 201
    assert made["id"]
    job_id = made["body"]["jobId"]
    assert fetched(stranger, open_site, "GET", f"/v1/jobs/{job_id}")["body"]["jobId"] == job_id
    assert fetched(stranger, open_site, "PUT", "/v1/gates/g", GATE)["status"] == 200
    assert fetched(stranger, open_site, "DELETE", "/v1/gates/g")["status"] in (200, 204)
    asked = fetched(stranger, open_site, "POST", "/graphql", {"query": "{ viewer { tenant } }"})
    assert asked["body"]["data"]["viewer"]["tenant"] == "default"
    assert stranger.evaluate(STREAM, [f"{open_site.address}/v1/events/stream", open_site.admin]).startswith(":")
    assert stranger.evaluate(SOCKET, [f"{open_site.address.replace('http', 'ws')}/v1/stream"]) == "open"


def test_b3_a_page_can_read_what_is_wrong(open_site: Site, elsewhere: int, stranger: Page) -> None:
    stranger.goto(f"http://127.0.0.1:{elsewhere}/")
    refused: list[tuple[str, str, Any, str | None, int, str]] = [
        ("GET", "/v1/jobs", None, "ost_0", 401, "unauthenticated"),
        ("GET", "/v1/jobs/none", None, None, 404, "job_not_found"),
        ("PATCH", "/v1/jobs", {}, None, 405, "method_not_allowed"),
        ("POST", "/v1/jobs", {"tasks": []}, None, 422, "invalid_graph"),
        ("POST", "/v1/jobs", {"x": "y" * 2_000_000}, None, 413, "body_too_large"),
    ]
    for method, path, body, key, status, code in refused:
        found = fetched(stranger, open_site, method, path, body, key)
        assert (found["status"], found["body"]["code"]) == (status, code)


def test_b3_pages_of_other_origins_get_nothing(open_site: Site, elsewhere: int, stranger: Page) -> None:
    stranger.goto(f"http://localhost:{elsewhere}/")
    for method, path, body in (
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/jobs", job(task("a"), jobId="from-elsewhere")),
        ("PUT", "/v1/gates/g", GATE),
        ("DELETE", "/v1/gates/g", None),
    ):
        assert "Failed to fetch" in fetched(stranger, open_site, method, path, body)
    assert stranger.evaluate(SOCKET, [f"{open_site.address.replace('http', 'ws')}/v1/stream"]) == "refused"
    assert not [found for found in open_site.run(open_site.app.jobs()) if found.job_id == "from-elsewhere"]
