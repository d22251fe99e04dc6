"""A server asks an endpoint for the tags of definitions that nobody has told of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ostinato import EngineOptions, errors
from tests.engine.support import opened
from tests.index.support import AGENT, MACHINE, change
from tests.outgoing import support as outgoing

LOCAL = {"webhook_networks": ("127.0.0.1",)}


@pytest.mark.parametrize(
    "answer", [AGENT, {"tags": AGENT}, {"Tags": [{"Key": k, "Value": v} for k, v in AGENT.items()]}]
)
async def test_c1_an_unknown_definition_is_asked_for_once(url: str, answer: Any) -> None:
    """C1: what the endpoint says is kept, for other processes too."""
    async with outgoing.running() as server:
        server.behave = outgoing.answering(200, json.dumps(answer).encode())
        async with opened(url, index_tags_url=server.url, **LOCAL) as app:
            told = [change(name=f"e{n}", tags=None) for n in range(20)]
            assert (await app.index.report(told)).indexed == 20
        assert [json.loads(one.body) for one in server.requests] == [{"tenant": "default", "stateMachineArn": MACHINE}]
    async with opened(url) as other:
        assert (await other.index.report([change(name="later", tags=None)])).indexed == 1


async def test_c1_what_is_not_known_there_has_the_default(url: str) -> None:
    """C1: or no tags at all, if there is no default; what was assumed is not kept."""
    async with outgoing.running() as server:
        server.behave = outgoing.answering(404)
        async with opened(url, index_tags_url=server.url, **LOCAL) as app:
            [skipped] = (await app.index.report([change(tags=None)])).skipped
            assert skipped.code == "tags_unknown"
    async with opened(url, index_default_tags=AGENT) as app:
        assert (await app.index.report([change(tags=None)])).indexed == 1
    async with opened(url) as app:
        assert (await app.index.report([change(name="other", tags=None)])).indexed == 0


@pytest.mark.parametrize("behave", [outgoing.answering(500), outgoing.answering(200, b"nonsense")])
async def test_c1_an_endpoint_that_fails_keeps_nobody_from_reporting(sqlite_url: str, behave: Any) -> None:
    """C1: the execution is skipped, the reason is logged, and a rebuild takes it in later."""
    async with outgoing.running() as server:
        server.behave = behave
        async with opened(sqlite_url, index_tags_url=server.url, **LOCAL) as app:
            answer = await app.index.report([change(tags=None), change(name="said", machine="other")])
            assert (answer.indexed, [one.code for one in answer.skipped]) == (1, ["tags_unknown"])
        server.behave = outgoing.answering(200, json.dumps(AGENT).encode())
        async with opened(sqlite_url, index_tags_url=server.url, **LOCAL) as app:
            await app.rebuild_index()
            assert len(await app.executions()) == 2


async def test_c1_an_address_inside_is_not_called_unless_it_is_allowed(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C1: the rules for all calls to other servers hold for this one too."""
    async with outgoing.running() as server:
        async with opened(sqlite_url, index_tags_url=server.url) as app:
            assert (await app.index.report([change(tags=None)])).indexed == 0
        assert server.requests == []
    assert "cannot be asked for" in caplog.text


def test_c1_the_environment_says_it_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: and what is wrong is named."""
    monkeypatch.setenv("OSTINATO_INDEX_TAGS_URL", "https://tags.example.com/x")
    monkeypatch.setenv("OSTINATO_INDEX_DEFAULT_TAGS", "Type=Agent,Team=x")
    options = EngineOptions()
    assert (options.index_tags_url, options.index_default_tags) == (
        "https://tags.example.com/x",
        {"Type": "Agent", "Team": "x"},
    )
    with pytest.raises(errors.InvalidInput, match="index_tags_url"):
        EngineOptions(index_tags_url="ftp://x")
    monkeypatch.setenv("OSTINATO_INDEX_DEFAULT_TAGS", "Type")
    with pytest.raises(errors.InvalidInput, match="OSTINATO_INDEX_DEFAULT_TAGS"):
        EngineOptions()
