"""Saved results: a row, its fields, its words and its vector, written together, and found by any of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ostinato import errors
from ostinato.core import codec, cursors, filters, ranking, result_filters
from ostinato.core import tallies as core_tallies
from ostinato.store import database, tallies
from ostinato.store.database import fetch

RANKED = 20_000
"""So many matches of a search for words, the newest ones, are put in order."""
COMPARED = 200_000
"""So many vectors, the newest ones, are compared in one search."""
DEPTH = 100
"""Places of each of the two lists that count when they are fused."""
AT_ONCE = 500
"""Results that are saved in one transaction."""


_COUNT: core_tallies.TallyKey = (core_tallies.RESULTS.name, "", 0)


class NewResult(NamedTuple):
    """What is to be saved. `words` are in the order of the text; `vector` is of the model named, or None."""

    result_id: str
    job_id: str
    domain: str
    kind: str
    document: bytes
    text: str
    fields: Mapping[str, str]
    words: Sequence[str]
    model: str
    vector: Sequence[int] | None


class Saved(NamedTuple):
    """Where it is; `created` is False if the job had saved its result before, which then stays as it is."""

    result_id: str
    job_id: str
    created_at: int
    created: bool


class Result(NamedTuple):
    number: int
    result_id: str
    job_id: str
    domain: str
    kind: str
    created_at: int
    document: bytes
    text: str


class Question(NamedTuple):
    """What to search for: words, a vector of a model, or both. What is less alike than `least` does not count."""

    words: Sequence[str] = ()
    model: str = ""
    vector: Sequence[int] | None = None
    least: float = -1.0


class Found(NamedTuple):
    result: Result
    score: float
    ranks: Mapping[str, int]
    """The places by `text` and by `vector`, where it was found that way."""


class Results:
    db: database.Database
    results_indexed: bool
    """Whether anything beside the rows themselves is kept of results."""
    writer_of_tallies: Callable[[int], str]
    """Under which name this process counts at a moment."""

    async def save_result(self, tenant: str, new: NewResult) -> Saved:
        """Save the result of a job; a job has one. Saving it again changes nothing and says where it is."""
        return (await self.save_results(tenant, [new]))[0]

    async def save_results(self, tenant: str, new: Sequence[NewResult]) -> list[Saved]:
        """Save the results of different jobs, up to `AT_ONCE` in one transaction."""
        saved: list[Saved] = []
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            saved += await self.db.write(lambda part=part: self._save(tenant, part))
        return saved

    def _save(self, tenant: str, new: Sequence[NewResult]) -> database.Script[list[Saved]]:
        job_ids = [item.job_id for item in new]
        before = yield from _of_jobs(tenant, job_ids)
        fresh = {item.job_id: item for item in new if item.job_id not in before}
        if fresh:
            now = self.db.now()
            new_rows = [_row(tenant, item, now) for item in fresh.values()]
            more = tallies.rows_of(tenant, {_COUNT: (len(fresh), 0)}, self.writer_of_tallies(now))
            yield database.Run([("insert_result", new_rows), ("add_tally", more)])
            there = yield from _of_jobs(tenant, list(fresh))
            if self.results_indexed:
                yield from _index(tenant, now, [(there[job_id].number, item) for job_id, item in fresh.items()])
            before |= there
        places = [before[job_id] for job_id in job_ids]
        return [
            Saved(place.result_id, job_id, place.created_at, job_id in fresh)
            for job_id, place in zip(job_ids, places, strict=True)
        ]

    async def result(self, tenant: str, result_id: str) -> Result:
        def script() -> database.Script[Result]:
            found = yield fetch("read_result", tenant=tenant, result_id=result_id)
            if not found:
                raise errors.ResultNotFound(resultId=result_id)
            return _result(found[0])

        return await self.db.read(script, snapshot=False)

    async def results(
        self, tenant: str, wanted: result_filters.ResultFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[Result]:
        """Results, newest first."""
        filters.check_most(most)
        if wanted.fields:
            self._check_indexed()
        place = wanted.place(cursor)
        return await self.db.read(lambda: _list(tenant, wanted, place, most))

    async def search_text(
        self, tenant: str, words: Sequence[str], wanted: result_filters.ResultFilter, *, most: int = 10
    ) -> list[Found]:
        """What has any of the words, best first."""
        return await self.search_results(tenant, Question(words), wanted, most=most)

    async def search_vector(
        self, tenant: str, model: str, vector: Sequence[int], wanted: result_filters.ResultFilter, *, most: int = 10
    ) -> list[Found]:
        """What is most alike, best first."""
        return await self.search_results(tenant, Question((), model, vector), wanted, most=most)

    async def search_results(
        self, tenant: str, asked: Question, wanted: result_filters.ResultFilter, *, most: int = 10
    ) -> list[Found]:
        """What is best by words and by likeness together. All of it is read on one snapshot."""
        filters.check_most(most)
        self._check_indexed()
        return await self.db.read(lambda: _search(tenant, asked, wanted, most), long=True)

    async def delete_result(self, tenant: str, result_id: str) -> bool:
        """Remove a result with all that it is found by; False if there is none."""

        def script() -> database.Script[bool]:
            found = yield fetch("find_result_number", tenant=tenant, result_id=result_id)
            return bool(found) and (yield from _delete(tenant, [found[0][0]])) > 0

        return await self.db.write(script)

    async def prune_results(self, tenant: str, before: int, *, most: int = AT_ONCE) -> int:
        """Remove up to `most` results that were saved before a time, the oldest first; how many that were."""

        def script() -> database.Script[int]:
            found = yield fetch("find_old_results", tenant=tenant, before=before, most=most)
            return (yield from _delete(tenant, [row[0] for row in found])) if found else 0

        return await self.db.write(script)

    def _check_indexed(self) -> None:
        if not self.results_indexed:
            raise errors.NotSearchable()


# --- saving ------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    number: int
    result_id: str
    created_at: int


def _of_jobs(tenant: str, job_ids: list[str]) -> database.Script[dict[str, _Place]]:
    found = yield fetch("load_results_of_jobs", tenant=tenant, job_ids=job_ids)
    return {row[0]: _Place(row[1], row[2], row[3]) for row in found}


def _row(tenant: str, new: NewResult, now: int) -> tuple[Any, ...]:
    return (tenant, new.result_id, new.job_id, new.domain, new.kind, now, new.document, _text(new))


def _text(new: NewResult) -> bytes:
    return codec.encode(new.text, "text")


def _digest(new: NewResult) -> int:
    parts = (new.result_id, new.job_id, new.domain, new.kind, new.document, _text(new))
    return digest_of(parts, new.fields, new.model, new.vector)


def digest_of(parts: Sequence[str | bytes], fields: Mapping[str, str], model: str, vector: Sequence[int] | None) -> int:
    """By which the audit knows a result with all that it is found by. (What is encrypted proves itself.)"""
    said = [part.decode() if isinstance(part, bytes) else part for part in parts]
    found_by = [dict(fields), [model, list(vector)] if vector else None]
    digest = hashlib.sha256(codec.encode_canonical([*said, *found_by])).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _index(tenant: str, now: int, items: Sequence[tuple[int, NewResult]]) -> database.Script[None]:
    yield database.Run([("insert_result_digest", [(tenant, number, _digest(item)) for number, item in items])])
    fields = [(number, key, value) for number, item in items for key, value in item.fields.items()]
    if fields:
        yield fetch("insert_result_fields", tenant=tenant, created_at=now, rows=fields)
    words = [(number, item.domain, " ".join(item.words)) for number, item in items if item.words]
    if words:
        yield fetch("insert_result_words", tenant=tenant, created_at=now, rows=words)
    for model in sorted({item.model for _, item in items if item.vector}):
        vectors = [
            (number, item.domain, codec.encode_own(item.vector).decode())
            for number, item in items
            if item.vector and item.model == model
        ]
        yield fetch("insert_result_vectors", tenant=tenant, created_at=now, model=model, rows=vectors)


def _delete(tenant: str, numbers: list[int]) -> database.Script[int]:
    for block in ("delete_result_digests", "delete_result_fields", "delete_result_words", "delete_result_vectors"):
        yield fetch(block, tenant=tenant, numbers=numbers)
    gone = len((yield fetch("delete_results", tenant=tenant, numbers=numbers)))
    if gone:
        yield database.Run([("add_tally", tallies.rows_of(tenant, {_COUNT: (-gone, 0)}, ""))])
    return gone


# --- finding -----------------------------------------------------------------------------------------------------


def _list(
    tenant: str, wanted: result_filters.ResultFilter, place: result_filters.Place, most: int
) -> database.Script[filters.Page[Result]]:
    args: dict[str, Any] = {
        "tenant": tenant,
        "before_at": place[0],
        "before_number": place[1],
        "from_at": wanted.since,
        "domain": wanted.domain,
        "most": most + 1,
    }
    block = "find_results" if wanted.domain is None else "find_results_by_domain"
    if wanted.fields:
        block = "find_results_by_field"
        (args["key"], args["value"]), *others = wanted.fields
        args["fields"] = others
    keys: list[result_filters.Place] = [(at, number) for at, number in (yield fetch(block, **args))]
    found = yield from _read(tenant, [number for _, number in keys[:most]])
    return filters.Page(found, cursors.write(keys[most - 1]) if len(keys) > most else None)


def _search(
    tenant: str, asked: Question, wanted: result_filters.ResultFilter, most: int
) -> database.Script[list[Found]]:
    depth = max(DEPTH, most)
    args: dict[str, Any] = {
        "tenant": tenant,
        "domain": wanted.domain,
        "from_at": wanted.since,
        "until_at": wanted.until,
        "fields": list(wanted.fields),
        "many": len(wanted.fields),
        "most": depth,
    }
    lists: dict[str, list[int]] = {}
    if asked.words:
        rows = yield fetch("search_result_words", words=" ".join(asked.words), ranked=RANKED, **args)
        lists["text"] = [row[0] for row in rows]
    if asked.vector:
        vector = codec.encode_own(asked.vector).decode()
        like = {"model": asked.model, "vector": vector, "compared": COMPARED, "least": asked.least}
        rows = yield fetch("search_result_vectors", **like, **args)
        lists["vector"] = [row[0] for row in rows]
    best = ranking.fuse(lists, most)
    found = yield from _read(tenant, [ranked.item for ranked in best])
    return [Found(result, ranked.score, ranked.ranks) for result, ranked in zip(found, best, strict=True)]


def _read(tenant: str, numbers: list[int]) -> database.Script[list[Result]]:
    """In the order in which they are asked for."""
    if not numbers:
        return []
    rows = yield fetch("read_results", tenant=tenant, numbers=numbers)
    by_number = {row[0]: _result(row) for row in rows}
    return [by_number[number] for number in numbers]


def _result(row: database.Row) -> Result:
    return Result(*row)._replace(text=codec.decode(row[-1]))
