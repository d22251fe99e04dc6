"""Short ways to say what the tests of the server say often."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx2

from ostinato import Ostinato
from ostinato.api import routing, server, settings
from tests.engine import support
from tests.engine.support import job, task

ONE = job(task("a"))


class Site:
    """A server without a network: requests go straight into its outermost layer."""

    def __init__(self, made: server.Server, home: Ostinato) -> None:
        self.server = made
        self.home = home

    async def key(self, *granted: str, tenant: str = "default", **life: Any) -> str:
        made = await self.home.engine.store.create_key(tenant, "test", granted or ["admin"], **life)
        return made.text

    def client(self, key: str | None = None, *, address: str = "127.0.0.1", **headers: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.server, client=(address, 4711))
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)

    async def admin(self, tenant: str = "default") -> httpx2.AsyncClient:
        return self.client(await self.key(tenant=tenant))


@contextlib.asynccontextmanager
async def opened(
    url: str,
    *,
    more: Sequence[routing.Routes] = (),
    engine: dict[str, Any] | None = None,
    prepare: Callable[[Ostinato], object] | None = None,
    **options: Any,
) -> AsyncIterator[Site]:
    """`prepare` adds functions before the server starts."""
    home = support.make(url, **({"check_functions": False} | (engine or {})))
    if prepare is not None:
        prepare(home)
    made = settings.ServerOptions(**({"requests_per_second": 10_000.0} | options))
    async with home, server.Server(home, made, (*server.ROUTES, *more)) as running:
        yield Site(running, home)


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem in an answer, which must be this one."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = answer.json()
    assert (answer.status_code, found["status"], found["code"]) == (status, status, code), answer.text
    assert found["requestId"] == answer.headers["x-request-id"]
    assert found["type"].endswith(code)
    assert found["title"]
    assert found["detail"]
    return found


async def submitted(client: httpx2.AsyncClient, document: Any = ONE) -> str:
    answer = await client.post("/v1/jobs", json=document)
    assert answer.status_code == 201, answer.text
    return answer.json()["jobId"]


async def ended(client: httpx2.AsyncClient, job_id: str) -> dict[str, Any]:
    """The job, once it has ended."""

    async def look() -> dict[str, Any] | None:
        found = (await client.get(f"/v1/jobs/{job_id}")).json()
        return None if found["state"] == "running" else found

    return await support.until(look, "the end")
