"""A real server on each database, and a real Chromium that looks at it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from devtools import browser as chromium
from devtools import postgres as pg
from ostinato.api import access
from ostinato.api.live import streams
from tests.ui import support

VIEWPORT: ViewportSize = {"width": 1360, "height": 850}

expect.set_options(timeout=30_000)  # machines on which tests run are busy


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Last of all: Playwright keeps an event loop running, and no other can run in the process from then on."""
    items.sort(key=lambda item: "tests/ui/" in item.nodeid)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.find()
    assert path is not None, chromium.HOW
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Site]:
    """A server with a worker, that serves this machine without a key."""
    with _opened(request, tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def locked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Site]:
    """Another one, for which there are keys. It looks often whether they still work."""
    with pytest.MonkeyPatch.context() as patch, _opened(request, tmp_path_factory) as made:
        patch.setattr(access, "REMEMBERED_SECONDS", 0.2)
        patch.setattr(streams, "CHECK_SECONDS", 0.2)
        made.admin = made.key("admin")
        yield made


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Site]:
    """One with something on every page."""
    with support.Site(f"sqlite:///{tmp_path_factory.mktemp('ui')}/ui.db") as made:
        support.furnish(made)
        yield made


@contextlib.contextmanager
def _opened(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Iterator[support.Site]:
    if request.param == "sqlite":
        with support.Site(f"sqlite:///{folders.mktemp('ui')}/ui.db") as made:
            yield made
        return
    server: pg.PostgresServer | pg.ForeignServer = request.getfixturevalue("postgres")
    url = server.create_database()
    with support.Site(url) as made:
        yield made
    pg.drop_database(url, server.url())


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all tests: what it has loaded once it need not load again."""
    made = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    made.grant_permissions(["clipboard-read", "clipboard-write"])
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab in which nothing may go wrong: no error in a script, nothing that the server's policy refuses."""
    with _tab(context) as opened:
        yield opened


@pytest.fixture
def clocked_page(browser: Browser) -> Iterator[Page]:
    """One whose clock may be set: that is the clock of its context, and of every tab which is opened in it later."""
    with browser.new_context(viewport=VIEWPORT, reduced_motion="reduce") as alone, _tab(alone) as opened:
        yield opened


@contextlib.contextmanager
def _tab(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield opened
    opened.close()
    assert [text for text in complaints if "status of 401" not in text] == []
