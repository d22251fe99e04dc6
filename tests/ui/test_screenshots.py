"""The pictures of the README and the docs: `make screenshots` takes them anew."""

from __future__ import annotations

import os
import re

import pytest
from playwright.sync_api import Page

from tests.ui import support
from tests.ui.support import Site

FOLDER = support.ROOT / "docs" / "images"
PICTURES = {
    "dashboard": ("/ui/", "light"),
    "executions": ("/ui/executions", "light"),
    "job": ("/ui/jobs/order-17?task=pay", "light"),
    "job-dark": ("/ui/jobs/order-17?task=pay", "dark"),
    "pipeline": ("/ui/pipelines/publishing", "light"),
    "item": ("/ui/items/article-5", "light"),
    "gate": ("/ui/gates/shops-closed?key=2026-11-17", "light"),
}
WANTED = os.environ.get("OSTINATO_UI_SCREENSHOTS")


@pytest.mark.skipif(not WANTED, reason="pictures are only taken when they are wanted: `make screenshots`")
@pytest.mark.parametrize("name", PICTURES)
def test_take_a_picture(furnished: Site, page: Page, name: str) -> None:
    path, scheme = PICTURES[name]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # pyright: ignore[reportArgumentType]
    page.set_viewport_size({"width": 1280, "height": 760})
    page.goto(furnished.address + path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png")


def test_every_picture_that_is_shown_is_taken() -> None:
    shown: set[str] = set()
    for page in (support.ROOT / "README.md", *(support.ROOT / "docs").rglob("*.md")):
        shown |= set(re.findall(r"images/([\w-]+)\.png", page.read_text()))
    assert shown == PICTURES.keys()
    assert {path.stem for path in FOLDER.glob("*.png")} == PICTURES.keys()
