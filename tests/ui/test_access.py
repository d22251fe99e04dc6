"""Who may see what: signing in with a key, links of others, and keys that are made and revoked on the page."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from tests.engine.support import task
from tests.ui.support import Site


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_a_link_leads_where_it_should_after_signing_in(locked: Site, page: Page) -> None:
    job_id = locked.submit(task("a"), name="evening report")
    page.goto(f"{locked.address}/ui/jobs/{job_id}?tab=tasks")
    expect(page.get_by_role("heading", name="Ostinato")).to_be_visible()
    expect(page.get_by_text("evening report")).not_to_be_attached()
    sign_in(page, "ost_0123456789abcdef_" + "0" * 64)
    expect(page.get_by_text("This key does not work")).to_be_visible()
    sign_in(page, locked.admin)
    expect(page.get_by_role("heading", level=1)).to_contain_text("evening report")
    assert locked.admin not in page.url
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text("evening report")
    page.get_by_role("button", name="Who you are").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert page.evaluate("JSON.stringify([sessionStorage, localStorage, document.cookie])").count("ost_") == 0


def test_the_link_of_another_tenant_shows_nothing(locked: Site, page: Page) -> None:
    job_id = locked.submit(task("a"), name="a secret plan")
    page.goto(f"{locked.address}/ui/jobs/{job_id}")
    sign_in(page, locked.key("admin", tenant="other"))
    expect(page.get_by_text("There is no such job here")).to_be_visible()
    page.get_by_role("link", name="Executions", exact=True).click()
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page.get_by_text("a secret plan")).not_to_be_attached()


def test_who_may_only_read_is_offered_nothing_else(locked: Site, page: Page) -> None:
    job_id = locked.submit(task("a", "nobody-has-this"))
    page.goto(f"{locked.address}/ui/jobs/{job_id}?task=a")
    sign_in(page, locked.key("jobs:read"))
    expect(page.locator("aside")).to_contain_text("no live worker has registered function 'nobody-has-this'")
    for name in ("Cancel", "Skip", "Resume"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("link", name="Keys")).to_have_count(0)


def test_keys_are_made_and_revoked(locked: Site, page: Page, context: BrowserContext) -> None:
    page.goto(f"{locked.address}/ui/keys")
    sign_in(page, locked.admin)
    page.get_by_role("button", name="New key").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("night shift")
    page.get_by_role("button", name="Make it").click()
    made = page.locator("[data-key]")
    expect(made).to_contain_text("ost_")
    text = made.inner_text()
    other = context.new_page()
    other.goto(f"{locked.address}/ui/workers")
    sign_in(other, text)
    expect(other.get_by_role("heading", name="Workers and functions")).to_be_visible()
    expect(other.locator("[data-connection=live]")).to_be_visible()
    page.bring_to_front()  # a tab behind another one is drawn seldom
    row = page.get_by_role("row").filter(has_text="night shift")
    row.get_by_role("button", name="Revoke", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("revoked")
    expect(other.get_by_role("button", name="Sign in")).to_be_visible()
    other.close()


def test_b11_admins_change_the_retention_and_others_read_it(locked: Site, page: Page) -> None:
    """B11: a place in the UI for the setting of the tenant."""
    page.goto(f"{locked.address}/ui/workers")
    sign_in(page, locked.admin)
    kept = page.locator("[data-retention]")
    expect(kept).to_contain_text("Finished jobs are kept for ever.")
    kept.get_by_role("button", name="Change…").click()
    page.get_by_label("Days after the end of a job").fill("30")
    page.get_by_role("button", name="Change it").click()
    expect(kept).to_contain_text("Finished jobs are kept for 30 days.")
    expect(kept).to_contain_text("Their idempotency keys are kept for ever.")
    page.get_by_role("button", name="Who you are").click()
    page.get_by_role("menuitem", name="Sign out").click()
    sign_in(page, locked.key("jobs:read"))
    expect(page.locator("[data-retention]")).to_contain_text("for 30 days")
    expect(page.get_by_role("button", name="Change…")).to_have_count(0)
