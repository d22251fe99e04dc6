"""Pipelines over HTTP: defined, entered, watched, decided on and acted on, one by one and many at once."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from ostinato import Ostinato
from tests.api import support
from tests.api.support import Site, problem
from tests.api.test_graphql import ask, refused
from tests.engine.support import until
from tests.pipelines.support import Newsroom, publishing

DECIDE = "approvals:decide"


@contextlib.asynccontextmanager
async def opened(
    url: str, more: Callable[[Newsroom], object] = lambda room: None, **engine: Any
) -> AsyncIterator[tuple[Site, httpx2.AsyncClient, Newsroom]]:
    """A server with the newsroom's functions, and `more`, and its pipeline."""
    rooms: list[Newsroom] = []

    def prepare(app: Ostinato) -> None:
        rooms.append(Newsroom(app=app))
        more(rooms[0])

    async with support.opened(url, prepare=prepare, engine=engine) as site:
        admin = await site.admin()
        answer = await admin.put("/v1/pipelines/publishing", json=publishing())
        assert answer.json() == {"name": "publishing", "version": 1}, answer.text
        yield site, admin, rooms[0]


async def enter(client: httpx2.AsyncClient, *item_ids: str, hold: bool = False) -> None:
    body = [{"itemId": item_id, "payload": {"title": "News"}, "hold": hold} for item_id in item_ids]
    answer = await client.post("/v1/pipelines/publishing/items", json=body)
    assert answer.status_code == 201, answer.text


async def reaches(client: httpx2.AsyncClient, item_id: str, status: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = (await client.get(f"/v1/items/{item_id}")).json()
        return found if found["status"] == status else None

    return await until(look, status)


async def act(client: httpx2.AsyncClient, item_id: str, verb: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/items/{item_id}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(client: httpx2.AsyncClient, **wanted: Any) -> list[str]:
    answer = await client.get("/v1/pipelines/publishing/items", params=wanted)
    assert answer.status_code == 200, answer.text
    return sorted(item["itemId"] for item in answer.json()["items"])


async def test_steps_that_are_left_out_and_runs_that_are_cancelled_are_told_of(url: str) -> None:
    """B19, B23: over HTTP and GraphQL, of the step, in the history, and in the sentence of the item."""
    document = publishing()
    document["course"][2]["when"] = "item.title != 'News'"
    async with opened(url) as (_, client, _):
        assert (await client.put("/v1/pipelines/publishing", json=document)).json()["version"] == 2
        wrong = publishing()
        wrong["course"][2]["when"] = "item.("
        refused_ = problem(await client.put("/v1/pipelines/publishing", json=wrong), 422, "invalid_input")
        assert refused_["field"] == "course[2].when"
        await enter(client, "a1")
        shown = await reaches(client, "a1", "pending_review")
        steps = {step["step"]: (step["state"], step["when"]) for step in shown["steps"]}
        assert (steps["score"], steps["fetch"]) == (("skipped", "item.title != 'News'"), ("completed", None))
        moves = (await client.get("/v1/items/a1/history")).json()["moves"]
        [left_out] = [move for move in moves if move["how"] == "skipped"]
        assert (left_out["step"], left_out["status"], left_out["fromStatus"]) == ("score", "fetched", "fetched")
        ways = (await client.get("/v1/pipelines/publishing/moves")).json()["moves"]
        assert ("fetched", "pending_enrichment") in {
            (way["fromStatus"], way["status"]) for way in ways if way["kind"] == "skip"
        }
        assert (await client.post("/v1/jobs/a1:1/cancel", json={"reason": "stop it"})).status_code == 200
        found = await ask(
            client,
            """{ item(itemId: "a1") { sentence detail { steps { step state when } }
              history(first: 100) { nodes { status how step movedBy reason } } } }""",
        )
        last = found["item"]["history"]["nodes"][-1]
        assert (last["status"], last["how"], last["reason"]) == ("failed", "cancelled", "stop it")
        assert found["item"]["sentence"] == f"Cancelled by {last['movedBy']}: stop it"
        assert {"step": "score", "state": "skipped", "when": "item.title != 'News'"} in found["item"]["detail"]["steps"]


async def test_an_agent_that_is_saved_over_http_is_in_use_at_once(url: str) -> None:
    """B21: by the runs that begin after it was saved."""

    def prepare(room: Newsroom) -> None:
        for name in ("tell", "sing"):
            room.app.agent(name)(lambda agent_id, name=name: {"by": name})

    agent = {"kind": "function", "outputSchema": {"type": "object", "properties": {"by": {"type": "string"}}}}
    document = publishing()
    del document["course"][4]["function"]
    document["course"][4] |= {"agent": "narrator"}
    async with opened(url, prepare) as (_, client, _):
        for item_id, name in (("a1", "tell"), ("a2", "sing")):
            assert (await client.put("/v1/agents/narrator", json=agent | {"function": name})).status_code == 200
            assert (await client.put("/v1/pipelines/publishing", json=document)).status_code == 200
            await enter(client, item_id)
            found = await reaches(client, item_id, "pending_review")
            assert found["results"]["summarize"] == {"by": name}


# --- definitions ---------------------------------------------------------------------------------------------------


async def test_definitions_have_versions_moves_and_a_diagram(url: str) -> None:
    async with opened(url, work=False) as (_, admin, _room):
        assert (await admin.put("/v1/pipelines/publishing", json=publishing(description="Ours"))).json()["version"] == 2
        [summary] = (await admin.get("/v1/pipelines")).json()["pipelines"]
        assert (summary["statuses"], summary["steps"], summary["reviews"]) == (29, [*Newsroom.STEPS], ["review"])
        rolled = await admin.post("/v1/pipelines/publishing/rollback", json={"version": 1})
        assert rolled.json()["version"] == 3
        found = (await admin.get("/v1/pipelines/publishing/moves")).json()
        kinds = {(move["fromStatus"], move["status"]): move["kind"] for move in found["moves"]}
        assert kinds[(None, "discovered")] == "enter"
        assert kinds[("summarizing", "summarized")] == kinds[("pending_review", "published")] == "course"
        assert kinds[("tagging", "to_tag")] == "retry"
        assert kinds[("scoring", "irrelevant")] == "end"
        assert kinds[("tagging", "dead_letter")] == "failure"
        assert kinds[("in_review", "rejected")] == kinds[("pending_review", "editing")] == "review"
        assert kinds[("published", "updated")] == "named"
        assert kinds[("failed", "to_tag")] == kinds[("published", "pending_enrichment")] == "again"
        assert {(move["fromCode"], move["code"]) for move in found["moves"]} >= {(0, 100), (300, 540)}
        drawn = await admin.get("/v1/pipelines/publishing/moves", params={"format": "mermaid", "version": 2})
        assert drawn.headers["content-type"].startswith("text/plain")
        lines = drawn.text.splitlines()
        assert lines[0] == "stateDiagram-v2"
        assert '        state "100 discovered" as s100' in lines
        assert {"    [*] --> s100", "    s300 --> s540 : review", "    s599 --> [*]"} <= set(lines)
        problem(await admin.get("/v1/pipelines/publishing/moves?version=9"), 404, "definition_not_found")


async def test_retry_policies_are_changed_and_reset(url: str) -> None:
    async with opened(url, work=False) as (_, admin, _room):
        path = "/v1/pipelines/publishing/retry"
        told = (await admin.get(path)).json()["policies"]
        assert [one["step"] for one in told] == [*Newsroom.STEPS]
        usual = {"maxAttempts": 4, "baseDelay": 60.0, "multiplier": 2.0, "maxDelay": 86400.0, "jitter": 0.0}
        assert (await admin.get(f"{path}/tag")).json() == {"step": "tag", "retry": usual, "changed": False}
        changed = (await admin.put(f"{path}/tag", json={"maxAttempts": 5})).json()
        assert changed == {"step": "tag", "retry": usual | {"maxAttempts": 5}, "changed": True}
        assert (await admin.get(f"{path}/tag")).json() == changed
        assert (await admin.delete(f"{path}/tag")).json()["changed"] is False
        bad = problem(await admin.put(f"{path}/tag", json={"maxAttempts": 0}), 422, "invalid_input")
        assert bad["field"] == "maxAttempts"
        lost = problem(await admin.put(f"{path}/tagg", json={}), 404, "not_found")
        assert "did you mean 'tag'?" in lost["detail"]


CODE = {"code": 100, "name": "again"}
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown status": ({"failed": "fialed"}, "failed", "did you mean 'failed'?"),
    "a code twice": ({"statuses": [*publishing()["statuses"], CODE]}, "statuses[29]", "the code 100"),
    "a circle": (
        {"course": [*publishing()["course"], {"status": "discovered"}]},
        "course[9].status",
        "passes status 'discovered' at course[0].status already",
    ),
    "no course": ({"course": []}, "course", "1 to 100"),
    "neither this nor that": ({"course": [{"status": "discovered", "step": "x"}]}, "course[0]", "one of status"),
    "a misspelt field": ({"deadletter": "failed"}, "deadletter", "deadLetter"),
    "a reserved function": (
        {"course": [{"status": "discovered"}, {**publishing()["course"][1], "function": "ostinato.pipeline.undo"}]},
        "",
        "ostinato.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
async def test_what_is_wrong_with_a_definition_is_said(site: Site, what: str) -> None:
    changes, field, sentence = BAD[what]
    found = problem(
        await site.client().put("/v1/pipelines/p", json=publishing(name="p") | changes), 422, "invalid_input"
    )
    assert sentence in found["detail"]
    assert field in str(found.get("field"))


# --- one item ------------------------------------------------------------------------------------------------------


async def test_an_item_from_its_entry_to_its_publication(url: str) -> None:
    """US-5 over HTTP: what there is to see of an item, who decided on it, and how it came to where it is."""
    async with opened(url) as (site, admin, room):
        made = await site.home.engine.store.create_key("default", "rita", ["jobs:read", DECIDE])
        rita, rita_id = site.client(made.text), f"key:{made.key.key_id}"
        answer = await admin.post("/v1/pipelines/publishing/items", json={"itemId": "a1", "payload": {"title": "News"}})
        assert answer.headers["location"] == "/v1/items/a1"
        entered = answer.json()
        assert (entered["itemId"], entered["jobId"], entered["created"]) == ("a1", "a1:1", True)
        again = await admin.post("/v1/pipelines/publishing/items", json={"itemId": "a1", "payload": {"title": "News"}})
        assert (again.status_code, again.json()["created"]) == (200, False)
        other = {"itemId": "a1", "payload": {"title": "Other"}}
        problem(await admin.post("/v1/pipelines/publishing/items", json=other), 409, "idempotency_conflict")
        shown = await reaches(admin, "a1", "pending_review")
        assert (shown["code"], shown["phase"], shown["step"], shown["run"]) == (300, "review", "review", 1)
        assert shown["sentence"] == "Waits for people to decide in review"
        assert (shown["payload"], shown["version"], shown["newestVersion"]) == ({"title": "News"}, 1, 1)
        assert sorted(shown["results"]) == sorted(Newsroom.STEPS)
        assert [(run["run"], run["jobId"], run["state"]) for run in shown["runs"]] == [(1, "a1:1", "running")]
        steps = {step["step"]: step for step in shown["steps"]}
        assert [attempt["key"] for attempt in steps["tag"]["attempts"]] == ["a1:tag:1"]
        assert (steps["tag"]["key"], steps["tag"]["state"], steps["review"]["state"]) == (
            "a1:tag",
            "completed",
            "waiting",
        )
        assert shown["submittedBy"].startswith("key:")
        assert (shown["byHand"], shown["spent"]) == (["in_review", "editing"], 0.0)
        problem(await rita.post("/v1/items/a1/move", json={"status": "in_review"}), 403, "forbidden")
        taken = await act(admin, "a1", "move", status="in_review", reason="mine")
        assert (taken["status"], taken["code"]) == ("in_review", 310)
        problem(await admin.post("/v1/items/a1/move", json={"status": "published"}), 409, "illegal_move")
        unknown = problem(await admin.post("/v1/items/a1/move", json={"status": "in_reveiw"}), 422, "invalid_input")
        assert (unknown["field"], "did you mean 'in_review'?" in unknown["detail"]) == ("status", True)
        wrong = problem(await rita.post("/v1/items/a1/decision", json={"decision": "publish"}), 422, "invalid_input")
        assert wrong["field"] == "decision"
        done = await act(rita, "a1", "decision", decision="approve", notes="good", payload={"title": "Better"})
        assert (done["state"], done["taskState"]) == ("approve", "completed")
        over = await reaches(admin, "a1", "published")
        assert (over["open"], over["reviewedBy"], over["payload"]) == (False, rita_id, {"title": "Better"})
        assert (over["sentence"], over["reviewedAt"] is not None) == ("Over: published", True)
        pages = (await admin.get("/v1/items/a1/history", params={"limit": 15})).json()
        rest = (await admin.get("/v1/items/a1/history", params={"after": pages["nextAfter"]})).json()
        moves = pages["moves"] + rest["moves"]
        assert (moves[0]["fromCode"], moves[0]["fromStatus"], moves[0]["status"]) == (0, None, "discovered")
        assert [move["key"] for move in moves if move["status"] == "tagging"] == ["a1:tag:1"]
        last = moves[-1]
        assert (last["fromStatus"], last["code"], last["movedBy"], last["reason"]) == (
            "in_review",
            400,
            rita_id,
            "good",
        )
        problem(await rita.post("/v1/items/a1/decision", json={"decision": "approve"}), 409, "not_possible")
        assert room.calls == dict.fromkeys(Newsroom.STEPS, 1)
        moved = (await admin.get("/v1/jobs/a1:1/events", params={"limit": 500})).json()["events"]
        assert "Item Moved" in {event["type"] for event in moved}


async def test_failures_are_seen_and_an_item_is_resumed_from_a_step(url: str) -> None:
    """US-1, US-3 and US-4 over HTTP: retry in sight, the error in words, and no step twice."""
    async with opened(url) as (_, admin, room):
        room.fail("tag", 1)
        room.fail("thumbnail", terminal=True)
        await enter(admin, "a1")
        waits = await until(lambda: _retrying(admin), "the retry")
        assert waits["status"] == "to_tag"
        assert waits["sentence"].startswith("Retry scheduled for 20")
        assert waits["retryAt"] is not None
        assert (waits["failures"] >= 1, waits["attempt"]) == (True, 1)
        assert await listed(admin, retrying="true") == ["a1"]
        room.recover("tag")
        resumed = await act(admin, "a1", "restart", at="tag", reason="the model is back")
        assert resumed["run"] == 2
        shown = await reaches(admin, "a1", "pending_review")
        assert room.calls == {"fetch": 1, "score": 1, "summarize": 1, "tag": 2, "thumbnail": 1}
        tries = {step["step"]: step["attempts"] for step in shown["steps"]}
        assert [(one["run"], one["key"], one["outcome"]) for one in tries["tag"]] == [
            (1, "a1:tag:1", "failed"),
            (2, "a1:tag:2.1", "completed"),
        ]
        error = shown["lastError"]
        assert (error["step"], error["message"]) in {("tag", "tag is down"), ("thumbnail", "thumbnail is down")}
        room.fail("summarize", terminal=True)
        await act(admin, "a1", "restart", at="pending_enrichment", payload={"title": "Other"})
        failed = await reaches(admin, "a1", "failed")
        assert failed["sentence"] == "Failed in summarize: TerminalError"
        assert (failed["lastError"]["step"], failed["lastError"]["message"]) == ("summarize", "summarize is down")
        assert failed["payload"] == {"title": "Other"}
        assert failed["places"] == ["discovered", "fetch", "score", "pending_enrichment", "summarize"]
        bad = problem(await admin.post("/v1/items/a1/restart", json={"at": "tga"}), 422, "invalid_input")
        assert (bad["field"], "did you mean 'tag'?" in bad["detail"]) == ("at", True)
        problem(await admin.post("/v1/items/a1/restart", json={"at": "tag"}), 409, "not_possible")
        lost = problem(await admin.post("/v1/items/a1/restart", json={"version": 7}), 404, "definition_not_found")
        assert lost["field"] == "version"


async def _retrying(client: httpx2.AsyncClient) -> dict[str, Any] | None:
    """The item, once `tag` is to be tried again and `thumbnail`, which runs beside it, is not at work any more."""
    found = (await client.get("/v1/items/a1")).json()
    return found if found["retryAt"] is not None and found["places"] else None


async def test_b4_process_queue_enrich_item_and_single_steps(url: str) -> None:
    async with opened(url) as (_, admin, room):
        await enter(admin, "a1", "a2", "a3", hold=True)
        assert await listed(admin, held="true") == ["a1", "a2", "a3"]
        begun = (await admin.post("/process-queue", json={"pipeline": "publishing", "most": 1})).json()["items"]
        assert [(one["itemId"], one["jobId"]) for one in begun] == [("a1", "a1:1")]
        await reaches(admin, "a1", "pending_review")
        alone = await admin.post("/enrich-single-step", json={"itemId": "a2", "step": "fetch"})
        assert alone.status_code == 200, alone.text
        rests = await reaches(admin, "a2", "fetched")
        assert rests["sentence"] == "Rests at fetched: begin it again to go on"
        assert (await admin.post("/enrich-item", json={"itemId": "a2"})).status_code == 200
        await reaches(admin, "a2", "pending_review")
        assert room.calls == dict.fromkeys(Newsroom.STEPS, 2)
        assert (await admin.post("/enrich-item", json={"itemId": "a1"})).json()["run"] == 2
        await until(lambda: _enriched(room), "a1 again")
        assert room.calls["fetch"] == 2
        begun = (await admin.post("/v1/pipelines/publishing/process", json={})).json()["items"]
        assert [one["itemId"] for one in begun] == ["a3"]
        await reaches(admin, "a3", "pending_review")
        room.fail("score", terminal=True)
        await enter(admin, "a4", "a5")
        for item_id in ("a4", "a5"):
            await reaches(admin, item_id, "failed")
        room.recover("score")
        again = {"pipeline": "publishing", "most": 1, "filter": {"status": "failed"}}
        [begun] = (await admin.post("/process-queue", json=again)).json()["items"]
        await reaches(admin, begun["itemId"], "pending_review")
        left = await ask(
            admin, 'mutation { processItems(pipeline: "publishing", filter: {status: "failed"}) { itemId status } }'
        )
        assert {begun["itemId"], *(one["itemId"] for one in left["processItems"])} == {"a4", "a5"}
        assert [one["status"] for one in left["processItems"]] == ["to_score"]
        bad = problem(
            await admin.post("/process-queue", json=again | {"filter": {"status": "lost"}}), 422, "invalid_input"
        )
        assert bad["field"] == "status"


async def _enriched(room: Newsroom) -> bool:
    return room.calls["summarize"] == 3


async def test_re_enrich_roll_back_and_migrate(url: str) -> None:
    async with opened(url) as (_, admin, room):
        await enter(admin, "a1", "a2")
        for item_id in ("a1", "a2"):
            await reaches(admin, item_id, "pending_review")
        assert (await act(admin, "a1", "decision", decision="re-enrich", notes="once more"))["state"] == "re-enrich"

        async def again() -> bool:
            found = (await admin.get("/v1/items/a1")).json()
            return (found["run"], found["status"]) == (2, "pending_review")

        await until(again)
        given_up = await act(admin, "a2", "roll-back", reason="withdrawn")
        assert (given_up["status"], given_up["open"]) == ("failed", False)
        undone = await until(lambda: _undone(admin), "what was done is taken back")
        assert undone["runs"][0]["jobId"].startswith("a2:1.undo-")
        assert room.undone == ["tag", "summarize"]
        two = publishing(statuses=[one for one in publishing()["statuses"] if one["code"] != 410], moves=[])
        await admin.put("/v1/pipelines/publishing", json=two)
        assert (await act(admin, "a1", "migrate", version=2, dryRun=True))["version"] == 1
        assert (await act(admin, "a2", "migrate", version=2))["version"] == 2
        problem(await admin.post("/v1/items/a2/migrate", json={"version": 5}), 404, "definition_not_found")


async def _undone(client: httpx2.AsyncClient) -> dict[str, Any] | None:
    found = (await client.get("/v1/items/a2")).json()
    return found if found["runs"][0]["undo"] and found["runs"][0]["state"] == "completed" else None


# --- many items ----------------------------------------------------------------------------------------------------


async def test_lists_by_status_name_and_code_in_pages(url: str) -> None:
    async with opened(url, work=False) as (_, admin, _room):
        await enter(admin, *[f"a{number}" for number in range(5)], hold=True)
        await enter(admin, "b1")
        path = "/v1/pipelines/publishing/items"
        seen: list[str] = []
        cursor: str | None = None
        while cursor is not None or not seen:
            params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
            page = (await admin.get(path, params=params)).json()
            seen += [item["itemId"] for item in page["items"]]
            cursor = page["nextCursor"]
        assert sorted(seen) == ["a0", "a1", "a2", "a3", "a4", "b1"]
        assert await listed(admin, status="to_fetch") == await listed(admin, status="110") == ["b1"]
        assert len(await listed(admin, status="discovered")) == len(await listed(admin, held="true")) == 5
        assert await listed(admin, stuck="0.000001") == ["b1"]
        assert await listed(admin, stuck="3600") == []
        health = (await admin.get("/v1/pipelines/publishing/health", params={"stuckSeconds": 0.000001})).json()
        assert {one["name"]: one["items"] for one in health["statuses"] if one["items"]} == {
            "discovered": 5,
            "to_fetch": 1,
        }
        assert [one["why"] for one in health["stuck"]] == ["Waits for a worker to run fetch"]
        assert health["stuckCount"] == 1
        unknown = problem(await admin.get(path, params={"status": "to_fetsh"}), 422, "invalid_input")
        assert (unknown["field"], "did you mean 'to_fetch'?" in unknown["detail"]) == ("status", True)
        problem(await admin.get(path, params={"status": "100", "retrying": "true"}), 422, "invalid_input")
        problem(await admin.get(path, params={"held": "true", "stuck": "1"}), 422, "invalid_input")
        problem(await admin.get(path, params={"cursor": "bm90"}), 422, "invalid_input")
        problem(await admin.get(path, params={"colour": "red"}), 422, "invalid_input")


async def test_bulk_actions_show_what_they_would_do_first(url: str) -> None:
    async with opened(url) as (site, admin, room):
        room.fail("score", terminal=True)
        await enter(admin, "a1", "a2")
        for item_id in ("a1", "a2"):
            await reaches(admin, item_id, "failed")
        room.recover("score")
        path = "/v1/pipelines/publishing/bulk"
        body: dict[str, Any] = {"action": "restart", "at": "score", "filter": {"status": "failed"}}
        tried = (await admin.post(path, json=body)).json()
        assert (tried["dryRun"], tried["matched"], tried["possible"], tried["more"]) == (True, 2, 2, False)
        assert {one["outcome"] for one in tried["items"]} == {"possible"}
        assert room.calls["score"] == 2
        one = (await admin.post(path, json=body | {"at": "tag"})).json()
        assert (one["possible"], one["items"][0]["errorCode"]) == (0, "not_possible")
        assert "score, summarize" in one["items"][0]["detail"]
        assert (await admin.post(path, json=body | {"most": 1})).json()["more"]
        done = (await admin.post(path, json=body | {"dryRun": False})).json()
        assert [one["outcome"] for one in done["items"]] == ["done", "done"]
        for item_id in ("a1", "a2"):
            await reaches(admin, item_id, "pending_review")
        assert room.calls["fetch"] == 2
        approve = {"action": "decide", "decision": "approve", "filter": {"status": "300"}, "dryRun": False}
        writer = site.client(await site.key("jobs:read", "jobs:write"))
        problem(await writer.post(path, json=approve), 403, "forbidden")
        moved = {"action": "move", "status": "in_review", "filter": {"status": "300"}, "dryRun": False, "most": 1}
        assert (await writer.post(path, json=moved)).json()["possible"] == 1
        assert (await admin.post(path, json=approve)).json()["possible"] == 1
        assert sorted([await listed(admin, status="published"), await listed(admin, status="in_review")]) == [
            ["a1"],
            ["a2"],
        ]
        await admin.put("/v1/pipelines/publishing", json=publishing(description="New"))
        migrate = {"action": "migrate", "version": 2, "dryRun": False}
        assert (await admin.post(path, json=migrate)).json()["possible"] == 2
        versions = [item["version"] for item in (await admin.get("/v1/pipelines/publishing/items")).json()["items"]]
        assert versions == [2, 2]
        log = (await admin.get("/v1/audit-log", params={"action": "items.bulk"})).json()["entries"]
        assert [entry["details"]["does"] for entry in log] == ["migrate", "decide", "move", "restart"]
        for bad, field in (
            ({"action": "decide"}, "decision"),
            ({"action": "migrate"}, "version"),
            ({"action": "restart", "status": "new"}, "status"),
            ({"action": "explode"}, "action"),
            ({"action": "restart", "most": 501}, "most"),
            ({"action": "restart", "filter": {"status": "nowhere"}}, "status"),
        ):
            assert field in problem(await admin.post(path, json=bad), 422, "invalid_input")["field"]


async def test_what_cannot_be_entered(url: str) -> None:
    async with opened(url, work=False, check_functions=True, max_payload_bytes=1000) as (_, admin, _room):
        path = "/v1/pipelines/publishing/items"
        for bad in ("a:1", "", "x" * 101, "ö", " a"):
            found = problem(await admin.post(path, json={"itemId": bad}), 422, "invalid_input")
            assert "itemId" in found["field"]
        large = problem(await admin.post(path, json={"payload": "x" * 1001}), 413, "payload_too_large")
        assert "payload has 1,003 bytes" in large["detail"]
        problem(await admin.post(path, json=[]), 422, "invalid_input")
        problem(await admin.post(path, json=[{"itemId": "ok"}, {"itemId": "not:ok"}]), 422, "invalid_input")
        problem(await admin.get("/v1/items/ok"), 404, "item_not_found")
        problem(await admin.get("/v1/items/not:ok"), 422, "invalid_input")
        problem(await admin.post("/v1/pipelines/none/items", json={}), 404, "definition_not_found")
        lost = publishing(name="lost")
        lost["course"][1]["function"] = "nobody-has-this"
        await admin.put("/v1/pipelines/lost", json=lost)
        unknown = problem(await admin.post("/v1/pipelines/lost/items", json={"itemId": "b"}), 422, "unknown_function")
        assert "nobody-has-this" in unknown["detail"]


# --- GraphQL -------------------------------------------------------------------------------------------------------


async def test_the_same_over_graphql(url: str) -> None:
    async with opened(url) as (_, admin, room):
        made = await ask(
            admin,
            "mutation($document: JSON!) { definePipeline(definition: $document) { name version } }",
            document=publishing(name="other"),
        )
        assert made["definePipeline"] == {"name": "other", "version": 1}
        room.fail("tag", 1)
        entered = await ask(
            admin,
            """mutation($items: [ItemInput!]!) {
              enterItems(pipeline: "publishing", items: $items) { itemId jobId created }
              setRetryPolicy(pipeline: "publishing", step: "tag", retry: {baseDelay: 3600}) {
                retry { baseDelay } changed
              }
            }""",
            items=[{"itemId": "a1", "payload": {"title": "News", "by": None}}, {"itemId": "a2", "hold": True}],
        )
        assert [one["jobId"] for one in entered["enterItems"]] == ["a1:1", None]
        assert entered["setRetryPolicy"] == {"retry": {"baseDelay": 3600.0}, "changed": True}
        waits = await until(lambda: _retrying(admin), "the retry")
        found = await ask(
            admin,
            """{
              pipelines { name steps }
              pipelineMoves(name: "publishing") { moves { fromStatus status kind } mermaid }
              pipelineHealth(name: "publishing") { retrying statuses { name items } steps { step failed p95Seconds } }
              retryPolicies(pipeline: "publishing") { step changed }
              items(pipeline: "publishing", filter: {retrying: true}) { nodes { itemId sentence detail { payload } } }
              item(itemId: "a1") {
                status code phase attempt retryAt failures
                detail {
                  lastError { step message } steps { step attempts { key outcome } } runs { jobId state spent } results
                  spent places byHand
                }
                history(first: 3) { nodes { number status key } pageInfo { hasNextPage endCursor } }
              }
              none: item(itemId: "none") { status }
            }""",
        )
        assert found["none"] is None
        assert [one["name"] for one in found["pipelines"]] == ["other", "publishing"]
        assert found["pipelineMoves"]["mermaid"].startswith("stateDiagram-v2\n")
        assert found["pipelineHealth"]["retrying"] == 1
        assert [one["step"] for one in found["retryPolicies"] if one["changed"]] == ["tag"]
        [node] = found["items"]["nodes"]
        assert node == {
            "itemId": "a1",
            "sentence": waits["sentence"],
            "detail": {"payload": {"title": "News", "by": None}},
        }
        shown = found["item"]
        assert (shown["status"], shown["code"], shown["phase"]) == ("to_tag", 220, "enrichment")
        assert shown["detail"]["lastError"] == {"step": "tag", "message": "tag is down"}
        keys = {step["step"]: step["attempts"] for step in shown["detail"]["steps"]}
        assert keys["tag"] == [{"key": "a1:tag:1", "outcome": "failed"}]
        assert (shown["detail"]["runs"][0]["spent"], shown["detail"]["spent"]) == (0.0, 0.0)
        assert ("tag" in shown["detail"]["places"], shown["detail"]["byHand"]) == (True, [])
        assert shown["history"]["pageInfo"] == {"hasNextPage": True, "endCursor": "3"}
        room.recover("tag")
        again = await ask(admin, 'mutation { restartItem(itemId: "a1", at: "tag", reason: "better now") { run } }')
        assert again["restartItem"] == {"run": 2}
        await reaches(admin, "a1", "pending_review")
        tried = await ask(
            admin,
            """mutation {
              bulkItems(pipeline: "publishing", input: {action: "decide", decision: "approve",
                filter: {status: "pending_review", stuck: null}}) { dryRun possible items { itemId outcome } }
              done: bulkItems(pipeline: "publishing", input: {action: "move", status: "in_review", dryRun: false,
                filter: {status: "pending_review"}}) { dryRun possible items { itemId status outcome } }
              processItems(pipeline: "publishing", most: 5) { itemId status }
            }""",
        )
        assert tried["bulkItems"] == {
            "dryRun": True,
            "possible": 1,
            "items": [{"itemId": "a1", "outcome": "possible"}],
        }
        assert tried["done"] == {
            "dryRun": False,
            "possible": 1,
            "items": [{"itemId": "a1", "status": "pending_review", "outcome": "done"}],
        }
        assert [one["itemId"] for one in tried["processItems"]] == ["a2"]
        done = await ask(
            admin,
            """mutation {
              moveItem(itemId: "a1", status: "editing") { status }
              decideItem(itemId: "a1", decision: "approve", notes: "good") { state }
              rollBackPipeline(name: "other", version: 1) { version }
              resetRetryPolicy(pipeline: "publishing", step: "tag") { changed }
            }""",
        )
        assert (done["moveItem"]["status"], done["decideItem"]["state"]) == ("editing", "approve")
        error = await refused(admin, 'mutation { moveItem(itemId: "a1", status: "nowhere") { status } }')
        assert (error["extensions"]["code"], error["extensions"]["field"]) == ("invalid_input", "status")
