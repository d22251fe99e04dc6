"""What people do on the pages, in a real browser against a real server, on both databases."""

from __future__ import annotations

import datetime
import re

from playwright.sync_api import Page, expect

from tests.engine.support import task
from tests.ui import support
from tests.ui.support import Site


def test_a_job_is_watched_while_it_runs(site: Site, page: Page) -> None:
    job_id = site.submit(
        task("fetch", "stepped"), task("ask", "approve", "fetch", input={"order": "A18"}), task("book", "echo", "ask")
    )
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    graph = page.get_by_label("Graph of the job")
    expect(graph.get_by_title("ask: waiting")).to_be_visible()
    expect(graph.get_by_title("book: blocked")).to_be_visible()
    expect(page.get_by_label("What to look at")).to_contain_text("It awaits the signal 'approval'")
    graph.get_by_title("ask: waiting").click()
    panel = page.get_by_label("Task ask", exact=True).and_(page.locator("aside"))
    expect(panel).to_contain_text("A18")
    panel.get_by_role("button", name="Send the signal…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Payload", exact=True).fill('{"by": "Ada"}')
    dialog.get_by_role("button", name="Send", exact=True).click()
    expect(graph.get_by_title("book: completed")).to_be_visible()
    expect(panel).to_contain_text('"by": "Ada"')
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    graph.get_by_title("fetch: completed").click()
    steps = page.locator("aside").get_by_role("button", name=re.compile("^clean"))
    steps.click()
    expect(page.locator("aside")).to_contain_text("clean is done")


def test_a_job_as_it_was_and_what_happened(site: Site, page: Page) -> None:
    job_id = site.submit(task("a"), task("b", "echo", "a"))
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}?at=1")
    graph = page.get_by_label("Graph of the job")
    expect(graph.get_by_title("a: blocked")).to_be_visible()
    page.get_by_role("button", name="Now", exact=True).click()
    expect(graph.get_by_title("b: completed")).to_be_visible()
    page.get_by_label("Critical path").check(force=True)
    expect(graph.locator(".edge-critical")).to_have_count(1)
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("group", name="Events")).to_contain_text("Job Created")
    page.get_by_label("Only events of this type or task").fill("job comp")
    page.get_by_role("button", name=re.compile("Job Completed")).click()
    expect(page.locator("pre")).to_contain_text("taskStatuses")
    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_role("img", name=re.compile("Attempt 1: completed"))).to_have_count(2)
    page.get_by_role("tab", name="Tasks").click()
    expect(page.get_by_role("group", name="Tasks").get_by_role("button")).to_have_count(2)


def test_times_in_the_data_of_events_are_told_as_times(site: Site, page: Page) -> None:
    """The engine writes microseconds, which can still be copied."""
    asks = {"title": "In time?", "deadline": 7200}
    job_id = site.submit(task("review", "review", approval=asks), name="article")
    page.goto(f"{site.address}/ui/jobs/{job_id}?tab=events")
    line = page.get_by_role("group", name="Events").get_by_role("button").filter(has_text="Approval Requested")
    expect(line).to_contain_text(re.compile(r"due in (1|2) h"))
    expect(line).not_to_contain_text("dueAt")
    line.click()
    raw = page.locator("pre")
    expect(raw).to_contain_text(re.compile(r'"dueAt": \d{16}'))
    due = page.get_by_role("time").filter(has_text=re.compile(r"in (1|2) h")).last
    exact = due.get_attribute("title")
    assert exact
    expect(page.get_by_text(exact, exact=True)).to_be_visible()
    page.get_by_role("button", name=re.compile("Copy the approval requested")).click()
    assert page.evaluate("navigator.clipboard.readText()") == raw.inner_text()


def test_what_ran_at_a_moment_had_run_until_then(site: Site, clocked_page: Page) -> None:
    page = clocked_page
    job_id = site.submit(task("a"), task("b", "echo", "a"))
    site.ended(job_id)
    page.clock.install(time=datetime.datetime.now() + datetime.timedelta(hours=3))
    page.goto(f"{site.address}/ui/jobs/{job_id}?at=3")
    node = page.get_by_label("Graph of the job").get_by_title("a: processing")
    expect(node).to_contain_text("processing · 0 ms")
    expect(page.get_by_label("What to look at")).to_have_count(0)
    page.get_by_role("tab", name="Tasks").click()
    expect(page.get_by_role("group", name="Tasks").get_by_role("button").first).to_contain_text("0 ms")
    slider = page.get_by_role("slider", name="Show the job as of this event")
    slider.press("End")
    expect(page.get_by_role("group", name="Tasks").get_by_role("button").last).to_contain_text("completed")
    expect(page).not_to_have_url(re.compile("at="))


def test_a_failed_job_is_compared_cured_and_resumed(site: Site, page: Page) -> None:
    site.cured = True
    good = site.submit(task("pay", "fragile", input={"order": "A1"}), task("ship", "echo", "pay"), name="order")
    site.ended(good)
    site.cured = False
    bad = site.submit(task("pay", "fragile", input={"order": "A2"}), task("ship", "echo", "pay"), name="order")
    site.ended(bad)
    page.goto(f"{site.address}/ui/jobs/{bad}?tab=compare&other={good}")
    expect(page.get_by_text("2 of 2 tasks differ")).to_be_visible()
    expect(page.get_by_label("What to look at")).to_contain_text("TerminalError: the card for order A2 has expired")
    page.get_by_role("button", name="Data of pay", exact=True).click()
    difference = page.get_by_label("Data of pay, from the other run to this one")
    expect(difference.locator(".diff-removed").first).to_contain_text('"order": "A1"')
    expect(difference.locator(".diff-added").first).to_contain_text('"order": "A2"')
    site.cured = True
    page.get_by_role("button", name="Resume", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Run again (1)")
    expect(dialog).to_contain_text("Run after them (1)")
    dialog.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.get_by_text("1 of 2 tasks differ")).to_be_visible()


def test_a_task_is_retried_with_another_input_or_skipped(site: Site, page: Page) -> None:
    site.cured = False
    job_id = site.submit(task("pay", "fragile", input={"order": "A3"}), task("ship", "echo", "pay"))
    site.ended(job_id)
    page.goto(f"{site.address}/ui/jobs/{job_id}?task=pay")
    panel = page.locator("aside")
    panel.get_by_role("button", name="Retry", exact=True).click()
    page.get_by_role("dialog").get_by_label("Input", exact=True).fill('{"order": "A4"}')
    page.get_by_role("button", name="Run again", exact=True).click()
    expect(panel).to_contain_text("order A4 has expired")
    skip = page.get_by_role("dialog", name="Go on without pay")
    panel.get_by_role("button", name="Skip", exact=True).click()
    skip.get_by_label("Reason, for the history").fill("paid in cash")
    skip.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_label("Graph of the job").get_by_title("ship: completed")).to_be_visible()


def test_the_history_is_filtered_paged_and_acted_upon(site: Site, page: Page) -> None:
    site.cured = False
    running = [site.submit(task("a", "nobody-has-this"), name="night", tags={"shop": "north"}) for _ in range(2)]
    failed = site.submit(task("pay", "fragile"), name="day", correlationId="c-17")
    site.ended(failed)
    page.goto(f"{site.address}/ui/executions")
    rows = page.get_by_role("row")
    page.get_by_label("Agent or job name").fill("night")
    page.get_by_label("Agent or job name").press("Enter")
    expect(rows).to_have_count(3)
    expect(page).to_have_url(re.compile("agent=night"))
    page.get_by_label(f"Choose {running[0]}").check()
    page.get_by_role("button", name="Cancel…", exact=True).click()
    page.get_by_role("button", name="Cancel 1 of 1").click()
    expect(rows.filter(has_text="cancelled")).to_have_count(1)
    page.goto(f"{site.address}/ui/executions?correlation=c-17")
    expect(rows.filter(has_text="failed")).to_have_count(1)
    page.get_by_role("link", name=failed).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("day")
    page.goto(f'{site.address}/ui/executions?agent=night&status=["RUNNING"]&from=2026-01-01T00:00:00Z&tag=shop%3Dnorth')
    expect(rows).to_have_count(2)
    page.goto(f"{site.address}/ui/executions?agent=night&until=2026-01-01T00:00:00Z")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    submitted = site.submit(task("a"), name="appears-by-itself")
    page.goto(f"{site.address}/ui/executions?agent=appears-by-itself")
    expect(page.get_by_role("link", name=submitted)).to_be_visible()
    again = site.submit(task("a"), name="appears-by-itself")
    expect(page.get_by_role("link", name=again)).to_be_visible()


def test_a_dead_letter_is_redriven(site: Site, page: Page) -> None:
    site.cured = False
    job_id = site.submit(task("pay", "fragile", input={"order": "A9"}), name="order")
    site.ended(job_id)
    page.goto(f"{site.address}/ui/dead-letters?job={job_id}")
    expect(page.get_by_text("the card for order A9 has expired")).to_be_visible()
    page.get_by_role("button", name="Details").click()
    expect(page.locator("pre").last).to_contain_text('"order": "A9"')
    site.cured = True
    page.get_by_role("button", name="Redrive", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Redrive", exact=True).click()
    expect(page.get_by_text("No dead letter matches")).to_be_visible()
    assert site.ended(job_id) == "completed"


def test_the_palette_leads_to_a_job(site: Site, page: Page) -> None:
    job_id = site.submit(task("a"))
    page.goto(f"{site.address}/ui/")
    expect(page.get_by_role("heading", name="Dashboard", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("textbox", name="Search", exact=True).fill(job_id)
    page.get_by_role("button", name=f"Job {job_id}").click()
    expect(page).to_have_url(f"{site.address}/ui/jobs/{job_id}")
    page.get_by_role("button", name="Use the dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    page.get_by_role("button", name="Use the light colours").click()
    page.get_by_role("button", name="Copy as").click()
    page.get_by_role("menuitem", name="curl", exact=True).click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"curl -sS {site.address}/v1/jobs/{job_id}"


def test_a_gate_names_those_who_are_missing(site: Site, page: Page) -> None:
    site.run(site.app.gates.define({"name": "shops-closed", "members": ["north", "south", "west"]}))
    site.run(site.app.gate("shops-closed").arrive("monday", "north", {"takings": 1200}))
    page.goto(f"{site.address}/ui/gates")
    expect(page.get_by_role("row").filter(has_text="1/3")).to_contain_text("monday")
    page.get_by_role("link", name="monday").click()
    status = page.get_by_label("Key monday")
    expect(status.get_by_role("listitem")).to_have_text(["south", "west"])
    site.run(site.app.gate("shops-closed").arrive("monday", "south"))
    expect(status.get_by_role("listitem")).to_have_text(["west"])
    status.get_by_role("button", name="Open without them…").click()
    page.get_by_role("dialog").get_by_label("Reason, for the history").fill("holiday")
    page.get_by_role("dialog").get_by_role("button", name="Open", exact=True).click()
    expect(status).to_contain_text("(holiday)")
    expect(status.get_by_text("open", exact=True)).to_be_visible()


def test_the_engines_own_executions_are_shown_if_wanted(site: Site, page: Page) -> None:
    site.run(site.app.gates.define({"name": "own", "members": ["north", "south"]}))
    site.run(site.app.gate("own").arrive("friday", "north"))
    site.submit(task("a"), name="of-users")
    page.goto(f"{site.address}/ui/executions")
    expect(page.get_by_role("row").filter(has_text="of-users").first).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="gate:own")).to_have_count(0)
    page.get_by_label("The engine's own too").check()
    expect(page.get_by_role("row").filter(has_text="gate:own")).to_be_visible()


def test_a_gate_leads_to_what_it_has_triggered(site: Site, page: Page) -> None:
    booked = {"job": {"name": "day-end", "tasks": [{"taskId": "book", "name": "echo"}]}}
    site.run(site.app.gates.define({"name": "day", "members": ["north", "south"], "trigger": [booked]}))
    site.run(site.app.gate("day").arrive("friday", "north"))
    page.goto(f"{site.address}/ui/gates/day?key=friday")
    status = page.get_by_label("Key friday")
    expect(status).to_contain_text(re.compile("1 of 2 have reported, the first .*What it will trigger.*blocked"))
    status.get_by_role("button", name="Report…").click()
    page.get_by_role("dialog").get_by_role("button", name="Report", exact=True).click()
    expect(status).to_contain_text(re.compile("2 of 2 have reported; open .* by south"))
    expect(status.get_by_text("What it has triggered")).to_be_visible()
    status.get_by_role("row").filter(has_text="the job").get_by_role("link").last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("day-end")


def test_e13_a_gate_shows_why_its_reports_could_not_be_put_together(site: Site, page: Page) -> None:
    """E13: the error is on the page of the gate."""
    broken = {"x": {"how": "jsonata", "expression": "$error('no luck')"}}
    site.run(site.app.gates.define({"name": "broken", "members": ["north"], "aggregate": broken}))
    site.run(site.app.gate("broken").arrive("friday", "north"))
    page.goto(f"{site.address}/ui/gates/broken?key=friday")
    status = page.get_by_label("Key friday")
    expect(status.get_by_role("alert")).to_contain_text("ExpressionFailed: ", timeout=15_000)
    expect(status.get_by_text("failed", exact=True)).to_be_visible()


def test_a_rule_is_turned_off(site: Site, page: Page) -> None:
    rule = {"name": "sold", "pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "j", "name": "go"}}]}
    site.run(site.app.rules.define(rule))
    page.goto(f"{site.address}/ui/rules?name=sold")
    page.get_by_role("button", name="Turn off", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Turn off", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="sold")).to_contain_text("disabled")


def test_people_approve_and_reject(site: Site, page: Page) -> None:
    jobs = {
        title: site.submit(
            task("write", input={"text": title}),
            task("review", "review", "write", input={"text": title}, approval={"title": title, "allowEdit": True}),
            task("publish", "echo", "review"),
            name="article",
        )
        for title in ("Bridge closed", "Nothing new")
    }
    page.goto(f"{site.address}/ui/approvals")
    inbox = page.get_by_role("list", name="Inbox")
    expect(inbox.get_by_role("listitem").filter(has_text="Bridge closed")).to_be_visible()
    detail = page.get_by_label("The approval")
    inbox.get_by_role("link").filter(has_text="Bridge closed").click()
    expect(detail.get_by_role("heading")).to_have_text("Bridge closed")
    expect(detail.locator("pre").last).to_contain_text('"write"')
    detail.get_by_label("Edit it before you decide").fill('{"text": "Old bridge closed"}')
    detail.get_by_label("Notes").fill("fine now")
    detail.get_by_role("button", name="approve", exact=True).click()
    expect(detail).to_contain_text("local: approve (after an edit) – fine now")
    expect(inbox.get_by_role("listitem").filter(has_text="Bridge closed")).to_have_count(0)
    assert site.ended(jobs["Bridge closed"]) == "completed"
    inbox.get_by_role("link").filter(has_text="Nothing new").click()
    expect(detail.get_by_role("heading")).to_have_text("Nothing new")
    expect(detail.locator("pre").first).to_contain_text("Nothing new")
    detail.get_by_role("button", name="reject", exact=True).click()
    expect(detail).to_contain_text("local: reject")
    assert site.ended(jobs["Nothing new"]) == "failed"


def test_the_dashboard_says_what_is_stuck_and_why(site: Site, clocked_page: Page) -> None:
    """An hour from now: a job that waits, though one of its tasks, which nobody needs, has failed."""
    page = clocked_page
    site.cured = False
    stuck = site.submit(
        task("decorate", "fragile", input={"order": "A30"}, optional=True),
        task("ask", "approve", "decorate", input={"order": "A30"}, onDependencyFailure="run"),
        name="stuck",
        jobId=f"stuck-{site.url[:6]}",
    )
    later = site.submit(task("sign", "sign", approval={"title": "Sign it?"}), name="letter")
    site.run(waits(site, stuck, "ask"))
    site.run(waits(site, later, "sign"))
    page.clock.install(time=datetime.datetime.now() + datetime.timedelta(hours=2))
    page.goto(f"{site.address}/ui/")
    expect(page.get_by_role("link", name=re.compile("waiting$")).filter(has_text="Approvals")).to_be_visible()
    for title in ("Running", "Ready", "To be retried", "Waiting for people", "Dead letters", "Workers alive"):
        expect(page.get_by_text(title, exact=True).first).to_be_visible()
    workers = page.get_by_role("main").get_by_role("link").filter(has_text="Workers alive")
    expect(workers).to_contain_text("1of 1 known")  # and not the server's own, which runs nobody's functions
    overdue = page.get_by_role("link", name=re.compile("for more than an hour"))
    overdue.click()
    row = page.get_by_role("row").filter(has_text=stuck)
    expect(row).to_contain_text("running")
    row.get_by_role("link", name=stuck).click()
    expect(page.get_by_label("What to look at")).to_contain_text("It awaits the signal 'approval'")


async def waits(site: Site, job_id: str, task_id: str) -> None:
    job = await site.app.job(job_id)

    async def look() -> bool:
        return (await job.task(task_id)).task.state == "waiting"

    await support.until(look)
