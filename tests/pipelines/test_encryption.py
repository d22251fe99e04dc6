"""Pipelines with encryption at rest: everything works, and nothing of what items are about can be read."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ostinato import Keyring, Ostinato, audit, errors, rotation, testing
from ostinato.core import codec
from tests.engine.test_encryption import MARKER, ONE, TWO, stored
from tests.pipelines.support import Newsroom, publishing


def make(url: str, **keys: bytes) -> Newsroom:
    room = Newsroom(url)
    room.app.keyring = Keyring(keys)

    @room.app.step("gossip")
    async def gossip(ctx: Any, item: Any) -> None:
        await ctx.finish("irrelevant", reason=MARKER, output={"said": MARKER})

    return room


async def everything(kit: testing.Kit, room: Newsroom) -> None:
    """The marker in payloads, results, errors, notes and reasons; and items that are moved, begun again and over."""
    pipelines = kit.app.pipelines
    await pipelines.define(publishing())
    ending = publishing(name="gossip")
    ending["course"][2] |= {"function": "gossip"}
    await pipelines.define(ending)
    room.fail("tag", 1)
    await pipelines.enter("publishing", {"title": MARKER}, item_id="a1", actor="olga")
    await pipelines.enter("gossip", {"title": MARKER}, item_id="a2")
    await pipelines.enter("publishing", {"title": MARKER}, item_id="a3", hold=True)
    await kit.run_until_idle()
    await kit.advance(60)
    await pipelines.move("a1", "in_review", actor="rita", reason=MARKER)
    await pipelines.move("a1", "editing", actor="rita", payload={"title": f"{MARKER} edited"})
    await pipelines.decide("a1", "re-enrich", actor="rita", notes=MARKER, payload={"title": f"{MARKER} again"})
    await kit.run_until_idle()
    await kit.advance(60)
    await pipelines.decide("a1", "approve", actor="rita", notes=MARKER)
    await pipelines.restart("a1", "pending_enrichment", actor="rita", reason=MARKER)
    await kit.run_until_idle()
    await kit.advance(60)
    await pipelines.roll_back("a1", actor="rita", reason=MARKER)
    await kit.run_until_idle()


async def read(app: Ostinato) -> None:
    found = await app.pipelines.detail("a1")
    assert (found.status, found.run) == ("failed", 3)
    assert found.payload == {"title": f"{MARKER} again"}
    assert found.results["thumbnail"]["title"] == f"{MARKER} again"
    assert "summarize" not in found.results, "it was taken back"
    assert found.last_error is not None
    moved = await (await app.job("a1:3")).events(most=1000)
    assert [one.properties.get("reason") for one in moved if one.type == "Item Moved"][-1] == MARKER
    assert (await app.pipelines.detail("a2")).status == "irrelevant"
    assert (await app.pipelines.detail("a3")).payload == {"title": MARKER}
    assert not (await audit.audit(app.engine.store)).problems


async def entered_again(app: Ostinato) -> None:
    """What an item was entered with is still known."""
    assert not (await app.pipelines.enter("publishing", {"title": MARKER}, item_id="a1")).created
    with pytest.raises(errors.IdempotencyConflict):
        await app.pipelines.enter("publishing", {"title": "another"}, item_id="a1")


async def test_nothing_readable_is_stored(url: str) -> None:
    room = make(url, one=ONE)
    async with testing.open(room.app) as kit:
        await everything(kit, room)
        digest = hashlib.sha256(codec.encode({"title": MARKER}))
        for told in (MARKER.encode(), digest.digest(), digest.hexdigest().encode()):
            assert told not in await stored(url)
        await read(kit.app)
        await entered_again(kit.app)
        status = await kit.app.encryption_status()
        assert {"item", "approval", "output", "events"} <= {view.kind for view in status}
        assert {view.key_id for view in status} == {"one"}
    assert MARKER.encode() not in await stored(url)


async def test_rotation(url: str) -> None:
    room = make(url, one=ONE)
    async with testing.open(room.app) as kit:
        await everything(kit, room)
    told: list[tuple[str, str, int]] = []
    async with testing.open(make(url, two=TWO, one=ONE).app) as kit:
        keys = kit.app.keys_at_hand()
        await rotation.rotate(kit.app.engine.store, keys, progress=lambda *batch: told.append(batch))
        assert ("item", 3) in {(table, rows) for _, table, rows in told}
        assert {view.key_id for view in await kit.app.encryption_status()} == {"two"}
    async with testing.open(make(url, two=TWO).app) as kit:  # the old key can go
        await read(kit.app)
        await entered_again(kit.app)
