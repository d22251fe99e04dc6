"""That pages stay true, whatever happens to the streams, and do what is meant and nothing else."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from ostinato import errors
from tests.engine.support import task
from tests.ui.support import Site


def test_a_stream_that_the_server_ends_begins_anew(site: Site, page: Page) -> None:
    """A reader that is too slow is cut off, and nobody tells it what happened meanwhile."""
    first = site.submit(task("a"), name="cut-off")
    page.goto(f"{site.address}/ui/executions?agent=cut-off")
    expect(page.get_by_role("link", name=first)).to_be_visible()
    expect(page.locator("[data-connection=live]")).to_be_visible()

    async def cut() -> None:
        assert site.hub is not None
        for follower in list(site.hub._followers["default"]):  # pyright: ignore[reportPrivateUsage]
            follower.end(errors.SlowReader(cursor=follower.cursor))

    site.run(cut())
    for _ in range(2):
        later = site.submit(task("a"), name="cut-off")
        expect(page.get_by_role("link", name=later)).to_be_visible(timeout=15_000)  # sooner than it asks by itself


def test_what_no_event_tells_of_is_shown_as_it_changes(site: Site, page: Page) -> None:
    """Definitions, for one: somebody defines a rule elsewhere, turns it off, and takes it away."""
    rule = {"name": "told-of", "pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "j", "name": "go"}}]}
    page.goto(f"{site.address}/ui/rules")
    expect(page.get_by_role("heading", name="Rules")).to_be_visible()
    expect(page.locator("[data-connection=live]")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="told-of")
    soon = 8_000  # sooner than it asks by itself
    site.run(site.app.rules.define(rule))
    expect(row).to_contain_text("enabled", timeout=soon)
    site.run(site.app.rules.define(rule | {"enabled": False}))
    expect(row).to_contain_text("disabled", timeout=soon)
    site.run(site.app.rules.remove("told-of"))
    expect(row).to_have_count(0, timeout=soon)


def test_what_is_not_json_is_not_sent(site: Site, page: Page) -> None:
    job_id = site.submit(task("ask", "approve", input={"order": "A20"}))
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=ask")
    page.locator("aside").get_by_role("button", name="Send the signal…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Payload", exact=True).fill("{by: Ada")
    dialog.get_by_role("button", name="Send", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("This is not JSON")
    dialog.get_by_label("Payload", exact=True).fill('{"by": "Ada"}')
    dialog.get_by_role("button", name="Send", exact=True).click()
    assert site.ended(job_id) == "completed"
    expect(page.locator("aside")).to_contain_text('"by": "Ada"')


def test_a_task_says_what_would_run_after_it(site: Site, page: Page) -> None:
    site.cured = False
    job_id = site.submit(
        task("reserve"),
        task("pay", "fragile"),
        task("insure", "fragile"),
        task("pack", "echo", "reserve pay"),
        task("ship", "echo", "pack insure"),
    )
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=pay")
    page.locator("aside").get_by_role("button", name="Retry", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(
        re.compile(r"Run again \(1\)pay.*after it \(1\)pack.*Still blocked.*\(1\)ship.*Not run again.*\(1\)reserve")
    )
    site.cured = True
    dialog.get_by_role("button", name="Run again", exact=True).click()
    graph = page.get_by_label("Graph of the job")
    expect(graph.get_by_title("pack: completed")).to_be_visible()
    expect(graph.get_by_title("ship: blocked")).to_be_visible()


def test_what_is_shown_of_a_task_is_of_no_other(site: Site, page: Page) -> None:
    """Until the answer is there, nothing is offered: it would be done to the task before."""
    site.cured = False
    job_id = site.submit(task("pay", "fragile"), task("ask", "approve", input={"order": "A21"}))
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=pay")
    panel = page.locator("aside")
    expect(panel.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    held: list[Route] = []
    page.route("**/graphql", lambda route: held.append(route))
    page.get_by_label("Graph of the job").get_by_title(re.compile("^ask")).click()
    expect(panel.get_by_role("heading", name="ask", exact=True)).to_be_visible()
    expect(panel.get_by_role("button", name="Retry", exact=True)).to_have_count(0)
    page.unroute("**/graphql")  # what was held goes on
    expect(panel.get_by_role("button", name="Send the signal…")).to_be_visible()


def test_a_busy_job_is_not_asked_for_at_every_event(site: Site, page: Page) -> None:
    job_id = site.submit(
        task("ask", "approve", input={"order": "A22"}), *[task(f"t{n}", "echo", "ask") for n in range(300)]
    )
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=ask")
    expect(page.locator("aside")).to_contain_text("A22")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/graphql" in request.url else None)
    page.locator("aside").get_by_role("button", name="Send the signal…").click()
    page.get_by_role("dialog").get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    payloads = [text for text in asked if "query Payloads" in text]
    assert len(payloads) <= 4, "large payloads are only read when the task itself has moved on"


def test_what_many_jobs_came_to_is_told_of_each(site: Site, page: Page) -> None:
    """One has ended before anybody looked, and another one cannot be reached when it is its turn."""
    ended = site.submit(task("a"), name="bulk")
    assert site.ended(ended) == "completed"
    running = [site.submit(task("a", "nobody-has-this"), name="bulk") for _ in range(2)]
    page.goto(f"{site.address}/ui/executions?agent=bulk")
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Cancel…", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("row").filter(has_text=ended)).to_contain_text("nothing: it has ended: completed")
    go = dialog.get_by_role("button", name="Cancel 2 of 3", exact=True)
    expect(go).to_be_enabled()
    refused = [{"message": "the database is away", "extensions": {"code": "unavailable"}}]

    def answer(route: Route) -> None:
        asked = route.request.post_data or ""
        if "mutation Cancel" in asked and running[0] in asked:
            route.fulfill(json={"data": None, "errors": refused})
        else:
            route.continue_()

    page.route("**/graphql", answer)
    go.click()
    expect(dialog.get_by_role("alert")).to_contain_text("1 of 2 done")
    expect(dialog.get_by_role("row").filter(has_text=running[0])).to_contain_text("the database is away")
    expect(dialog.get_by_role("row").filter(has_text=running[1])).to_contain_text("it is cancelled")
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    expect(page.get_by_role("row").filter(has_text=running[1])).to_contain_text("cancelled")
    page.unroute("**/graphql")


def test_a_decision_leaves_what_it_was_about_in_sight(site: Site, page: Page) -> None:
    """A second click must not decide on the next one in the inbox."""
    page.goto(f"{site.address}/ui/approvals")
    for title in ("First", "Second"):
        site.submit(task("review", "review", approval={"title": f"{title} of two"}), name="article")
    inbox, detail = page.get_by_role("list", name="Inbox"), page.get_by_label("The approval")
    expect(inbox.get_by_role("listitem").filter(has_text="of two")).to_have_count(2)
    shown = detail.get_by_role("heading").inner_text()
    expect(page).to_have_url(re.compile("job="))
    detail.get_by_role("button", name="reject", exact=True).click()
    expect(detail).to_contain_text("local: reject")
    expect(inbox.get_by_role("listitem").filter(has_text=shown)).to_have_count(0)
    expect(detail.get_by_role("heading")).to_have_text(shown)


def test_a_task_of_the_graph_is_opened_by_keyboard(site: Site, page: Page) -> None:
    job_id = site.submit(task("fetch"), task("book", "echo", "fetch"))
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    node = page.get_by_label("Graph of the job").get_by_label("Task book", exact=True)
    expect(node).to_be_visible()
    node.focus()
    page.keyboard.press("Enter")
    expect(page.locator("aside").get_by_role("heading", name="book", exact=True)).to_be_visible()


def test_a_server_that_goes_away_takes_nothing_with_it(site: Site, context: BrowserContext) -> None:
    """What was shown stays, and so does what somebody writes."""
    site.submit(task("review", "review", approval={"title": "Away?"}), name="article", jobId="away")
    assert context.browser is not None
    alone = context.browser.new_context()  # a clock that is set is that of its context
    page = alone.new_page()  # another one may not see a request fail
    page.clock.install()
    sockets: list[WebSocketRoute] = []
    away = False

    def connect(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if away:
            socket.close()
        else:
            socket.connect_to_server()

    page.route_web_socket("**/graphql", connect)
    page.goto(f"{site.address}/ui/approvals?job=away&task=review")
    notes = page.get_by_label("Notes")
    notes.fill("a long thought")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    away = True
    page.route("**/graphql", lambda route: route.abort())
    sockets[-1].close()
    lost = page.get_by_role("alert").filter(has_text="The server cannot be reached")
    for _ in range(4):  # until everything was asked again by itself, and in vain
        page.clock.fast_forward(7_000)
        page.wait_for_timeout(300)
    expect(lost).to_have_count(1)
    expect(notes).to_have_value("a long thought")
    away = False
    page.unroute("**/graphql")
    page.clock.fast_forward(10_000)
    expect(lost).to_have_count(0)
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(notes).to_have_value("a long thought")
    alone.close()


def test_what_cannot_be_looked_at_first_is_not_done(site: Site, page: Page) -> None:
    """A dialog whose preview fails says so, and is no spinner for ever."""
    job_id = site.submit(task("a", "break"))
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    resume = page.get_by_role("button", name="Resume", exact=True)
    expect(resume).to_be_visible()
    answer = {"data": None, "errors": [{"message": "the database is away", "extensions": {"code": "unavailable"}}]}

    def refuse(route: Route) -> None:
        if "mutation" in (route.request.post_data or ""):
            route.fulfill(json=answer)
        else:
            route.continue_()

    page.route("**/graphql", refuse)
    resume.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("the database is away")
    expect(dialog.get_by_role("status", name="Loading")).to_have_count(0)
    expect(dialog.get_by_role("button", name="Resume", exact=True)).to_be_disabled()
    page.unroute("**/graphql")
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog).to_contain_text("Run again (1)")
    expect(dialog.get_by_role("button", name="Resume", exact=True)).to_be_enabled()


def test_nothing_is_ended_by_a_hasty_enter(site: Site, page: Page) -> None:
    job_id = site.submit(task("ask", "approve", input={"order": "A21"}))
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
