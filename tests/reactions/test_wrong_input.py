"""Whatever is given to methods in Python is done, or refused with an error of ours that is short enough to read."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ostinato import audit, errors, testing
from ostinato.reactions import bulk, item_views
from tests.pipelines.support import Newsroom, publishing
from tests.pipelines.test_items import enter

AGENT = {"name": "a", "kind": "function", "function": "f", "outputSchema": {"type": "object", "properties": {"v": {}}}}
PLAYBOOK = {"name": "p", "domain": "d", "type": "ingestion", "agents": ["a"]}


def deep(inside: type, times: int = 2000) -> Any:
    made: Any = inside()
    for _ in range(times):
        made = inside([made])
    return made


WRONG: dict[str, Any] = {
    "none": None, "seven": 7, "negative": -1, "zero": 0, "huge": 2**70, "float": 1.5, "nan": math.nan, "inf": math.inf,
    "true": True, "empty": "", "nul": "a\0b", "surrogate": "\ud800", "long": "x" * 300_000, "line": "a\nb",
    "slash": "a/b", "list": ["a"], "dict": {"a": 1}, "bytes": b"x", "object": object(), "set": {1}, "deep": deep(list),
    "tuple": deep(tuple), "pair": ("a", "b"), "naive": datetime.datetime(1, 1, 1), "function": print,
    "surrogates": {"\ud800": "\udfff"}, "nuls": {"a\0": "\0"}, "digits": {"a": 10**400}, "class": ValueError,
}  # fmt: skip


def calls(app: Any) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Methods, with arguments that are right, or that are of the right kind and name nothing."""
    books, pipelines, approvals, results = app.playbooks, app.pipelines, app.approvals, app.results
    started = {"playbook": "p", "idempotency_key": None, "correlation_id": None, "actor": None}
    saved = {"actor": None, "expected": None}
    page = {"cursor": None, "most": 10}
    decided = {"actor": "rita", "notes": None, "payload": {}, "called": None}
    found = {"domain": "d", "since": None, "until": None, "fields": {"a": 1}}
    yield app.ingest, ("d", {}), started
    yield books.define_agent, (AGENT,), saved
    yield books.define_graph, ({"name": "g", "edges": []},), saved
    yield books.define, (PLAYBOOK,), saved
    yield books.plan, ("p",), {}
    yield books.remove, ("nope",), {"actor": None}
    yield books.agents.get, ("a",), {"version": None}
    yield books.agents.stored, ("a",), {"version": None}
    yield books.agents.roll_back, ("a", 1), {"actor": None}
    yield books.agents.versions, ("a",), {}
    yield books.apply, ("/nowhere",), {"actor": None}
    yield pipelines.define, (publishing(name="other"),), saved
    yield pipelines.enter, ("publishing", {"title": "x"}), {"item_id": None, "actor": None, "hold": True}
    yield pipelines.enter_many, ("publishing", []), {"actor": None}
    yield pipelines.process, ("publishing", 0), {"wanted": item_views.Wanted(), "actor": None}
    yield pipelines.restart, ("nope", "fetch"), {"only": False, "payload": {}, "version": None, "reason": None}
    yield pipelines.restart, ("a1", "fetch"), {"version": 7}
    yield pipelines.enrich, ("nope",), {"at": None, "actor": None}
    yield pipelines.decide, ("a1", "nope"), decided
    yield pipelines.move, ("a1", "nope"), {"payload": {}, "actor": None, "reason": None}
    yield pipelines.roll_back, ("nope",), {"actor": None, "reason": None}
    yield pipelines.migrate, ("a1", 1), {"dry_run": True}
    yield pipelines.detail, ("a1",), {}
    yield pipelines.history, ("a1",), {}
    yield pipelines.moves, ("a1",), {"after": 0, "most": 10}
    yield pipelines.views, ("publishing", item_views.Wanted()), page
    yield pipelines.legal_moves, ("publishing",), {"version": None}
    yield pipelines.health, ("publishing",), {"stuck_seconds": 60}
    yield pipelines.policy, ("publishing", "fetch"), {}
    yield pipelines.set_retry, ("publishing", "fetch", None), {"actor": None}
    moving = bulk.Bulk(action="move", status="in_review")
    yield pipelines.bulk, ("publishing", item_views.Wanted(), moving), {"most": 10, "actor": "rita"}
    yield approvals.list, (), page | {"state": "waiting", "job_id": "a1:1", "task_id": "review", "approver": "x"}
    yield approvals.list, (), {"approver": "x", "called": "y"}
    yield approvals.get, ("a1:1", "review"), {"key": None}
    yield approvals.decide, ("a1:1", "review", "nope"), decided | {"key": None, "version": None}
    yield approvals.decide, ("nope", "review", "approve"), decided | {"key": None, "version": None}
    yield results.save, ("j1", {"a": 1}), {"domain": "d", "kind": "k", "text": "t", "fields": {"a": 1}}
    yield results.get, ("nope",), {}
    yield results.delete, ("nope",), {}
    yield results.prune, (datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC),), {}
    yield results.list, (), page | found
    yield results.search, ("x",), {"most": 10} | found
    yield app.usage, (), {"by": "day", "since": None, "until": None}
    yield app.set_budget, (), {"day": None, "month": None, "actor": None}
    yield app.redrive, ([("a", "b")],), {"actor": None}


def wrongly(args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """The same arguments, with one of them after the other replaced by each of what is wrong."""
    for name, value in WRONG.items():
        for place in range(len(args)):
            yield f"{place} {name}", (*args[:place], value, *args[place + 1 :]), named
        for place in named:
            yield f"{place} {name}", args, named | {place: value}


async def test_what_is_wrong_is_refused_in_words(url: str) -> None:
    room = Newsroom(url)
    bad: list[str] = []
    async with testing.open(room.app) as kit:
        await enter(kit)
        await kit.app.playbooks.define_agent(AGENT)
        await kit.app.playbooks.define(PLAYBOOK)
        for call, right, named in calls(kit.app):
            for what, args, more in wrongly(right, named):
                try:
                    await call(*args, **more)
                except errors.OstinatoError as error:
                    if not 0 < len(error.message) < 2000:
                        bad.append(f"{call.__qualname__} {what}: {len(error.message):,} characters")
                except Exception as error:
                    bad.append(f"{call.__qualname__} {what}: {type(error).__name__} {str(error)[:80]}")
        assert not bad, "\n".join(["", *bad[:200]])
        assert (await kit.app.pipelines.policy("publishing", "fetch")).retry.max_attempts == 4
        assert not (await audit.audit(kit.app.engine.store)).problems


MODEL = AGENT | {
    "kind": "llm", "function": None, "timeout": 5, "tags": {"a": "b"}, "input": {"x": "{% raw_data %}"},
    "llm": {"model": "t", "baseUrl": "https://x.example/v1", "system": "s", "price": {"input": 1, "output": 2}},
    "retry": {"maxAttempts": 2, "baseDelay": 1}, "budget": {"tokens": 5, "cost": 1}, "onParentFailure": "run",
}  # fmt: skip
BOOK = PLAYBOOK | {
    "maxConcurrency": 3, "deadline": 60, "stages": {"save": {"timeout": 3}}, "save": {"text": "{% raw_data %}"},
    "synthesis": {"how": "jsonata", "expression": "agents"},
}  # fmt: skip


def replaced(document: Any, value: Any) -> Iterator[Any]:
    """The document with each of its parts in turn replaced by this."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for place, part in parts:
        made = document.copy()
        for other in (value, *(replaced(part, value) if isinstance(part, (dict, list)) else ())):
            made[place] = other
            yield made


async def test_a_definition_that_is_wrong_anywhere_is_refused_in_words(url: str) -> None:
    bad: list[str] = []
    async with testing.open(Newsroom(url).app) as kit:
        books = kit.app.playbooks
        kinds = ((books.define_agent, MODEL), (books.define, BOOK), (kit.app.pipelines.define, publishing(budget=3.0)))
        for define, right in kinds:
            for name in ("surrogate", "surrogates", "long", "nul", "deep", "none", "huge", "nan"):
                for document in replaced(right, WRONG[name]):
                    try:
                        await define(document)
                    except errors.OstinatoError as error:
                        if not 0 < len(error.message) < 2000:
                            bad.append(f"{name}: {error.message[:100]} …")
                    except Exception as error:
                        bad.append(f"{name}: {type(error).__name__} {str(error)[:80]}")
    assert not bad, "\n".join(["", *bad[:50]])


@pytest.mark.parametrize("policy", [7, "often", {"maxAttempts": 0}, {"attempts": 3}, [3], True])
async def test_b14_a_policy_that_is_none_is_refused_and_the_old_one_stays(url: str, policy: Any) -> None:
    """It was saved, and nothing of the pipeline could be read or run any more."""
    room = Newsroom(url)
    async with testing.open(room.app) as kit:
        await enter(kit)
        with pytest.raises(errors.InvalidInput, match="retry"):
            await kit.app.pipelines.set_retry("publishing", "fetch", policy)
        assert (await kit.app.pipelines.set_retry("publishing", "fetch", {"maxAttempts": 7})).retry.max_attempts == 7
        assert (await kit.app.pipelines.retry_policies("publishing"))["fetch"].max_attempts == 7


async def test_a_filter_on_results_that_there_is_not_is_refused(url: str) -> None:
    """Left out, it would find more than was meant."""
    async with testing.open(Newsroom(url).app) as kit:
        for ask in (kit.app.results.list, lambda **wanted: kit.app.results.search("x", **wanted)):
            with pytest.raises(errors.InvalidInput, match="no filter 'domian': use domain"):
                await ask(domian="d")


@pytest.mark.parametrize("amount", [math.nan, -1, True, "1", object(), 1e300])
async def test_a_budget_that_is_no_amount_is_refused_by_its_name(url: str, amount: Any) -> None:
    async with testing.open(Newsroom(url).app) as kit:
        for name in ("day", "month"):
            with pytest.raises(errors.InvalidInput, match=f"^{name} must be") as refused:
                await kit.app.set_budget(**{name: amount})
            assert refused.value.details["field"] == name


async def test_a_definition_is_not_saved_by_somebody_who_cannot_be_noted(url: str) -> None:
    async with testing.open(Newsroom(url).app) as kit:
        with pytest.raises(errors.InvalidInput, match="actor"):
            await kit.app.playbooks.define_agent(AGENT, actor="x" * 5000)
        with pytest.raises(errors.DefinitionNotFound):
            await kit.app.playbooks.agents.get("a")
