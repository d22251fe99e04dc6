"""A server in a thread of its own, so that a test can drive a browser and the engine at the same time."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from playwright.sync_api import Page

from ostinato import Context, Ostinato, TerminalError
from ostinato.api import server, settings
from ostinato.api.live import hub
from tests.engine import support
from tests.engine.support import task
from tests.pipelines import support as pipelines

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PATIENCE = float(os.environ.get("OSTINATO_UI_PATIENCE", "5"))
"""How many times slower than it should be a page may be on a busy machine without a graphics card."""
SECONDS = 60.0
"""How long the engine may take for what a test waits for, with a browser and other tests beside it."""
VOICE = "label-content-name-mismatch"
"""Axe leaves this rule out unless told: whoever speaks to a page says what is written on a button."""
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"


class Site:
    """`with Site(url) as site:` serves on `site.address`; `site.run(coroutine)` runs in its loop."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self.address = ""
        self.app = _application(url)
        self.newsroom = pipelines.Newsroom(app=self.app)
        self.cured = False
        """Whether the function `fragile` works by now."""
        self.hub: hub.Hub | None = None
        """From where the pages hear what happens."""
        self.admin = ""
        """The text of a key, if there are keys."""

    async def _serve(self) -> None:
        options = settings.ServerOptions(port=0, requests_per_second=10_000.0, **self._options)
        _register(self)
        async with self.app, server.Server(self.app, options) as made:
            listener = server.Listener(made)
            await listener.start()
            self.address, self.hub = listener.address, made.hub
            self._started.set()
            await self._stop.wait()
            await listener.stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * SECONDS)

    def submit(self, *tasks: dict[str, Any], **fields: Any) -> str:
        return self.run(self.app.submit(support.job(*tasks, **fields))).job_id

    def key(self, *scopes: str, tenant: str = "default") -> str:
        return self.run(self.app.engine.store.create_key(tenant, "test", scopes)).text

    def ended(self, job_id: str) -> str:
        """The state in which a job has ended."""

        async def wait() -> str:
            job = await self.app.job(job_id)

            async def look() -> str | None:
                state = (await job.info()).state
                return None if state == "running" else state

            return await until(look)

        return self.run(wait())

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._started.wait(SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS)
        self._loop.close()


async def until(condition: Callable[[], Awaitable[T | None]]) -> T:
    """Wait for something that only the database can tell."""
    async with asyncio.timeout(SECONDS):
        while not (found := await condition()):
            await asyncio.sleep(0.02)
    return found


def _application(url: str) -> Ostinato:
    return support.make(url, check_functions=False)


def _register(site: Site) -> None:
    """Functions that wait to be told, that fail until they are cured, and that have steps."""

    @site.app.function("approve")
    async def approve(ctx: Context, order: str) -> dict[str, Any]:
        return {"order": order, "approved": await ctx.wait_for("approval")}

    @site.app.function("fragile")
    async def fragile(order: str = "") -> str:
        if not site.cured:
            raise TerminalError(f"the card for order {order} has expired")
        return "paid"

    @site.app.agent("find-place")
    async def find_place(raw_data: Any) -> dict[str, Any]:
        return {"place": raw_data["text"].rpartition(" in ")[2]}

    @site.app.agent("find-street")
    async def find_street(parent_output: Any) -> dict[str, Any]:
        return {"street": parent_output["place"]["place"]}

    @site.app.function("stepped")
    async def stepped(ctx: Context) -> list[str]:
        return [await ctx.step(name, _say, name) for name in ("fetch", "clean")]


def furnish(site: Site) -> None:
    """A shop with orders: some done, one failed, one that waits for somebody, a gate that waits for one shop."""
    for number in range(6):
        order(site, f"order-{number + 1}", ends="completed")
    order(site, "order-17", ends="failed")
    order(site, "order-18", ends="completed")
    site.submit(task("ask", "approve", input={"order": "A18"}), name="approval", jobId="approval-1")
    site.run(site.app.gates.define({"name": "shops-closed", "key": "day", "members": ["north", "south", "west"]}))
    for day, shops in (("2026-11-16", ("north", "south", "west")), ("2026-11-17", ("north", "south"))):
        for shop in shops:
            site.run(site.app.gate("shops-closed").arrive(day, shop, {"takings": 900}))
    asks = {"title": "Publish this article?", "allowEdit": True}
    site.submit(task("review", "review", input={"text": "Bridge closed"}, approval=asks), name="article")
    articles(site)
    define_playbook(site)
    ingested = site.run(site.app.ingest("incidents", {"text": "Thick smoke in Dyers Lane"}))
    assert site.ended(ingested.job_id) == "completed"
    rule = {"pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "j", "name": "go"}}]}
    site.run(site.app.rules.define({"name": "on-sale", "description": "Tell the till", **rule}))


def order(site: Site, job_id: str, *, ends: str) -> None:
    site.cured = ends == "completed"
    tasks = [
        task("reserve", "stepped"),
        task("pay", "fragile", input={"order": job_id}),
        task("label", "echo", "reserve"),
        task("pack", "echo", "reserve pay"),
        task("ship", "echo", "pack label", input={"carrier": "post"}),
        task("thank", "echo", "ship", optional=True),
    ]
    site.submit(*tasks, name="order", jobId=job_id, tags={"shop": "north"})
    assert site.ended(job_id) == ends


def define_pipeline(site: Site, name: str = "publishing", **changes: Any) -> None:
    """From discovery to publication, with a review."""
    site.run(site.app.pipelines.define(pipelines.publishing(name=name, **changes)))


def enter(site: Site, pipeline: str, *item_ids: str, title: str = "News", hold: bool = False) -> None:
    for item_id in item_ids:
        site.run(site.app.pipelines.enter(pipeline, {"title": title}, item_id=item_id, hold=hold, actor="desk"))


def reaches(site: Site, item_id: str, status: str) -> None:
    """Wait until an item has a status."""

    async def look() -> bool:
        return (await site.app.pipelines.view(item_id)).status == status

    site.run(until(look))


def articles(site: Site) -> None:
    """A newsroom in the middle of its day: articles that failed, are tried again, wait for somebody, or are out."""
    define_pipeline(site, description="From discovery to publication")
    room, items = site.newsroom, site.app.pipelines
    room.fail("score", terminal=True)
    enter(site, "publishing", "article-1", title="Flood")
    reaches(site, "article-1", "failed")
    room.recover("score")
    titles = {2: "Bridge closed", 3: "New tram line", 4: "Harvest late", 5: "Library opens", 6: "Strike ends"}
    for number, title in titles.items():
        enter(site, "publishing", f"article-{number}", title=title)
        reaches(site, f"article-{number}", "pending_review")
    site.run(items.decide("article-2", "approve", actor="olga", notes="well written"))
    site.run(items.decide("article-3", "approve", actor="olga"))
    site.run(items.decide("article-4", "reject", actor="olga", notes="nobody was asked"))
    room.fail("tag", 1)
    enter(site, "publishing", "article-7", title="Market day")
    reaches(site, "article-7", "to_tag")
    room.recover("tag")
    enter(site, "publishing", "article-8", "article-9", hold=True)


SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def define_playbook(site: Site) -> None:
    """Reports of incidents, of which one agent finds the place and another one the street."""
    books = site.app.playbooks
    agent = {"kind": "function", "outputSchema": SCHEMA}
    street = {"type": "object", "properties": {"street": {"type": "string"}}}
    site.run(books.define_agent({"name": "place", "function": "find-place", **agent}))
    site.run(
        books.define_agent(
            {"name": "street", "kind": "function", "function": "find-street", "outputSchema": street}
            | {"dependencyParents": ["place"]}
        )
    )
    site.run(books.define_graph({"name": "streets", "edges": [{"from": "place", "to": "street"}]}))
    save = {"text": "{% raw_data.text %}"}
    for version in ("first", "second"):
        site.run(
            books.define(
                {"name": "reports", "domain": "incidents", "type": "ingestion", "agents": ["place", "street"]}
                | {"description": f"The {version} of them", "save": save}
            )
        )


async def _say(name: str) -> str:
    return f"{name} is done"


def troubles(page: Page, *, only: list[str] | None = None) -> list[str]:
    """What axe finds wrong, serious or worse, with how all people can use a page: by all its rules, or `only` some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    options = {"resultTypes": ["violations"], "rules": {VOICE: {"enabled": True}}} | (
        {} if only is None else {"runOnly": only}
    )
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:3]
    ]
