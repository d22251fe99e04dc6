"""Saved results on both databases: saved once, found by word, by likeness and by field, and by nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator
from typing import Any

import apsw
import asyncpg
import pytest

from ostinato import Keyring, Ostinato, errors
from ostinato.results import Draft
from tests.engine import support

REPORTS = {
    "crash": {"summary": "Two cars crashed downtown, near the station", "category": "traffic", "severity": 3},
    "pipe": {"summary": "A burst water main floods Elm Street", "category": "water", "severity": 4},
    "tree": {"summary": "A tree fell on a parked car after the storm", "category": "storm", "severity": 2},
    "brand": {"summary": "Küchenbrand in der Müllerstraße", "category": "fire", "severity": 4, "closed": True},
    "kaji": {"summary": "駅前で火事が発生した", "category": "fire", "severity": 5},
    "cafe": {"summary": "Noise complaint about Café Zoë", "category": "noise", "severity": 1},
}


@contextlib.asynccontextmanager
async def opened(url: str, **given: Any) -> AsyncIterator[Ostinato]:
    async with support.opened(url, work=False, maintain=False, **given) as app:
        yield app


async def save_reports(app: Ostinato) -> None:
    drafts = [Draft(job_id=job_id, document=report, domain="incidents") for job_id, report in REPORTS.items()]
    await app.results.save_many(drafts)


async def found(app: Ostinato, q: str, **wanted: Any) -> list[str]:
    return [hit.job_id for hit in await app.results.search(q, **wanted)]


# --- saving ------------------------------------------------------------------------------------------------------


async def test_a_result_is_read_back_as_it_was_saved(url: str) -> None:
    async with opened(url) as app:
        document = {"summary": "A fire", "nested": {"n": [1, None, "two"]}}
        saved = await app.results.save("job-1", document, domain="incidents", kind="ingestion")
        assert saved.created
        view = await app.results.get(saved.result_id)
        assert (view.document, view.domain, view.kind, view.job_id) == (document, "incidents", "ingestion", "job-1")
        assert view.text == "A fire\ntwo"
        assert view.created_at == saved.created_at
        with pytest.raises(errors.ResultNotFound):
            await app.results.get("another")


async def test_a_job_saves_once(url: str) -> None:
    async with opened(url) as app:
        first = await app.results.save("job-1", {"summary": "original words"})
        again = await app.results.save("job-1", {"summary": "different content"})
        assert (again.result_id, again.created_at, again.created) == (first.result_id, first.created_at, False)
        assert await found(app, "original") == ["job-1"]
        assert await found(app, "different content") == []
        assert len(await app.results.list()) == 1


async def test_two_that_save_at_once_save_one(url: str) -> None:
    async with opened(url) as one, opened(url) as other:
        saved = await asyncio.gather(*[app.results.save("job-1", {"n": n}) for n in range(5) for app in (one, other)])
        assert len({item.result_id for item in saved}) == 1
        assert sum(item.created for item in saved) == 1


async def test_a_batch_takes_what_is_new(url: str) -> None:
    async with opened(url) as app:
        await app.results.save("a", {"n": 1})
        saved = await app.results.save_many([Draft(job_id=name, document={"n": 2}) for name in ("b", "a", "c")])
        assert [(item.job_id, item.created) for item in saved] == [("b", True), ("a", False), ("c", True)]


async def test_what_fails_leaves_nothing(url: str) -> None:
    """The row, its words and its vector come together or not at all."""
    async with opened(url) as app:

        def fail() -> None:
            raise RuntimeError("crash before the commit")

        app.engine.db.before_commit = fail
        with pytest.raises(RuntimeError):
            await app.results.save("job-1", {"summary": "half written"})
        app.engine.db.before_commit = None
        assert await app.results.list() == []
        assert await found(app, "half written") == []
        assert (await app.results.save("job-1", {"summary": "half written"})).created
        assert await found(app, "half written") == ["job-1"]


@pytest.mark.parametrize(
    ("job_id", "given", "field"),
    [("no good", {}, "jobId"), ("job", {"domain": ""}, "domain"), ("job", {"kind": "a\nb"}, "kind")],
)
async def test_what_is_not_right_is_refused(url: str, job_id: str, given: dict[str, Any], field: str) -> None:
    async with opened(url) as app:
        with pytest.raises(errors.InvalidInput) as caught:
            await app.results.save(job_id, {}, **given)
        assert field in (caught.value.details.get("field"), "jobId")
        with pytest.raises(errors.InvalidPayload):
            await app.results.save("job", {"x": "\ud800"})


# --- searching ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "best"),
    [
        ("burst", "pipe"),
        ("BURST water", "pipe"),
        ("what happened with the water main on elm street?", "pipe"),
        ("müllerstrasse", "brand"),
        ("kuchenbrand", "brand"),
        ("cafe zoe", "cafe"),
        ("火事", "kaji"),
    ],
)
async def test_found_by_word(url: str, q: str, best: str) -> None:
    async with opened(url) as app:
        await save_reports(app)
        hits = await app.results.search(q)
        assert hits[0].job_id == best
        assert hits[0].ranks["text"] == 1
        assert hits[0].document == REPORTS[best]
        assert hits[0].snippet in str(hits[0].document) + hits[0].snippet
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize(("q", "best"), [("crashing", "crash"), ("flooded streets", "pipe"), ("küchenbrände", "brand")])
async def test_found_by_likeness_though_no_word_is_the_same(url: str, q: str, best: str) -> None:
    """The built-in embedder knows parts of words: other forms of a word are near it."""
    async with opened(url) as app:
        await save_reports(app)
        hits = await app.results.search(q)
        assert hits[0].job_id == best
        assert "text" not in hits[0].ranks
        assert hits[0].ranks["vector"] == 1


async def test_found_both_ways_is_better_than_one_way(url: str) -> None:
    async with opened(url) as app:
        await save_reports(app)
        hits = await app.results.search("crashed downtown")
        assert hits[0].job_id == "crash"
        assert set(hits[0].ranks) == {"text", "vector"}


@pytest.mark.parametrize("q", ["", " ", "???", "\0", "'", "zzzzqqqq", "\ud800"])
async def test_nothing_is_found(url: str, q: str) -> None:
    async with opened(url) as app:
        assert await found(app, q or "anything") == []
        await save_reports(app)
        assert await found(app, q) == []


@pytest.mark.parametrize(
    "q",
    [
        "burst'", 'burst"', "burst) OR (", "burst AND", "NEAR(burst water)", "tenant:burst", "burst*", "^burst",
        "burst & !", "burst | ) <->", "burst:*", "'burst' && \\", "{burst}", "-burst",
        "burst; DROP TABLE result", "%burst%",
        "burst\0main", "burst\ud800", "\u202eburst", "burst " * 300, "burst " + "x" * 1500, "@burst", "words : burst",
    ],
)  # fmt: skip
async def test_a_query_has_no_syntax(url: str, q: str) -> None:
    async with opened(url) as app:
        await save_reports(app)
        assert (await found(app, q))[0] == "pipe"


async def test_texts_may_hold_anything(url: str) -> None:
    async with opened(url) as app:
        hostile = "it's \\ a \"test\" ':1 'x':2A & | ! <-> \0 \u202e 🔥 naïve " + "long" * 500
        await app.results.save("odd", {"text": hostile})
        await app.results.save("empty", {})
        await app.results.save("none", None)
        await app.results.save("large", {"text": " ".join(f"word{n}" for n in range(20_000))})
        assert (await found(app, "naive test"))[0] == "odd"
        assert "large" in await found(app, "word17 word4000")
        assert len(await app.results.list()) == 4


async def test_filters(url: str) -> None:
    async with opened(url) as app:
        await save_reports(app)
        await app.results.save("other", {"summary": "fire drill", "category": "fire"}, domain="drills")
        everything = "fire car crashed water kuchenbrand noise 火事"
        assert len(await found(app, everything)) == 7
        assert await found(app, everything, domain="drills") == ["other"]
        assert set(await found(app, everything, fields={"severity": 4})) == {"pipe", "brand"}
        assert set(await found(app, everything, fields={"severity": "4", "closed": True})) == {"brand"}
        assert await found(app, everything, fields={"category": "nothing"}) == []
        now = (await app.results.list(most=1))[0].created_at
        later, earlier = now + datetime.timedelta(seconds=1), now - datetime.timedelta(days=1)
        assert await found(app, everything, since=later) == []
        assert await found(app, everything, until=earlier) == []
        assert len(await found(app, everything, since=earlier, until=later)) == 7
        assert len(await app.results.search(everything, most=2)) == 2
        with pytest.raises(errors.InvalidInput, match="time zone"):
            await found(app, "x", since=datetime.datetime(2026, 1, 1))
        with pytest.raises(errors.InvalidInput, match=r"fields\.a must be"):
            await found(app, "x", fields={"a": [1]})
        with pytest.raises(errors.InvalidInput, match="q has"):
            await found(app, "x" * 10_000)


async def test_listed_newest_first_in_pages_by_any_filter(url: str) -> None:
    async with opened(url) as app:
        for n in range(7):
            await app.results.save(f"j{n}", {"n": n, "odd": n % 2, "s": "x"}, domain="odd" if n % 2 else "even")

        async def pages(**wanted: Any) -> list[str]:
            listed: list[str] = []
            cursor = None
            while True:
                page = await app.results.list(cursor=cursor, most=2, **wanted)
                listed += [view.job_id for view in page]
                cursor = page.cursor
                if cursor is None:
                    return listed

        assert await pages() == [f"j{n}" for n in reversed(range(7))]
        assert await pages(domain="odd") == ["j5", "j3", "j1"]
        assert await pages(fields={"odd": 0}) == ["j6", "j4", "j2", "j0"]
        assert await pages(fields={"odd": 0, "n": "4"}) == ["j4"]
        assert await pages(fields={"s": "x"}, domain="odd") == ["j5", "j3", "j1"]
        third = (await app.results.list(fields={"n": 3}))[0].created_at
        assert await pages(until=third) == ["j2", "j1", "j0"]
        assert await pages(since=third) == ["j6", "j5", "j4", "j3"]


async def test_tenants_find_only_their_own(url: str) -> None:
    async with opened(url) as ours, opened(url, tenant="other") as theirs:
        mine = await ours.results.save("job", {"summary": "our secret plan", "k": "v"})
        yours = await theirs.results.save("job", {"summary": "their secret plan", "k": "v"})
        assert mine.result_id != yours.result_id
        for app, own, foreign in ((ours, mine, yours), (theirs, yours, mine)):
            for wanted in ({}, {"fields": {"k": "v"}}):
                assert [hit.result_id for hit in await app.results.search("secret plan", **wanted)] == [own.result_id]
                assert [view.result_id for view in await app.results.list(**wanted)] == [own.result_id]
            with pytest.raises(errors.ResultNotFound):
                await app.results.get(foreign.result_id)
            assert not await app.results.delete(foreign.result_id)
        assert await ours.results.delete(mine.result_id)
        assert await found(theirs, "secret plan") == ["job"]
        assert await found(ours, "secret plan") == []


async def test_what_is_removed_is_not_found(url: str) -> None:
    async with opened(url) as app:
        await save_reports(app)
        [hit] = (await app.results.search("burst"))[:1]
        assert await app.results.delete(hit.result_id)
        assert not await app.results.delete(hit.result_id)
        assert await found(app, "burst water main floods") == []
        assert "pipe" not in [view.job_id for view in await app.results.list(fields={"severity": 4})]
        later = hit.created_at + datetime.timedelta(seconds=1)
        assert await app.results.prune(hit.created_at - datetime.timedelta(days=1)) == 0
        assert await app.results.prune(later) == len(REPORTS) - 1
        assert await app.results.list() == []
        assert await leftovers(url) == {"result": 0, "result_field": 0, "result_words": 0, "result_vector": 0}
        assert (await app.results.save("pipe", REPORTS["pipe"])).created
        assert await found(app, "burst") == ["pipe"]


async def leftovers(url: str) -> dict[str, int]:
    tables = ("result", "result_field", "result_words", "result_vector")
    if url.startswith("sqlite"):
        lite = apsw.Connection(url.removeprefix("sqlite:///"))
        counts = {t: lite.execute(f"SELECT count(*) FROM {t}").fetchall()[0][0] for t in tables}
        lite.close()
        return counts
    connection = await asyncpg.connect(url)
    counts = {t: await connection.fetchval(f"SELECT count(*) FROM {t}") for t in tables}
    await connection.close()
    return counts


# --- other embedders ---------------------------------------------------------------------------------------------


class Meanings:
    """An embedder that knows what it was told: one direction for each meaning."""

    name = "meanings"
    dimensions = 3
    least = 0.5

    def __init__(self) -> None:
        self.broken = False

    async def embed(self, texts: Any) -> list[list[float]]:
        if self.broken:
            raise errors.TargetUnreachable("it is down")
        known = (("car", "vehicle", "collision"), ("flood", "water"), ("fire", "blaze"))
        return [[float(any(word in text.lower() for word in group)) for group in known] for text in texts]


async def test_another_embedder_finds_by_meaning(url: str) -> None:
    async with opened(url) as app:
        app.embedder = Meanings()
        await save_reports(app)
        assert await found(app, "vehicle collision") == ["tree", "crash"]
        assert await found(app, "blaze") == ["kaji", "brand"]


async def test_vectors_of_another_embedder_are_not_compared(url: str) -> None:
    async with opened(url) as app:
        app.results.embedder = Meanings()
        await save_reports(app)
        app.results.embedder = type(app.embedder)()
        hits = await app.results.search("burst pipe")
        assert hits[0].job_id == "pipe"
        assert all(set(hit.ranks) == {"text"} for hit in hits)


async def test_without_its_embedder_a_search_goes_by_words(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(url) as app:
        app.results.embedder = meanings = Meanings()
        await save_reports(app)
        meanings.broken = True
        assert await found(app, "burst water") == ["pipe"]
        assert "words alone" in caplog.text
        with pytest.raises(errors.TargetUnreachable):
            await app.results.save("new", {})
        assert "new" not in [view.job_id for view in await app.results.list()]


# --- encryption --------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def sealed(url: str, *keys: str, **options: Any) -> AsyncIterator[Ostinato]:
    app = support.make(url, work=False, maintain=False, **options)
    app.keyring = Keyring({key: bytes([ord(key[0])]) * 32 for key in keys})
    async with app:
        yield app


async def test_encrypted_results_are_not_in_the_database_in_clear(url: str) -> None:
    async with sealed(url, "k1") as app:
        saved = await app.results.save("job", {"summary": "confidential zebra", "name": "zebra"}, domain="d")
        assert (await app.results.get(saved.result_id)).document["name"] == "zebra"
        assert [view.text for view in await app.results.list(domain="d")] == ["confidential zebra\nzebra"]
        for refused in (app.results.search("zebra"), app.results.list(fields={"name": "zebra"})):
            with pytest.raises(errors.NotSearchable, match="search_index_in_clear"):
                await refused
        assert await leftovers(url) == {"result": 1, "result_field": 0, "result_words": 0, "result_vector": 0}
        assert b"zebra" not in await stored(url)


async def test_an_index_in_clear_is_a_choice(url: str) -> None:
    async with sealed(url, "k1", search_index_in_clear=True) as app:
        await app.results.save("job", {"summary": "confidential zebra", "name": "zebra"})
        [hit] = await app.results.search("zebra", fields={"name": "zebra"})
        assert hit.document["summary"] == "confidential zebra"
        assert b"zebra" not in await stored(url)


async def test_results_take_part_in_key_rotation(url: str) -> None:
    async with opened(url) as app:
        await app.results.save("plain", {"n": 0})
    async with sealed(url, "k1") as app:
        await app.results.save("job", {"n": 1})
    async with sealed(url, "new", "k1") as app:
        assert await app.rotate_encryption() > 0
        counts = await app.encryption_status()
        kinds = [(item.kind, item.key_id, item.count) for item in counts if item.kind.startswith("result")]
        assert kinds == [("result", "new", 2), ("result_text", "new", 2)]
    async with sealed(url, "new") as app:
        assert [view.document for view in await app.results.list()] == [{"n": 1}, {"n": 0}]


async def stored(url: str) -> bytes:
    sql = "SELECT document, text FROM result"
    if url.startswith("sqlite"):
        lite = apsw.Connection(url.removeprefix("sqlite:///"))
        [(document, text)] = lite.execute(sql).fetchall()
        lite.close()
        return document + text
    connection = await asyncpg.connect(url)
    row = await connection.fetchrow(sql)
    await connection.close()
    assert row is not None
    return row[0] + row[1]
