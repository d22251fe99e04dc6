"""Pipelines on the pages: the board, an item with its history, a review, and going on from a step."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.pipelines.support import publishing
from tests.ui import support
from tests.ui.support import Site


def test_an_item_is_mended_reviewed_and_published(site: Site, page: Page) -> None:
    support.define_pipeline(site)
    site.newsroom.fail("score", terminal=True)
    page.goto(f"{site.address}/ui/pipelines")
    page.get_by_role("link", name="publishing", exact=True).click()
    page.get_by_role("button", name="New item").click()
    page.get_by_role("dialog").get_by_label("Payload", exact=True).fill('{"title": "Flood"}')
    page.get_by_role("dialog").get_by_role("button", name="Enter", exact=True).click()
    board = page.get_by_role("group", name="Board")
    failed = board.get_by_role("link").filter(has_text="failed")
    expect(failed).to_contain_text("1")
    failed.click()
    expect(page.get_by_role("heading", name="Items that are failed")).to_be_visible()
    page.get_by_role("region", name="Items").get_by_role("row").nth(1).get_by_role("link").click()
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("500 failed")
    expect(page.get_by_label("How it stands")).to_contain_text("TerminalError: score is down")
    site.newsroom.recover("score")
    steps = page.get_by_role("region", name="Steps")
    steps.get_by_role("row").filter(has_text="score").get_by_role("button", name="From here").click()
    page.get_by_role("dialog").get_by_role("button", name="Go on").click()
    review = page.get_by_role("region", name="Review")
    review.get_by_label("Notes").fill("well written")
    calls = site.newsroom.calls["fetch"]
    review.get_by_role("button", name="approve", exact=True).click()
    expect(history).to_contain_text("400 published")
    assert site.newsroom.calls["fetch"] == calls
    expect(page.get_by_role("region", name="What it is")).to_contain_text('"by": "summarize"')
    steps.get_by_role("row").filter(has_text="tag").get_by_role("button", name="Only this").click()
    expect(page.get_by_role("dialog")).to_contain_text("and no other")


def test_a_step_that_was_left_out_and_a_run_that_was_cancelled_are_told_of(site: Site, page: Page) -> None:
    """B19, B23: in the history and the steps of the item, and in how it stands."""
    course = publishing()["course"]
    course[2]["when"] = "item.title != 'News'"
    support.define_pipeline(site, "choosy", course=course)
    support.enter(site, "choosy", "choosy-1")
    support.reaches(site, "choosy-1", "pending_review")
    page.goto(f"{site.address}/ui/items/choosy-1")
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("score: its condition is false")
    row = page.get_by_role("region", name="Steps").get_by_role("row").filter(has_text="score")
    expect(row).to_contain_text("only if item.title != 'News'")
    expect(row).to_contain_text("skipped")
    site.run(site.run(site.app.job("choosy-1:1")).cancel("stop it", actor="ops"))
    expect(page.get_by_label("How it stands")).to_contain_text("Cancelled by ops: stop it")
    expect(history).to_contain_text("cancelled, by ops: stop it")


def count(page: Page, status: str, items: int) -> None:
    """The board says how many items are in a status."""
    expect(page.get_by_role("link", name=f"{status} {items} items", exact=True)).to_be_visible()


def dialog(
    page: Page, opens: str, confirm: str, fields: dict[str, str] | None = None, *, within: Locator | None = None
) -> None:
    """Open an action, fill it in, and do it."""
    (within or page).get_by_role("button", name=opens, exact=True).first.click()
    shown = page.get_by_role("dialog")
    for label, text in (fields or {}).items():
        shown.get_by_label(label).fill(text)
    shown.get_by_role("button", name=confirm, exact=True).click()
    expect(shown).to_have_count(0)


def test_items_arrive_for_review_while_one_looks_and_people_decide(site: Site, page: Page) -> None:
    """US-5: approve with notes and an edit, reject, and decide on many at once after a look at what that would do."""
    support.define_pipeline(site, "desk")
    page.goto(f"{site.address}/ui/pipelines/desk")
    count(page, "pending_review", 0)
    ids = ["d1", "d2", "d3", "d4"]
    support.enter(site, "desk", *ids)
    count(page, "pending_review", 4)
    page.get_by_role("link", name="pending_review 4 items", exact=True).click()
    items = page.get_by_role("region", name="Items")
    expect(items.get_by_role("row")).to_have_count(5)
    items.get_by_role("link", name="d1", exact=True).click()
    expect(page.get_by_label("How it stands")).to_contain_text("Waits for people to decide in review")
    dialog(page, "Move…", "Move", {"Reason": "mine"})
    review, history = page.get_by_role("region", name="Review"), page.get_by_role("region", name="History")
    expect(history).to_contain_text("310 in_review")
    review.get_by_label("Edit it before you decide").fill('{"title": "Better news"}')
    review.get_by_label("Notes").fill("a better title")
    review.get_by_role("button", name="approve", exact=True).click()
    expect(history).to_contain_text("400 published")
    expect(history.get_by_role("listitem").first).to_contain_text("a better title")
    expect(page.get_by_label("What it is")).to_contain_text("Better news")
    expect(review).to_have_count(0)
    expect(page.get_by_role("button", name="Move…")).to_be_visible()
    page.get_by_role("link", name="d1:1", exact=True).click()
    page.get_by_role("link", name="item d1", exact=True).click()
    page.goto(f"{site.address}/ui/items/d2")
    review.get_by_label("Notes").fill("nobody was asked")
    review.get_by_role("button", name="reject", exact=True).click()
    expect(history.get_by_role("listitem").first).to_contain_text(re.compile("540 rejected.*nobody was asked"))
    page.goto(f"{site.address}/ui/items/d3")
    review.get_by_role("button", name="re-enrich", exact=True).click()
    expect(page.get_by_role("region", name="Runs").get_by_role("row")).to_have_count(3)
    support.reaches(site, "d3", "pending_review")
    page.goto(f"{site.address}/ui/pipelines/desk")
    page.get_by_role("button", name="Act on all of them…").click()
    bulk = page.get_by_role("dialog")
    bulk.get_by_label("What", exact=True).click()
    page.get_by_role("option", name="Decide", exact=True).click()
    bulk.get_by_label("Decision", exact=True).click()
    page.get_by_role("option", name="approve", exact=True).click()
    bulk.get_by_role("button", name="Preview").click()
    expect(bulk).to_contain_text("Possible for 2 of 4 items.")
    expect(bulk.get_by_role("row").filter(has_text="d2")).to_contain_text("no longer waiting")
    bulk.get_by_role("button", name="Decide: 2 of 4").click()
    count(page, "published", 3)


def test_a_failed_item_is_resumed_from_a_step_and_nothing_before_it_is_done_again(site: Site, page: Page) -> None:
    """US-3 and US-4: the retry is in sight, its policy is changed, and what was done is kept."""
    support.define_pipeline(site, "night")
    room = site.newsroom
    room.fail("tag", 1)
    support.enter(site, "night", "n1")
    support.reaches(site, "n1", "to_tag")
    page.goto(f"{site.address}/ui/items/n1")
    stands = page.get_by_label("How it stands")
    expect(stands).to_contain_text(re.compile("Retry scheduled for .*tag failed with ConnectionError"))
    expect(stands).to_contain_text("ConnectionError: tag is down")
    room.fail("tag", terminal=True)
    dialog(page, "Resume from…", "Go", {"Reason": "once more"})
    expect(page.get_by_role("region", name="History")).to_contain_text("500 failed")
    expect(stands).to_contain_text("Failed in tag")
    room.recover("tag")
    before = dict(room.calls)
    page.get_by_role("button", name="Resume from…").click()
    shown = page.get_by_role("dialog")
    expect(shown.get_by_label("From", exact=True)).to_have_value("tag")
    shown.get_by_role("button", name="Go", exact=True).click()
    expect(stands).to_contain_text("Waits for people to decide")
    assert {name: room.calls[name] - before[name] for name in ("fetch", "score", "summarize", "tag")} == {
        "fetch": 0, "score": 0, "summarize": 0, "tag": 1,
    }  # fmt: skip
    steps = page.get_by_role("region", name="Steps")
    steps.get_by_role("button", name="Details of tag").click()
    expect(steps).to_contain_text("run 3, attempt 1")
    dialog(page, "Roll back…", "Roll back", {"Reason": "withdrawn"})
    expect(page.get_by_role("region", name="Runs")).to_contain_text("taken back")


def test_the_queue_is_processed_and_the_rules_of_a_pipeline_are_changed(site: Site, page: Page) -> None:
    support.define_pipeline(site, "day")
    support.enter(site, "day", "q1", "q2", hold=True)
    page.goto(f"{site.address}/ui/pipelines/day?show=held")
    expect(page.get_by_role("region", name="Items").get_by_role("row")).to_have_count(3)
    dialog(page, "Process queue…", "Process", {"At most": "1"})
    count(page, "pending_review", 1)
    count(page, "discovered", 1)
    page.get_by_role("tab", name="Health").click()
    expect(page.get_by_role("img", name="Items by status: 1 discovered, 1 pending_review")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="summarize")).to_contain_text("0 %")
    page.get_by_role("tab", name="Moves").click()
    expect(page.get_by_role("row").filter(has_text="121")).to_contain_text("may end as irrelevant")
    page.get_by_role("tab", name="Definition").click()
    policies = page.get_by_role("region", name="Retry policies")
    tag = policies.get_by_role("row").filter(has_text="tag")
    expect(tag).to_contain_text("1 min, 2 min, 4 min")
    dialog(page, "Change…", "Change", {"Attempts, the first included": "5"}, within=tag)
    expect(tag).to_contain_text("1 min, 2 min, 4 min, 8 min")
    dialog(page, "Reset", "Reset", within=tag)
    expect(tag).not_to_contain_text("8 min")
    support.define_pipeline(site, "day", description="By day")
    page.reload()
    page.get_by_role("button", name="Versions").click()
    expect(page.locator(".diff-added")).to_contain_text("By day")
    page.get_by_role("button", name="Go back to version 1").click()
    page.get_by_role("button", name="Go back", exact=True).click()
    expect(page.locator("pre[aria-label^='From version']")).to_contain_text("− ")
    page.goto(f"{site.address}/ui/items/q2")
    expect(page.get_by_label("How it stands")).to_contain_text("Held back")
    expect(page.get_by_text("version 1 (the newest is 3)")).to_be_visible()
    dialog(page, "Migrate…", "Migrate")
    expect(page.get_by_text("the newest is 3")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.get_by_label("Search", exact=True).fill("q1")
    page.get_by_role("button", name=re.compile("^Item q1")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("q1")
    page.goto(f"{site.address}/ui/")
    expect(page.get_by_role("region", name="Pipelines").get_by_role("row").filter(has_text="day")).to_contain_text("1")
