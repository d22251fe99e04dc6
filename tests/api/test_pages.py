"""The web UI as the server serves it: to everybody, under a strict policy, and with nothing else of the machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ostinato.api import routing
from ostinato.api.http import pages
from tests.api import support
from tests.api.support import Site, problem


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A UI of one page and two files, in the place of the real one."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(f'<meta nonce="{pages.NONCE}"><script src="/ui/assets/main-1a.js"></script>')
    (tmp_path / "assets" / "main-1a.js").write_text("console.log(1)" * 100)
    (tmp_path / "assets" / "main-1a.css").write_text("a { color: red }")
    (tmp_path / "secret.txt").write_text("secret")
    (found,) = [route for route in pages.routes.declared if route.path == pages.PATH]
    monkeypatch.setattr(found.install.keywords["route"].endpoint._app, "_folder", tmp_path)  # pyright: ignore
    return tmp_path


@pytest.mark.usefixtures("built")
async def test_every_address_is_the_page_with_a_policy_of_its_own(site: Site) -> None:
    await site.key()
    stranger = site.client(address="203.0.113.7")
    nonces: set[str] = set()
    for path in ("/ui/", "/ui/executions?status=FAILED", "/ui/jobs/order-17", "/ui/gates/a%2Fb/x.y", "/ui/../v1/jobs"):
        page = await stranger.get(path.replace("/ui/..", "/ui/%2e%2e"))
        assert page.status_code == 200, path
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        (nonce,) = re.findall(r"style-src 'self' 'nonce-([\w-]{22})'", policy)
        assert f'nonce="{nonce}"' in page.text
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        nonces.add(nonce)
    assert len(nonces) == 5
    assert (await stranger.get("/")).headers["location"] == (await stranger.get("/ui")).headers["location"] == "/ui/"


@pytest.mark.usefixtures("built")
async def test_files_are_kept_for_ever_and_packed_for_those_who_take_it(site: Site) -> None:
    client = site.client()
    for headers in ({"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}):
        found = await client.get("/ui/assets/main-1a.js", headers=headers)
        assert found.text == "console.log(1)" * 100
        assert found.headers["content-type"].startswith("text/javascript")
        assert "immutable" in found.headers["cache-control"]
        assert ("content-encoding" in found.headers) == (headers["Accept-Encoding"] == "gzip")
        assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "name", ["none.js", "../secret.txt", "..%2Fsecret.txt", "%2e%2e/secret.txt", "", ".hidden", "a/b"]
)
async def test_only_files_of_the_ui_are_served(site: Site, name: str) -> None:
    found = await site.client().get(f"/ui/assets/{name}")
    assert "secret" not in found.text
    assert found.status_code == 404 or '<script src="/ui' in found.text


async def test_without_it_the_page_says_how_to_build_it(site: Site, built: Path) -> None:
    (built / "index.html").unlink()
    page = await site.client().get("/ui/jobs/some")
    assert page.status_code == 503
    assert "make ui" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_pages_take_nothing(site: Site) -> None:
    problem(await site.client().post("/ui/", json={}), 405, "method_not_allowed")
    assert {route.scope for route in pages.routes.declared} == {routing.PUBLIC}
    await support.submitted(site.client())
