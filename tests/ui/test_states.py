"""Every page while it waits, when something is wrong, when there is nothing, and as a line for the terminal."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from devtools import programs
from tests.ui import support
from tests.ui.support import Site
from tests.ui.test_quality import PAGES

REAL = {name: page for name, page in PAGES.items() if name != "nothing"}
"""All but the one that only says that there is no such page."""
AWAY = {"data": None, "errors": [{"message": "the database is away", "extensions": {"code": "unavailable"}}]}
SOON = 15_000
"""Milliseconds: sooner than a page asks by itself."""
TRY_AGAIN = "for (const button of document.querySelectorAll('[role=alert] button')) button.click()"
"""All at once: one answer may mend several."""
WHO = "query Viewer"
"""What is asked before there are any pages."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server at which nothing has happened yet."""
    with support.Site(f"sqlite:///{tmp_path_factory.mktemp('empty')}/ui.db") as made:
        yield made


def questions(page: Page, answer: Callable[[Route], None]) -> None:
    """Answer what is asked, but for who one is."""
    page.route(
        "**/graphql", lambda route: route.continue_() if WHO in (route.request.post_data or "") else answer(route)
    )


def try_again(page: Page, trouble: Locator, name: str) -> None:
    """As a person would: what was being asked before may be answered after a click, and no better than before."""
    for last in (False, False, True):
        page.evaluate(TRY_AGAIN)
        try:
            expect(trouble, name).to_have_count(0, timeout=SOON / 3)
        except AssertionError:
            if last:
                raise
        else:
            return


@pytest.mark.timeout(300)  # it opens every page
def test_every_page_says_that_it_waits_and_then_opens_from_its_address(furnished: Site, page: Page) -> None:
    for name, (path, seen) in REAL.items():
        held: list[Route] = []
        questions(page, held.append)
        page.goto(furnished.address + path)
        expect(page.get_by_role("status", name="Loading").first, name).to_be_visible()
        page.unroute("**/graphql")  # what was held goes on
        expect(page.get_by_text(seen).first, name).to_be_visible()


@pytest.mark.timeout(300)  # it opens every page
def test_every_page_says_what_is_wrong_and_tries_again(furnished: Site, page: Page) -> None:
    for name, (path, seen) in REAL.items():
        questions(page, lambda route: route.fulfill(json=AWAY))
        page.goto(furnished.address + path)
        trouble = page.get_by_role("alert").filter(has_text="the database is away")
        expect(trouble.first, name).to_be_visible()
        expect(page.get_by_role("status", name="Loading"), name).to_have_count(0)
        page.unroute("**/graphql")
        try_again(page, trouble, name)
        expect(page.get_by_text(seen).first, name).to_be_visible(timeout=SOON)


NOTHING = {
    "/ui/": "Nothing has run in the last 24 hours",
    "/ui/executions": "Submit a job, and it appears here",
    "/ui/executions?agent=nobody": "Widen the filters, or clear them",
    "/ui/dead-letters": "There are no dead letters",
    "/ui/approvals": "Nobody is asked anything",
    "/ui/playbooks": "There are no playbooks",
    "/ui/playbooks?tab=agents": "There are no agents",
    "/ui/playbooks?tab=graphs": "There are no graphs",
    "/ui/pipelines": "There are no pipelines",
    "/ui/results": "Nothing was found",
    "/ui/gates": "There are no gates",
    "/ui/rules": "There are no rules",
    "/ui/keys": "There are no keys",
    "/ui/jobs/none": "There is no such job here",
    "/ui/items/none": "There is no such item here",
    "/ui/pipelines/none": "There is no such pipeline",
    "/ui/playbooks/none": "There is no such playbook",
    "/ui/gates/none": "There is no such gate",
    "/ui/definitions/agent/none": "There is no agent none",
    "/ui/approvals?job=none&task=none": "Nothing is asked here",
}


def test_every_page_says_that_there_is_nothing(empty: Site, page: Page) -> None:
    for path, said in NOTHING.items():
        page.goto(empty.address + path)
        expect(page.get_by_text(said).first, path).to_be_visible()
        expect(page.get_by_role("alert"), path).to_have_count(0)


def test_an_address_that_makes_no_sense_breaks_nothing(furnished: Site, page: Page) -> None:
    """They are typed by hand, cut off in mails, and older than the pages."""
    addresses = {
        "/ui/executions?status=banana&from=yesterday&order=7&agent=%5B1%5D": "order-18",
        "/ui/executions?status=%5B%22FAILED%22,1%5D": "order-17",
        "/ui/jobs/order-17?tab=spoon&at=x&task=none": "There is no such task",
        "/ui/jobs/order-17?at=99999": "reserve",
        "/ui/jobs/order-17?tab=compare&other=none": "There is no such job",
        "/ui/pipelines/publishing?tab=spoon&status=none&show=none": "discovered",
        "/ui/playbooks?tab=spoon": "reports",
        "/ui/approvals?state=%7B%7D&mine=7": "Publish this article?",
        "/ui/gates/shops-closed?key=none": "Nobody has reported for this key",
        "/ui/rules?name=none": "There is no rule none",
        "/ui/definitions/toString/none": "There is no such page",
        "/ui/results?q=%7B%7D": "Thick smoke",
    }
    for address, seen in addresses.items():
        page.goto(furnished.address + address)
        expect(page.get_by_text(seen).first, address).to_be_visible()
        expect(page.get_by_text("This page broke"), address).to_have_count(0)


FILTERED = [
    "/ui/executions?agent=order&status=%5B%22FAILED%22%5D&tag=shop%3Dnorth&order=oldest"
    "&from=2020-01-01T00:00:00Z&until=2099-01-01T00:00:00Z",
    "/ui/dead-letters?name=fragile&job=order-17&error=TerminalError",
    "/ui/approvals?state=any",
    "/ui/pipelines/publishing?status=published",
    "/ui/pipelines/publishing?show=stuck",
    "/ui/pipelines/publishing?show=held",
    "/ui/results?q=thick+smoke&domain=incidents",
    "/ui/definitions/graph/streets",
]


@pytest.mark.timeout(300)  # it opens every page
def test_what_is_copied_works_in_a_terminal(furnished: Site, page: Page, tmp_path: Path) -> None:
    """A line with curl and a command for each page, with its filters."""
    lines: set[str] = set()
    for path in [path for path, _ in REAL.values()] + FILTERED:
        page.goto(furnished.address + path)
        for kind in ("curl", "ostinato command"):
            page.get_by_role("button", name="Copy as", exact=True).click()
            menu = page.get_by_role("menu")
            expect(menu.get_by_role("menuitem", name="ostinato command")).to_be_visible()
            if menu.get_by_role("menuitem", name=kind).count():
                menu.get_by_role("menuitem", name=kind).click()
                expect(menu).to_have_count(0)
                lines.add(page.evaluate("navigator.clipboard.readText()"))
            else:
                assert path == "/ui/keys", f"{path} cannot be copied as {kind}"
                page.keyboard.press("Escape")
    commands = sorted(line for line in lines if line.startswith("ostinato "))
    requests = sorted(lines - set(commands))
    assert len(commands) > 15
    assert len(requests) > 15
    for line in requests:
        program, quiet, url = shlex.split(line)
        assert (program, quiet) == ("curl", "-sS")
        assert page.request.get(url).status == 200, line
    environment = os.environ | {"OSTINATO_URL": furnished.url}
    for line in commands:
        done = programs.run_command(shlex.split(line)[1:], cwd=tmp_path, env=environment)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


def test_times_are_those_of_the_viewer(furnished: Site, context: BrowserContext) -> None:
    assert context.browser is not None
    with context.browser.new_context(timezone_id="Asia/Kolkata", locale="en-GB") as elsewhere:
        page = elsewhere.new_page()
        page.goto(f"{furnished.address}/ui/jobs/order-17")
        moment = page.get_by_role("time").first
        expect(moment).to_have_text(re.compile(r"ago|just now"))
        expect(moment).to_have_attribute("title", re.compile(r"GMT\+5:30"))


def test_pages_are_used_without_a_mouse(furnished: Site, page: Page) -> None:
    page.goto(f"{furnished.address}/ui/")
    expect(page.get_by_role("heading", name="Dashboard", exact=True)).to_be_visible()
    page.keyboard.press("/")
    page.get_by_role("textbox", name="Search", exact=True).fill("dead")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{furnished.address}/ui/dead-letters")
    redrive = page.get_by_role("button", name="Redrive", exact=True).first
    redrive.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Redrive", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(redrive).to_be_focused()
    field = page.get_by_label("Function", exact=True)
    field.press_sequentially("a/b")
    expect(field).to_have_value("a/b")
    field.press("Control+k")
    expect(page.get_by_role("textbox", name="Search", exact=True)).to_be_focused()
