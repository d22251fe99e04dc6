"""What the audit looks at beside jobs: rows of jobs that are not there, items of pipelines with their history, and what
the database takes for legal. All of it is read a page at a time, so that nobody waits long for the audit."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator

from ostinato.core import codec, courses, items, tables
from ostinato.store import courses as course_cache
from ostinato.store import database, results, snapshots
from ostinato.store.database import fetch

AT_ONCE = 500
ITEMS_AT_ONCE = 50
"""Their payloads may be large."""
MOST_NAMED = 100

Found = tuple[str, str]
"""The invariant, and a sentence."""


async def orphans(db: database.Database, tenant: str) -> dict[str, list[str]]:
    """The jobs that are not there and of which something is, with the tables in which it is."""
    found: dict[str, list[str]] = {}
    for table in tables.OF_JOBS:
        after = ""
        while page := await db.read(functools.partial(_page, tenant, table.name, after), snapshot=False, long=True):
            for job_id, there in page:
                if not there:
                    found.setdefault(job_id, []).append(table.name)
            after = page[-1][0]
    return dict(sorted(found.items()))


def _page(tenant: str, table: str, after: str) -> database.Script[list[database.Row]]:
    return (yield fetch(f"audit_ids_of_{table}", tenant=tenant, after=after, most=AT_ONCE))


async def of_items(db: database.Database, tenant: str) -> AsyncIterator[Found]:
    """The history of every item leads to where it is, as many are counted as there are, what was given for them is
    what they are known by, and what is legal is what their pipeline says."""
    after = ""
    while page := await db.read(functools.partial(_read_items, tenant, after), snapshot=False, long=True):
        for item_id, digest, payload, is_sealed in page:
            if not isinstance(payload, bytes) or not isinstance(digest, bytes):
                yield "I4", f"what item {item_id!r} was given is not stored as it should be"
            elif payload[:1] == codec.SEAL_MARK or digest[:1] == codec.SEAL_MARK:
                yield "I4", f"what item {item_id!r} was given cannot be decrypted"
            elif not items.is_intact(digest, payload, proven=bool(is_sealed)):
                yield "I4", f"what item {item_id!r} was given is not what was recorded"
        after = page[-1][0]
    for one in await db.read(lambda: _moves(tenant), long=True):
        yield one


def _read_items(tenant: str, after: str) -> database.Script[list[database.Row]]:
    return (yield fetch("audit_items", tenant=tenant, after=after, most=ITEMS_AT_ONCE, mark=codec.SEAL_MARK))


async def of_results(db: database.Database, tenant: str) -> AsyncIterator[Found]:
    """Each saved result is what was saved, with all that it is found by, and there are as many as are counted."""
    place = (-1, 0)
    while page := await db.read(functools.partial(_read_results, tenant, place), long=True):
        for result_id, problem in page[1]:
            yield "I4", f"result {result_id!r} {problem}"
        if page[0] is None:
            break
        place = page[0]
    ((there, counted),) = await db.read(functools.partial(_count_results, tenant), snapshot=False, long=True)
    if there != counted:
        yield "I8", f"{there} results are saved, and {counted} are counted"


def _read_results(
    tenant: str, place: tuple[int, int]
) -> database.Script[tuple[tuple[int, int] | None, list[tuple[str, str]]]]:
    """Where to go on, and what is wrong with the next results."""
    found: list[tuple[str, str]] = []
    rows = yield fetch("audit_results", tenant=tenant, at=place[0], number=place[1], most=ITEMS_AT_ONCE)
    for number, result_id, job_id, domain, kind, _, document, text, digest in rows:
        if any(part is not None and part[:1] == codec.SEAL_MARK for part in (document, text)):
            found.append((result_id, "cannot be decrypted"))
        elif digest is not None:
            fields = {row[0]: row[1] for row in (yield fetch("audit_result_fields", tenant=tenant, number=number))}
            vectors = yield fetch("audit_result_vector", tenant=tenant, number=number)
            model, vector = (vectors[0][0], _numbers(vectors[0][1])) if vectors else ("", None)
            parts = (result_id, job_id, domain, kind, document, text)
            if results.digest_of(parts, fields, model, vector) != digest:
                found.append((result_id, "is not what was saved, or is found by something else"))
    last = (rows[-1][5], rows[-1][0]) if rows else None
    return last, found


def _numbers(stored: bytes | str) -> list[int]:
    """A vector: a byte for each number, or the numbers as text."""
    if isinstance(stored, str):
        return [int(number) for number in codec.decode(stored)]
    return [number - 256 if number > 127 else number for number in stored]


def _count_results(tenant: str) -> database.Script[list[database.Row]]:
    return (yield fetch("audit_result_count", tenant=tenant))


def _moves(tenant: str) -> database.Script[list[Found]]:
    found: list[Found] = []
    for item_id, status, number, before, after in (yield fetch("audit_item_moves", tenant=tenant)):
        message = f"item {item_id!r} is in {status}, and move {number} of its history goes from {before} to {after}"
        found.append(("I8", message))
    miscounted = yield fetch("audit_item_counts", tenant=tenant)
    for key, there, counted in miscounted:
        found.append(("I8", f"{there} items are in {key}, and {counted} are counted"))
    if miscounted:  # an item may go before an old run of it does, so this alone says nothing
        for (item_id,) in (yield fetch("audit_lost_items", tenant=tenant, most=MOST_NAMED)):
            found.append(("I8", f"item {item_id!r} is gone, and a run or a history of it is there"))
    known: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for pipeline, version, before, after in (yield fetch("audit_legal_moves", tenant=tenant)):
        known.setdefault((pipeline, version), set()).add((before, after))
    for (pipeline, version), moves in known.items():
        about = {"tenant": tenant, "kind": course_cache.KIND, "name": pipeline, "version": version}
        saved = yield fetch("read_definition_version", **about)
        found += [("I10", message) for message in _move_problems(pipeline, version, moves, saved)]
    return found


def _move_problems(
    pipeline: str, version: int, moves: set[tuple[int, int]], saved: list[database.Row]
) -> Iterator[str]:
    what = f"version {version} of pipeline {pipeline!r}"
    try:
        legal = courses.decode(saved[0][2], version).moves if saved else frozenset[tuple[int, int]]()
    except snapshots.UNREADABLE as error:
        yield snapshots.cannot(what, error)
        return
    for before, after in sorted(moves ^ legal):
        yield f"{what} and the database disagree on {before} to {after}"
