"""The first page: what it says, to whom, and that a browser runs nothing of it."""

from __future__ import annotations

import base64
import hashlib
import re

from tests.api import support
from tests.api.support import Site
from tests.engine.support import job, task


async def test_on_a_server_without_keys_it_shows_the_newest_jobs(site: Site) -> None:
    client = site.client()
    assert "no jobs yet" in (await client.get("/")).text
    await support.submitted(client, job(task("a"), name="evening report"))
    page = await client.get("/")
    assert "evening report" in page.text
    assert page.headers["content-type"].startswith("text/html")


async def test_with_keys_it_shows_nothing_of_anybody(site: Site) -> None:
    await support.submitted(await site.admin(), job(task("a"), name="evening report"))
    for client in (site.client(), site.client(address="203.0.113.7"), await site.admin("other")):
        page = await client.get("/")
        assert page.status_code == 200
        assert "evening report" not in page.text
        assert "Authorization: Bearer" in page.text


async def test_its_style_is_the_one_that_its_policy_allows(site: Site) -> None:
    page = await site.client().get("/")
    style = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    assert len(style) == 1
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    assert page.headers["content-security-policy"].startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "style=" not in page.text
    assert "<script" not in page.text
