"""The audit log on both databases: nothing in it can be changed, and whoever manages to is found out."""

import asyncio
import contextlib

import pytest

from ostinato import Ostinato, errors
from ostinato.core import audit_chain
from ostinato.store import connect, store
from tests.engine import support

WRITERS = 50
LINKS = 25
"""Each takes two of the hundred connections that a PostgreSQL gives by default."""

TAMPERING = {
    "a changed actor": ("UPDATE audit_log SET actor = 'somebody' WHERE seq = 3", 3),
    "changed details": ("UPDATE audit_log SET details = (SELECT min(details) FROM audit_log) WHERE seq = 4", 4),
    "a changed time": ("UPDATE audit_log SET at = at + 1 WHERE seq = 2", 2),
    "an entry of another tenant": ("UPDATE audit_log SET tenant = 'default' WHERE tenant = 'other' AND seq = 7", 7),
    "a removed entry": ("DELETE FROM audit_log WHERE seq = 3 AND tenant = 'default'", 3),
    "the first entry removed": ("DELETE FROM audit_log WHERE seq = 1 AND tenant = 'default'", 1),
    "two entries swapped": (
        "UPDATE audit_log SET target = CASE seq WHEN 2 THEN 'job-5' ELSE 'job-2' END WHERE seq IN (2, 5)",
        2,
    ),
}


async def fill(app: Ostinato, count: int) -> None:
    for number in range(1, count + 1):
        await app.record(actor="key-1", action="jobs.cancel", target=f"job-{number}", details={"n": number})


async def drop_triggers(url: str) -> None:
    table = "" if url.startswith("sqlite") else " ON audit_log"
    for name in ("audit_log_unchanged", "audit_log_kept"):
        await support.sql(url, f"DROP TRIGGER {name}{table}")


async def test_an_entry_says_who_did_what(url: str) -> None:
    async with support.opened(url, work=False) as app:
        made = await app.record(
            actor="key-1", action="jobs.cancel", target="job-1", details={"reason": "ü"}, request_id="req-1"
        )
        await app.record(actor="key-2", action="keys.create")
        newest, oldest = await app.audit_log()
        assert oldest == made
        assert (oldest.seq, oldest.actor, oldest.action, oldest.target) == (1, "key-1", "jobs.cancel", "job-1")
        assert (oldest.details, oldest.request_id) == ({"reason": "ü"}, "req-1")
        assert (newest.seq, newest.actor, newest.details) == (2, "key-2", {})
        assert [e.seq for e in await app.audit_log(actor="key-1")] == [1]
        assert [e.seq for e in await app.audit_log(action="keys.create")] == [2]
        assert [e.seq for e in await app.audit_log(target="job-1", before=2)] == [1]
        verdict = await app.verify_audit_log()
        assert (verdict.entries, verdict.hash, verdict.problem) == (2, newest.hash, None)


async def test_each_tenant_has_a_chain_of_its_own(url: str) -> None:
    async with support.opened(url, work=False) as app, support.opened(url, tenant="other", work=False) as other:
        await fill(app, 3)
        await fill(other, 2)
        assert [entry.seq for entry in await other.audit_log()] == [2, 1]
        assert (await app.verify_audit_log()).entries == 3
        assert (await other.verify_audit_log()).entries == 2


@pytest.mark.parametrize("statement", ["UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log"])
async def test_the_database_refuses_to_change_the_log(url: str, statement: str) -> None:
    async with support.opened(url, work=False) as app:
        await fill(app, 1)
        with pytest.raises(Exception, match="append-only"):
            await support.sql(url, statement)
        assert (await app.audit_log())[0].actor == "key-1"


async def test_postgres_refuses_to_empty_the_log(postgres_url: str) -> None:
    async with support.opened(postgres_url, work=False) as app:
        await fill(app, 1)
        with pytest.raises(Exception, match="append-only"):
            await support.sql(postgres_url, "TRUNCATE audit_log")


@pytest.mark.parametrize("how", TAMPERING)
async def test_tampering_is_found(url: str, how: str) -> None:
    statement, broken = TAMPERING[how]
    async with support.opened(url, work=False) as app, support.opened(url, tenant="other", work=False) as other:
        await fill(app, 6)
        await fill(other, 7)
        await drop_triggers(url)
        await support.sql(url, statement)
        verdict = await app.verify_audit_log()
        assert verdict.broken_seq == broken, verdict
        assert verdict.entries == broken - 1


async def test_an_end_that_was_cut_off_is_missed(url: str) -> None:
    async with support.opened(url, work=False) as app:
        await fill(app, 5)
        noted = await app.verify_audit_log()
        await drop_triggers(url)
        await support.sql(url, "DELETE FROM audit_log WHERE seq > 3")
        assert (await app.verify_audit_log()).problem is None
        assert (await app.verify_audit_log(head=f"{noted.seq}:{noted.hash}")).broken_seq == 4


async def test_many_writers_make_one_chain(url: str) -> None:
    """Over many connections at once: no two entries follow the same one, and none is missing."""
    async with contextlib.AsyncExitStack() as stack:
        app = await stack.enter_async_context(support.opened(url, work=False, maintain=False))
        stores: list[store.Store] = []
        for _ in range(LINKS):
            database = connect.connect(url)
            await database.open(migrate=False)
            stack.push_async_callback(database.close)
            stores.append(store.Store(database))
        await asyncio.gather(
            *[
                stores[number % LINKS].append_audit(
                    "default", [audit_chain.new_entry(f"key-{number}", "test", "", None, {})]
                )
                for number in range(WRITERS)
                for _ in range(4)
            ]
        )
        verdict = await app.verify_audit_log()
        assert (verdict.entries, verdict.problem) == (4 * WRITERS, None)
        entries = await app.audit_log(most=1000)
        assert [entry.seq for entry in entries] == list(range(4 * WRITERS, 0, -1))
        assert {entry.actor for entry in entries} == {f"key-{number}" for number in range(WRITERS)}


async def test_a_log_of_more_than_a_page(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.store.audit_log.PAGE", 3)
    async with support.opened(url, work=False) as app:
        for count in (3, 4):
            await fill(app, count)
        assert (await app.verify_audit_log()).entries == 7
        await drop_triggers(url)
        await support.sql(url, "UPDATE audit_log SET actor = 'nobody' WHERE seq = 5")
        assert (await app.verify_audit_log()).broken_seq == 5


async def test_an_entry_that_cannot_be_stored_is_refused(url: str) -> None:
    async with support.opened(url, work=False) as app:
        with pytest.raises(errors.InvalidInput, match="actor"):
            await app.record(actor="", action="jobs.cancel")
        assert await app.audit_log() == []
