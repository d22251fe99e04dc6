"""That the pages can be used by all people, load quickly, and stay quick with much to show."""

from __future__ import annotations

import gzip
import re
import time

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from ostinato.api.http import pages
from tests.engine.support import task
from tests.ui import support
from tests.ui.support import Site

FIRST_LOAD = 350 * 1024
ONLY = {"light": None, "dark": ["color-contrast"]}
"""The colours differ, the words do not."""
LAZY = ("JobGraph", "HourChart", "ItemCharts", "layout.worker")


@pytest.fixture(params=["sqlite"])
def site(request: pytest.FixtureRequest) -> Site:
    """How a page looks does not depend on the database."""
    return request.getfixturevalue("furnished")


PAGES = {
    "dashboard": ("/ui/", "Jobs by hour"),
    "executions": ("/ui/executions", "Agent or job name"),
    "job": ("/ui/jobs/order-17?task=pay", "Attempts"),
    "timeline": ("/ui/jobs/order-17?tab=timeline", "reserve"),
    "tasks": ("/ui/jobs/order-17?tab=tasks", "blocked 3"),
    "events": ("/ui/jobs/order-17?tab=events", "Job Created"),
    "compare": ("/ui/jobs/order-17?tab=compare&other=order-18", "4 of 6 tasks differ"),
    "dead-letters": ("/ui/dead-letters", "have failed for good"),
    "gates": ("/ui/gates", "Newest keys"),
    "gate": ("/ui/gates/shops-closed", "Missing (1)"),
    "rules": ("/ui/rules?name=on-sale", "Turn off"),
    "approvals": ("/ui/approvals", "Edit it before you decide"),
    "pipelines": ("/ui/pipelines", "publishing"),
    "pipeline": ("/ui/pipelines/publishing", "article-1"),
    "pipeline-health": ("/ui/pipelines/publishing?tab=health", "Over by hour"),
    "pipeline-moves": ("/ui/pipelines/publishing?tab=moves", "may end as"),
    "pipeline-definition": ("/ui/pipelines/publishing?tab=definition", "Pauses between them"),
    "item": ("/ui/items/article-1", "500 failed"),
    "item-review": ("/ui/items/article-5", "Edit it before you decide"),
    "playbooks": ("/ui/playbooks", "Agents 2"),
    "playbook": ("/ui/playbooks/reports", "The chain that may take longest"),
    "agent": ("/ui/definitions/agent/place", "find-place"),
    "graph": ("/ui/definitions/graph/streets", "Critical path"),
    "results": ("/ui/results", "Thick smoke"),
    "workers": ("/ui/workers", "Lease until"),
    "keys": ("/ui/keys", "There are no keys"),
    "nothing": ("/ui/no-such-page", "There is no such page"),
}
"""Each with something that can be seen once all is there."""


def go(page: Page, name: str) -> None:
    """As if a link was followed: nothing is loaded again."""
    path, seen = PAGES[name]
    page.evaluate("path => { history.pushState({}, '', path) }", path)
    expect(page.get_by_text(seen).first).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)


@pytest.mark.timeout(300)  # it looks at every page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(site: Site, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # pyright: ignore[reportArgumentType]
    found: dict[str, list[str]] = {}
    page.goto(f"{site.address}/ui/")
    for name in PAGES:
        go(page, name)
        found[name] = support.troubles(page, only=ONLY[scheme])
    go(page, "job")
    page.locator("aside").get_by_role("button", name="Retry").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator(".mantine-Modal-content")).to_have_css("opacity", "1")  # half-way its words are pale
    found["dialog"] = support.troubles(page, only=ONLY[scheme])
    assert {name: troubles for name, troubles in found.items() if troubles} == {}


def test_a_narrow_screen_shows_everything_without_scrolling_sideways(site: Site, page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{site.address}/ui/")
    wider: dict[str, int] = {}
    for name in PAGES:
        go(page, name)
        title = page.get_by_role("heading", level=1)
        if name != "nothing":
            assert (title.bounding_box() or {"width": 0})["width"] > 50, f"the title of {name} is squeezed away"
        wider[name] = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert {name: pixels for name, pixels in wider.items() if pixels > 0} == {}


def test_the_first_load_is_small_and_the_rest_comes_later() -> None:
    page = (pages.BUILT / "index.html").read_text()
    names = re.findall(r'(?:src|href)="/ui/assets/([^"]+)"', page)
    size = len(gzip.compress(page.encode())) + sum(
        len(gzip.compress((pages.BUILT / "assets" / name).read_bytes())) for name in names
    )
    assert size < FIRST_LOAD, f"{size:,} bytes"
    built = [path.name for path in (pages.BUILT / "assets").iterdir()]
    for lazy in LAZY:
        assert any(name.startswith(lazy) for name in built), lazy
        assert not any(name.startswith(lazy) for name in names), lazy


def test_a_page_without_charts_loads_none_and_little_else(site: Site, browser: Browser) -> None:
    """By what a browser that has nothing yet really loads, the part of the page itself included."""
    with browser.new_context() as fresh:
        page = fresh.new_page()
        loaded: dict[str, int] = {}

        def note(request: Request) -> None:
            if "/ui/assets/" in request.url:
                loaded[request.url.rpartition("/")[2]] = request.sizes()["responseBodySize"]

        page.on("requestfinished", note)
        page.goto(f"{site.address}/ui/executions")
        expect(page.get_by_role("link", name="order-17")).to_be_visible()
        page.wait_for_load_state("networkidle")
    print(f"first load: {sum(loaded.values()):,} bytes")
    assert 100_000 < sum(loaded.values()) < FIRST_LOAD
    assert [name for name in loaded if name.startswith((*LAZY, "BarChart"))] == []


def test_two_thousand_tasks_can_be_used(site: Site, page: Page) -> None:
    """Layers of forty, each task of which needs two of the layer before."""
    tasks = [
        task(
            f"t{n:04}",
            "nobody-has-this",
            [f"t{n - 40:04}", f"t{(n - 40) // 40 * 40 + (n + 7) % 40:04}"] if n >= 40 else [],
        )
        for n in range(2000)
    ]
    job_id = site.submit(*tasks, name="large")
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    expect(page.locator("canvas.overview")).to_be_visible()
    usual = page.evaluate(
        """async () => {
          const pane = document.querySelector('.react-flow__pane');
          const box = pane.getBoundingClientRect();
          const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true};
          const frames = [];
          const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          for (let n = 0; n < 30; n += 1) {
            const began = performance.now();
            pane.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: n < 15 ? -120 : 120, cancelable: true}));
            await frame();
            frames.push(performance.now() - began);
          }
          return frames.sort((a, b) => a - b)[frames.length / 2];
        }"""
    )
    print(f"zooming: {usual:.0f} ms for half of the frames")
    assert usual < 100 * support.PATIENCE
    page.locator(".react-flow__pane").click(position={"x": 500, "y": 300})
    for _ in range(12):
        page.get_by_role("button", name="Zoom In").click()
    expect(page.locator(".task-node").first).to_be_visible()
    page.get_by_role("tab", name="Tasks").click()
    began = time.monotonic()
    page.get_by_role("group", name="Tasks").get_by_role("button").first.click()
    expect(page.locator("aside")).to_contain_text("no live worker")
    print(f"opening a task: {time.monotonic() - began:.2f} s")


@pytest.mark.timeout(180)
def test_a_failed_task_is_found_among_eleven_thousand(site: Site, page: Page) -> None:
    """B6: the page has the first ten thousand, says so, counts all of them, and shows what failed beyond them."""
    site.cured = False
    later = [task(f"t{n}", delay=3600) for n in range(11_000)]
    job_id = site.submit(*later[:8000], name="huge")
    job = site.run(site.app.job(job_id))
    site.run(job.add_tasks(later[8000:]))
    site.run(job.add_tasks([task("the-last", "fragile", input={"order": "A1"})]))

    async def failed() -> bool:
        return (await job.info()).failure_detected_at is not None

    site.run(support.until(failed))
    began = time.monotonic()
    page.goto(f"{site.address}/ui/jobs/{job_id}?tab=tasks")
    box = page.get_by_label("What to look at")
    expect(box).to_contain_text("the-last TerminalError: the card for order A1", timeout=60_000)
    print(f"opening 11,001 tasks: {time.monotonic() - began:.2f} s")
    expect(page.get_by_text("This page shows the first 10,000 of 11,001 tasks, and")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Tasks: 11000 .*1 failed"))).to_be_visible()
    page.get_by_text("failed 1", exact=True).click()
    expect(page.get_by_role("group", name="Tasks").get_by_role("button")).to_have_count(1)
    page.get_by_text("failed 1", exact=True).click()
    page.get_by_label("Only tasks with this").fill("t10999")
    page.get_by_role("button", name="Open task t10999").click()
    expect(page.locator("aside").get_by_role("heading", name="t10999", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Graph").click()
    expect(page.get_by_role("img", name=re.compile("tasks from afar: .*1 failed"))).to_be_visible()
    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_role("group", name="Attempts over time")).to_contain_text("the-last")
    used = page.evaluate("performance.memory.usedJSHeapSize")
    print(f"memory: {used / 1e6:.0f} MB")
    assert used < 300e6
    page.get_by_role("tab", name="Graph").click()
    site.cured = True
    site.run(job.retry_task("the-last"))
    expect(box).not_to_contain_text("the-last")


def test_ten_thousand_events_do_not_freeze_the_page(site: Site, page: Page) -> None:
    job_id = site.submit(*[task(f"t{n}") for n in range(3400)], name="chatty")
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}?tab=events")
    expect(page.get_by_text(re.compile(r"^10,\d\d\d events$"))).to_be_visible(timeout=60_000)
    assert page.locator(".row").count() < 100
    usual = page.evaluate(
        """async () => {
          const list = document.querySelector('[role=group][aria-label=Events]');
          const frames = [];
          for (let n = 1; n <= 20; n += 1) {
            const began = performance.now();
            list.scrollTop = (n * list.scrollHeight) / 20;
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            frames.push(performance.now() - began);
          }
          return frames.sort((a, b) => a - b)[frames.length / 2];
        }"""
    )
    print(f"scrolling: {usual:.0f} ms for half of the frames")
    assert usual < 100 * support.PATIENCE
    expect(page.get_by_role("group", name="Events")).to_contain_text("Job Completed")


def test_payloads_are_text_whatever_is_in_them(site: Site, page: Page) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    job_id = site.submit(task("a", "break", input={"message": hostile}), tags={"note": hostile})
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=a")
    expect(page.locator("aside")).to_contain_text("<img src=x")
    page.goto(f"{site.address}/ui/dead-letters?job={job_id}")
    page.get_by_role("button", name="Details").click()
    expect(page.locator("pre").first).to_contain_text("<script>")
    assert page.evaluate("document.querySelectorAll('img, script:not([src])').length") == 0
    assert page.title() == "Dead letters · Ostinato"
