"""Playbooks on the pages: see the agents and the plan, go back to a version, ingest something and find it again."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.ui import support
from tests.ui.support import Site


def test_an_ingest_is_watched_and_found_again(site: Site, page: Page) -> None:
    support.define_playbook(site)
    page.goto(f"{site.address}/ui/playbooks")
    page.get_by_role("link", name="reports", exact=True).click()
    agents = page.get_by_label("Agents of the playbook")
    expect(agents.get_by_title("place: function")).to_be_visible()
    expect(agents.locator(".react-flow__edge")).to_have_count(1)
    expect(page.get_by_label("Plan", exact=True)).to_contain_text("place → street")
    trial = page.get_by_label("Try it")
    trial.get_by_label("Data", exact=True).fill('{"text": "Thick smoke in Dyers Lane"}')
    trial.get_by_role("button", name="Ingest", exact=True).click()
    log = page.get_by_role("log")
    for status in ("loading_agents", "invoking_place", "agent_complete_street", "synthesizing", "complete"):
        expect(log.get_by_text(status, exact=True).first).to_be_visible()
    expect(log.locator("pre")).to_contain_text('"street": "Dyers Lane"')
    expect(page.get_by_role("row").filter(has_text="completed")).to_have_count(1)
    page.get_by_role("link", name="Results", exact=True).click()
    page.get_by_label("What about").fill("smoke")
    page.get_by_label("What about").press("Enter")
    article = page.get_by_role("article").filter(has_text="Thick smoke in Dyers Lane")
    expect(article).to_contain_text("text 1")  # it was found, not only the newest
    article.get_by_role("button", name="Details").click()
    expect(article.locator("pre")).to_contain_text("Dyers Lane")


def test_versions_are_compared_edited_and_gone_back_to(site: Site, page: Page) -> None:
    support.define_playbook(site)
    page.goto(f"{site.address}/ui/playbooks/reports")
    card = page.get_by_label("Definition of reports")
    expect(card).to_contain_text("The second of them")
    card.get_by_role("button", name="Edit…").click()
    field = page.get_by_role("dialog").get_by_label("Definition", exact=True)
    field.fill(field.input_value().replace("The second", "The third"))
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    expect(card).to_contain_text("The third of them")
    card.get_by_role("button", name="Versions").click()
    difference = page.locator("pre[aria-label^='From version']")
    expect(difference.locator(".diff-removed")).to_contain_text("The second of them")
    expect(difference.locator(".diff-added")).to_contain_text("The third of them")
    page.get_by_role("button", name=re.compile("Go back to version")).click()
    page.get_by_role("button", name="Go back", exact=True).click()
    expect(difference.locator(".diff-added")).to_contain_text("The second of them")


def test_a_graph_is_drawn_while_it_is_written(site: Site, page: Page) -> None:
    support.define_playbook(site)
    page.goto(f"{site.address}/ui/definitions/graph/streets")
    expect(page.get_by_label("Agents of the graph").locator(".react-flow__edge")).to_have_count(1)
    page.get_by_role("button", name="Edit…").click()
    dialog = page.get_by_role("dialog")
    drawn = dialog.get_by_role("region", name="As a graph")
    expect(drawn).to_contain_text(re.compile("Level 1.*place.*Level 2.*street", re.DOTALL))
    field = dialog.get_by_label("Definition", exact=True)
    field.fill('{"name": "streets", "edges": [{"from": "place", "to": "street"}, {"from": "street", "to": "place"}]}')
    expect(drawn.get_by_role("alert")).to_contain_text("Some agents wait for each other")
    edges = '{"from": "place", "to": "street"}, {"from": "street", "to": "risk"}'
    field.fill(f'{{"name": "streets", "edges": [{edges}]')
    expect(dialog.get_by_text("This is not JSON")).to_be_visible()
    field.fill(f'{{"name": "streets", "edges": [{edges}]}}')
    expect(drawn.get_by_title("risk: unknown")).to_be_visible()
    expect(drawn).to_contain_text(re.compile("Level 3.*risk", re.DOTALL))
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Agents of the graph").locator(".react-flow__edge")).to_have_count(2)


def test_a_question_is_asked_and_its_answer_watched(site: Site, page: Page) -> None:
    support.define_playbook(site)
    asked = {"name": "questions", "domain": "incidents", "type": "query", "agents": ["place"]}
    site.run(site.app.playbooks.define(asked))
    page.goto(f"{site.address}/ui/playbooks/questions")
    trial = page.get_by_label("Try it")
    trial.get_by_label("Data", exact=True).fill('{"text": "What burns in Mill Row"}')
    trial.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("log").locator("pre")).to_contain_text("Mill Row")
