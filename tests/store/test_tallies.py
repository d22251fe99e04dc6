"""Counts are exact whoever counts, and whenever they are added up; and nobody waits for anybody else's rows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import msgspec

from ostinato import testing
from ostinato.core import ledger, needs
from ostinato.core.tallies import DAY, HOUR, Tally, Topic
from ostinato.engine import maintenance
from ostinato.store import connect, store

VISITS = Topic("test.visits", HOUR, 2 * DAY)
EVER = Topic("test.ever")


class Count(msgspec.Struct):
    """Somebody counts."""

    topic: Topic
    key: str
    count: int = 1
    amount: int = 0

    def needs(self, wanted: needs.Needs) -> None: ...

    def apply(self, book: ledger.Ledger) -> None:
        book.tally(self.topic, self.key, self.count, self.amount)


@contextlib.asynccontextmanager
async def process(url: str, clock: testing.Clock) -> AsyncGenerator[store.Store]:
    db = connect.connect(url, clock=clock)
    await db.open(migrate=True)
    try:
        yield store.Store(db)
    finally:
        await db.close()


async def test_several_processes_count_and_fold_at_the_same_time(url: str) -> None:
    clock = testing.Clock()
    async with process(url, clock) as one, process(url, clock) as two:

        async def work(target: store.Store, times: int) -> None:
            for n in range(times):
                batch = [Count(VISITS, f"page:{n % 3}", 1, 10), Count(EVER, "x", -1), Count(EVER, "x", 3, n)]
                await target.execute("default", batch)

        async def fold(target: store.Store) -> None:
            for _ in range(10):
                await target.fold_tallies("default", most=2)

        await asyncio.gather(work(one, 30), work(two, 30))
        clock.advance(3 * HOUR)  # by now both go by other names, and what they counted before is folded meanwhile
        await asyncio.gather(work(one, 30), fold(two), fold(one), work(two, 30))
        assert await two.sum_tallies_by_key("default", EVER) == {"x": (240, 4 * sum(range(30)))}
        assert await one.sum_tallies_by_key("default", VISITS, prefix="page:") == {
            f"page:{n}": (40, 400) for n in range(3)
        }
        assert await one.sum_tallies_by_key("other", VISITS) == {}


async def test_reading_by_key_prefix_and_bucket(url: str) -> None:
    clock = testing.Clock()
    first = VISITS.bucket(clock())
    async with process(url, clock) as target:
        await target.execute("default", [Count(VISITS, "a:1"), Count(VISITS, "a:2", 2, 5), Count(VISITS, "b")])
        clock.advance(HOUR)
        await target.execute("default", [Count(VISITS, "a:1", 4)])
        assert await target.read_tallies("default", VISITS, prefix="a:") == [
            Tally("a:1", first, 1, 0),
            Tally("a:1", first + 1, 4, 0),
            Tally("a:2", first, 2, 5),
        ]
        assert await target.read_tallies("default", VISITS, keys=["b", "a:1", "a:1"], until=first + 1) == [
            Tally("a:1", first, 1, 0),
            Tally("b", first, 1, 0),
        ]
        await target.execute("other", [Count(VISITS, "b", 100)])
        assert [one.count for one in await target.read_tallies("default", VISITS, keys=["b"])] == [1], "its own alone"
        assert [one.count for one in await target.read_tallies("default", VISITS, prefix="b")] == [1]
        assert await target.sum_tallies_by_bucket("default", VISITS, prefix="a:") == {first: (3, 5), first + 1: (4, 0)}
        assert await target.sum_tallies_by_key("default", VISITS, since=first + 1) == {"a:1": (4, 0)}
        assert VISITS.begins(first) <= clock() - HOUR * 1_000_000 < VISITS.begins(first + 1)


async def test_what_the_gone_have_counted_is_added_up_and_what_is_old_removed(url: str) -> None:
    clock = testing.Clock()
    for _ in range(3):
        async with process(url, clock) as gone:
            await gone.execute("default", [Count(VISITS, "a"), Count(EVER, "a")])
    clock.advance(HOUR)
    async with process(url, clock) as target:
        assert await target.fold_tallies("default") == 0, "they may be at it still"
        clock.advance(2 * HOUR)
        await target.execute("default", [Count(EVER, "a")])
        pruner = maintenance.Pruner(target, 1.0)
        await pruner.run_once()
        assert await target.fold_tallies("default") == 0
        assert await target.sum_tallies_by_key("default", EVER) == {"a": (4, 0)}
        assert await target.sum_tallies_by_key("default", VISITS) == {"a": (3, 0)}
        clock.advance(2 * DAY)
        assert await target.prune_tallies("default", 5 * DAY, topics=[VISITS, EVER]) == 0, "its tenant keeps all longer"
        assert await target.prune_tallies("default", HOUR, topics=[VISITS, EVER]) == 1
        assert await target.sum_tallies_by_key("default", VISITS) == {}
        assert await target.sum_tallies_by_key("default", EVER) == {"a": (4, 0)}
