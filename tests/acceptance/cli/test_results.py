"""`ostinato results`: listed, shown and searched, in words and in JSON."""

from __future__ import annotations

import pytest

from ostinato import EngineOptions, Ostinato
from tests.acceptance.cli.support import Shell


@pytest.fixture
async def saved(shell: Shell) -> str:
    app = Ostinato(shell.url, options=EngineOptions(work=False, maintain=False))
    async with app:
        await app.results.save("cli-1", {"summary": "a noisy neighbour"}, domain="from-the-cli")
        made = await app.results.save("cli-2", {"summary": "a burst water main", "severity": 4}, domain="from-the-cli")
        return made.result_id


async def test_list_show_and_search(shell: Shell, saved: str) -> None:
    listed = shell.json("results", "ls", "--domain", "from-the-cli")
    assert [item["jobId"] for item in listed["results"]] == ["cli-2", "cli-1"]
    assert listed["cursor"] is None
    here = ("results", "ls", "--domain", "from-the-cli")
    page = shell.json(*here, "--limit", "1")
    assert len(page["results"]) == 1
    assert shell.json(*here, "--cursor", page["cursor"])["results"][0]["jobId"] == "cli-1"
    assert "a burst water main" in shell.run(*here, "--field", "severity=4", "--since", "2020-01-01")
    assert shell.run("results", "ls", "--until", "2020-01-01").strip() == "no results"
    assert shell.json("results", "show", saved)["document"] == {"summary": "a burst water main", "severity": 4}
    assert '"severity": 4' in shell.run("results", "show", saved)
    hits = shell.json("results", "search", "main burst", "--domain", "from-the-cli")["hits"]
    assert (hits[0]["resultId"], hits[0]["ranks"]) == (saved, {"text": 1, "vector": 1})
    assert "text, vector" in shell.run("results", "search", "main burst")
    assert shell.run("results", "search", '"))(( NEAR').strip() == "nothing found"


async def test_what_is_not_there_or_not_right(shell: Shell, saved: str) -> None:
    assert shell.json("results", "show", "none", code=3)["error"]["code"] == "result_not_found"
    assert "key=value" in shell.run("results", "ls", "--field", "severity", code=2)
    assert "not a time" in shell.run("results", "search", "x", "--since", "soon", code=2)
