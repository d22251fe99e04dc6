"""What people do with a telephone in their hand, where much of a page is out of sight."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.engine.support import task
from tests.ui.support import Site

LONG = "a-name-of-which-nobody-thought-that-it-would-be-so-long-" * 2


@pytest.fixture(params=["sqlite"])
def site(request: pytest.FixtureRequest) -> Site:
    """How a page looks does not depend on the database."""
    return request.getfixturevalue("furnished")


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size({"width": 400, "height": 800})
    return page


def test_a_graph_opens_where_one_should_look_and_can_be_read(site: Site, phone: Page) -> None:
    tasks = [task(f"t{n}", "break" if n == 6 else "echo", f"t{n - 1}" if n else "") for n in range(12)]
    job_id = site.submit(*tasks, name="chain")
    assert site.ended(job_id) == "failed"
    phone.goto(f"{site.address}/ui/jobs/{job_id}")
    failed = phone.get_by_label("Graph of the job").get_by_title("t6: failed")
    expect(failed).to_contain_text("t6")
    expect(failed).to_be_in_viewport(ratio=0.99)
    assert (failed.bounding_box() or {"width": 0})["width"] > 120, "its words are too small to read"
    failed.click()
    panel = phone.get_by_role("complementary", name="Task t6")
    expect(panel.get_by_role("button", name="Retry")).to_be_in_viewport()
    phone.go_back()
    expect(panel).to_have_count(0)


def test_a_long_chain_can_be_read_on_a_large_screen_too(site: Site, page: Page) -> None:
    tasks = [task(f"t{n}", "nobody-has-this", f"t{n - 1}" if n else "") for n in range(30)]
    job_id = site.submit(*tasks, name="chain")
    page.goto(f"{site.address}/ui/jobs/{job_id}")
    first = page.get_by_label("Graph of the job").get_by_title(re.compile("^t0: "))
    expect(first).to_contain_text("t0")
    expect(first).to_be_in_viewport(ratio=0.99)


def test_what_is_chosen_in_the_inbox_comes_into_sight(site: Site, phone: Page) -> None:
    for number in range(9):
        site.submit(task("review", "review", approval={"title": f"Question {number}"}), name="article")
    phone.goto(f"{site.address}/ui/approvals")
    detail = phone.get_by_label("The approval")
    expect(detail.get_by_role("heading")).to_be_visible()
    expect(detail).not_to_be_in_viewport()
    phone.get_by_role("link", name="Question 0").click()
    expect(detail.get_by_role("heading", name="Question 0")).to_be_in_viewport()


def test_long_names_ids_and_tags_do_not_widen_a_page(site: Site, phone: Page) -> None:
    job_id = site.submit(
        task(f"t-{LONG}", "break", input={"message": LONG}), name=LONG, jobId=f"j-{LONG}", tags={LONG[:60]: LONG}
    )
    site.ended(job_id)
    for path in (f"/jobs/{job_id}?task=t-{LONG}", f"/jobs/{job_id}?tab=events", "/executions", "/dead-letters", "/"):
        phone.goto(f"{site.address}/ui{path}")
        expect(phone.get_by_text(LONG[:40]).first).to_be_attached()
        assert phone.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_the_menu_can_be_passed_by(site: Site, page: Page) -> None:
    page.goto(f"{site.address}/ui/dead-letters")
    expect(page.get_by_role("button", name="Redrive all…")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Copy as")).to_be_focused()
    expect(page).to_have_title("Dead letters · Ostinato")
