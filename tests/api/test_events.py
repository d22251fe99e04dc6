"""Events of others, in every shape that they come in: recorded once, or refused with the field."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from tests.api.support import Site, problem

STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
SOLD = {"id": "1", "source": "shop", "detail-type": "Sold", "detail": {"price": 120}}
CLOUD: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/shop/berlin",
    "type": "com.example.sold",
    "time": "2025-11-29T12:00:00Z",
    "subject": "A17",
    "data": {"price": 120},
}
BINARY = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-source": "/shop/berlin",
    "ce-type": "com.example.sold",
    "ce-time": "2025-11-29T12:00:00Z",
    "ce-subject": "Z%C3%BCrich%20A17",
}


async def send(
    client: httpx2.AsyncClient, body: Any, kind: str = "application/json", headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post("/v1/events", content=content, headers={"Content-Type": kind, **(headers or {})})


async def posted(client: httpx2.AsyncClient, *given: Any, **more: Any) -> list[str]:
    answer = await send(client, *given, **more)
    assert answer.status_code == 200, answer.text
    return [event["outcome"] for event in answer.json()["events"]]


async def recorded(site: Site) -> list[dict[str, Any]]:
    """What is kept of the events, as patterns see it."""
    return [json.loads(found.data) for found in await site.home.engine.store.outside_events("default")]


async def test_the_shapes_of_eventbridge(site: Site) -> None:
    client = await site.admin()
    assert await posted(client, SOLD) == ["recorded"]
    assert await posted(client, [SOLD, SOLD | {"id": "2"}, SOLD | {"source": "other"}]) == [
        "duplicate",
        "recorded",
        "recorded",
    ]
    entry = {"Source": "shop", "DetailType": "Sold", "Detail": '{"price": 1}', "Id": "3"}
    assert await posted(client, entry) == ["recorded"]
    assert await posted(client, {"Entries": [entry, entry | {"Id": "4"}]}) == ["duplicate", "recorded"]
    assert await posted(client, entry | {"Id": "5", "Time": 1764417600}) == ["recorded"]
    answer = await send(client, {"source": "shop", "detail-type": "Sold", "id": None, "time": None})
    assert answer.json()["events"][0]["id"]  # without an id it gets one, and is new each time
    found = await recorded(site)
    assert len(found) == 7
    assert all(datetime.datetime.fromisoformat(event["time"]).tzinfo for event in found)
    assert [event["time"] for event in found if event["id"] == "5"] == ["2025-11-29T12:00:00.000Z"]
    assert {event["account"] for event in found} == {"default"}
    assert [event["detail"] for event in found if event["id"] == "3"] == [{"price": 1}]


async def test_cloud_events_in_all_modes_are_the_same_event(site: Site) -> None:
    client = await site.admin()
    assert await posted(client, CLOUD, STRUCTURED) == ["recorded"]
    assert await posted(client, [CLOUD, CLOUD | {"id": "2"}], BATCHED) == ["duplicate", "recorded"]
    assert await posted(client, CLOUD) == ["duplicate"]  # as plain JSON
    assert await posted(client, CLOUD["data"], headers=BINARY) == ["duplicate"]
    assert await posted(client, CLOUD["data"], headers=BINARY | {"ce-id": "3"}) == ["recorded"]
    assert await posted(client, b"", headers=BINARY | {"ce-id": "4"}) == ["recorded"]
    assert await posted(client, ["a", "list"], headers=BINARY | {"ce-id": "5", "ce-data": "x"}) == ["recorded"]
    charset = f"{STRUCTURED}; charset=UTF-8"
    assert await posted(client, CLOUD, charset) == ["duplicate"]
    found = {event["id"]: event for event in await recorded(site)}
    assert found["1"]["detail-type"] == "com.example.sold"
    assert (found["1"]["detail"], found["1"]["time"]) == ({"price": 120}, "2025-11-29T12:00:00Z")
    assert found["1"]["cloudevent"]["subject"] == "A17"
    assert found["3"]["detail"] == {"price": 120}
    assert found["3"]["cloudevent"]["subject"] == "Zürich A17"
    assert found["3"]["cloudevent"]["datacontenttype"] == "application/json"
    assert found["4"]["detail"] == {}
    assert found["5"]["detail"] == {"data": ["a", "list"]}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"source": "shop"}, "events[3].detail-type"),
        ({"detail-type": "Sold"}, "events[3].source"),
        (SOLD | {"source": ""}, "events[3].source"),
        (SOLD | {"source": "ostinato"}, "events[3].source"),
        (SOLD | {"id": 7}, "events[3].id"),
        (SOLD | {"id": "x" * 256}, "events[3].id"),
        (SOLD | {"id": "\x00"}, "events[3].id"),
        (SOLD | {"detail": "text"}, "events[3].detail"),
        (SOLD | {"time": "yesterday"}, "events[3].time"),
        (SOLD | {"time": "2025-11-29T12:00:00"}, "events[3].time"),
        (SOLD | {"time": {"at": "noon"}}, "events[3].time"),
        (CLOUD | {"time": 1764417600}, "events[3].time"),
        ("an event", "events[3]"),
        (None, "events[3]"),
        ({"Source": "shop", "DetailType": "Sold", "Detail": "{"}, "events[3].Detail"),
        ({"Source": "shop", "DetailType": "Sold", "Detail": "[" * 100_000}, "events[3].Detail"),
        ({"Source": "shop", "DetailType": "Sold", "Detail": "[]"}, "events[3].detail"),
        (CLOUD | {"specversion": "0.3"}, "events[3].specversion"),
        (CLOUD | {"type": None}, "events[3].type"),
        (CLOUD | {"data_base64": "AAAA"}, "events[3].data_base64"),
        (SOLD | {"detail": {"text": "x" * 300_000}}, "events[3]"),
    ],
)
async def test_a_bad_event_names_the_field_and_the_others_are_recorded(site: Site, bad: Any, field: str) -> None:
    client = await site.admin()
    good = [SOLD | {"id": f"good-{number}"} for number in range(3)]
    answer = await send(client, [*good, bad, SOLD])
    assert answer.status_code == 200, answer.text
    found = answer.json()["events"]
    assert [one["outcome"] for one in found] == ["recorded"] * 3 + ["refused", "recorded"]
    assert (found[3]["field"], bool(found[3]["code"] and found[3]["detail"])) == (field, True)
    assert len(await recorded(site)) == 4
    answer = await send(client, [bad])
    assert (answer.status_code, answer.json()["field"]) == (422, field.replace("[3]", "[0]"))


async def test_what_is_no_body_of_events(site: Site) -> None:
    client = await site.admin()
    problem(await client.post("/v1/events"), 400, "malformed_body")
    problem(await send(client, b"{"), 400, "malformed_body")
    problem(await send(client, b"{", STRUCTURED), 400, "malformed_body")
    problem(await send(client, b"{", headers=BINARY), 400, "malformed_body")
    problem(await send(client, b"[" * 100 + b"]" * 100, BATCHED), 400, "malformed_body")
    for body in ([], {"Entries": []}, [SOLD] * 501):
        assert problem(await send(client, body), 422, "invalid_input")["field"] == "events"
    assert problem(await send(client, {"Entries": "x"}), 422, "invalid_input")["field"] == "Entries"
    assert problem(await send(client, [CLOUD], STRUCTURED), 422, "invalid_input")["field"] == "events"
    assert problem(await send(client, CLOUD, BATCHED), 422, "invalid_input")["field"] == "events"
    found = problem(await send(client, [SOLD, SOLD], BATCHED), 422, "invalid_input")
    assert found["field"] == "events[0].specversion"
    found = problem(await send(client, SOLD, STRUCTURED), 422, "invalid_input")
    assert found["field"] == "events[0].specversion"
    found = problem(await send(client, {}, headers={"ce-specversion": "1.0", "ce-id": "1"}), 422, "invalid_input")
    assert found["field"] == "events[0].source"
    assert await recorded(site) == []


async def test_media_types_are_those_of_events_here_and_json_elsewhere(site: Site) -> None:
    client = await site.admin()
    for kind in ("text/plain", "application/xml", "application/cloudevents+avro", ""):
        found = problem(await send(client, CLOUD, kind), 415, "unsupported_media_type")
        assert STRUCTURED in found["detail"]
    problem(await send(client, b"some text", "text/plain", headers=BINARY), 415, "unsupported_media_type")
    headers = {"Content-Type": STRUCTURED}
    problem(await client.post("/v1/rules/match", content=b"{}", headers=headers), 415, "unsupported_media_type")
    large = json.dumps(CLOUD | {"data": {"text": "x" * 2_000_000}}).encode()
    for kind in (STRUCTURED, BATCHED, "application/json"):
        problem(await send(client, large, kind), 413, "body_too_large")


async def test_a_large_batch(site: Site) -> None:
    client = await site.admin()
    batch = [SOLD | {"id": f"e{number}"} for number in range(500)]
    assert await posted(client, batch) == ["recorded"] * 500
    assert await posted(client, batch) == ["duplicate"] * 500
    assert len(await recorded(site)) == 500


async def test_who_sent_events_is_in_the_log_and_what_they_say_is_not(site: Site) -> None:
    client, admin = site.client(await site.key("jobs:write")), await site.admin()
    await posted(client, [SOLD, SOLD | {"id": "2"}])
    (entry,) = (await admin.get("/v1/audit-log")).json()["entries"]
    assert (entry["action"], entry["details"]) == ("events.post", {"events": 2})
    problem(await send(site.client(await site.key("jobs:read")), SOLD), 403, "forbidden")
