"""Counting without waiting: each process adds to rows of its own, and those of processes that are gone are added up."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence

from ostinato.core import tallies
from ostinato.core.tallies import Tally, Topic
from ostinato.store import database
from ostinato.store.database import fetch

NAMED_ANEW = 3_600_000_000
"""Microseconds after which a process goes on under another name: then who began longer ago than twice that is gone."""


class Writer:
    """The name under which a process counts. It begins with the moment at which it was taken on, so that they sort."""

    def __init__(self) -> None:
        self._name = ""
        self._since = 0

    def name(self, now: int) -> str:
        if not self._name or not 0 <= now - self._since < NAMED_ANEW:
            self._since = now
            self._name = f"{_prefix(now)}.{secrets.token_hex(6)}"
        return self._name


def gone(now: int) -> str:
    """Names before this one are not used any more. (Were one still used, it would only have to wait a moment.)"""
    return _prefix(max(now - 2 * NAMED_ANEW, 0))


def _prefix(now: int) -> str:
    return f"{now // 1_000_000:012x}"


class Tallies:
    db: database.Database

    async def read_tallies(
        self,
        tenant: str,
        topic: Topic,
        *,
        keys: Sequence[str] | None = None,
        prefix: str = "",
        since: int = 0,
        until: int | None = None,
    ) -> list[Tally]:
        """What was counted under some keys, or those that begin with `prefix`, by key and bucket, in that order.

        Buckets from `since` up to, but without, `until`."""
        chosen = _span(tenant, topic, since, until)

        def script() -> database.Script[list[Tally]]:
            if keys is not None:
                found = yield fetch("read_tallies_of_keys", keys=sorted(set(keys)), **chosen)
            else:
                found = yield fetch("read_tallies", low=prefix, high=prefix + tallies.LAST_KEY, **chosen)
            return _tallies(found)

        return await self.db.read(script, snapshot=False)

    async def sum_tallies_by_key(
        self, tenant: str, topic: Topic, *, prefix: str = "", since: int = 0, until: int | None = None
    ) -> dict[str, tuple[int, int]]:
        """(count, amount) of each key, over all buckets from `since` to before `until`."""

        def script() -> database.Script[dict[str, tuple[int, int]]]:
            span = _span(tenant, topic, since, until)
            found = yield fetch("sum_tallies_by_key", low=prefix, high=prefix + tallies.LAST_KEY, **span)
            return {key: (int(count), int(amount)) for key, count, amount in found}

        return await self.db.read(script, snapshot=False)

    async def sum_tallies_by_bucket(
        self, tenant: str, topic: Topic, *, prefix: str = "", since: int = 0, until: int | None = None
    ) -> dict[int, tuple[int, int]]:
        """(count, amount) of each bucket, over all keys that begin with `prefix`."""

        def script() -> database.Script[dict[int, tuple[int, int]]]:
            span = _span(tenant, topic, since, until)
            found = yield fetch("sum_tallies_by_bucket", low=prefix, high=prefix + tallies.LAST_KEY, **span)
            return {bucket: (int(count), int(amount)) for bucket, count, amount in found}

        return await self.db.read(script, snapshot=False)

    async def fold_tallies(self, tenant: str, most: int = 1000) -> int:
        """Add up what up to `most` rows of processes that are gone have counted; how many rows there were."""

        def script() -> database.Script[int]:
            before = gone(self.db.now())
            taken = yield fetch("take_tallies", tenant=tenant, before=before, most=most)
            sums: dict[tallies.TallyKey, list[int]] = {}
            for topic, key, bucket, count, amount in taken:
                total = sums.setdefault((topic, key, bucket), [0, 0])
                total[0] += count
                total[1] += amount
            yield database.Run([("add_tally", rows_of(tenant, sums, ""))])
            return len(taken)

        return await self.db.write(script)

    async def prune_tallies(
        self, tenant: str, keep: float, most: int = 1000, topics: Iterable[Topic] = tallies.TOPICS
    ) -> int:
        """Remove up to `most` rows of each topic whose buckets are older than it keeps them, and than `keep`."""

        def script() -> database.Script[int]:
            removed = 0
            for topic in topics:
                if topic.keep is not None:
                    before = topic.bucket(self.db.now() - int(max(topic.keep, keep) * 1e6))
                    found = yield fetch("prune_tally", tenant=tenant, topic=topic.name, before=before, most=most)
                    removed += len(found)
            return removed

        return await self.db.write(script)


def rows_of(tenant: str, sums: Mapping[tallies.TallyKey, Sequence[int]], writer: str) -> list[tuple[object, ...]]:
    """As they are written. In one order, so that two who add to the same rows do not stand in each other's way."""
    return [(tenant, topic, key, bucket, writer, *sums[(topic, key, bucket)]) for topic, key, bucket in sorted(sums)]


def _span(tenant: str, topic: Topic, since: int, until: int | None) -> dict[str, object]:
    return {"tenant": tenant, "topic": topic.name, "since": since, "until": 2**62 if until is None else until}


def _tallies(found: list[database.Row]) -> list[Tally]:
    return sorted(Tally(key, bucket, int(count), int(amount)) for key, bucket, count, amount in found)
