"""Lists by filters, newest first: each filter has an index of its own, so that a page costs what is on it.

A page is found in two looks: first the keys, along the index of the filter that selects least, then their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ostinato.core import codec, cursors, filters, graph, rows, states
from ostinato.store import database, reads
from ostinato.store.database import fetch

MOST_PAGES = 4
LEAST_LOOKED_AT = 50
"""Jobs, to find those that are not the engine's own."""
AT_ONCE = 10
PAGE_BYTES = 1024 * 1024
"""A page of what may be large ends early when it has become so: its cursor says where to go on."""
KEYS = 10_000
"""Keys are small, so that more of them fit into a page."""


class DeadLetter(NamedTuple):
    """A task that failed for good."""

    job_id: str
    task_id: str
    name: str
    failed_at: int
    attempts: int
    error: Any
    input: Any


class Lists:
    db: database.Database

    async def jobs(
        self, tenant: str, wanted: filters.JobFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[rows.Job]:
        """Jobs, newest first."""
        place = wanted.place(cursor)
        look = _jobs if wanted.include_engine or wanted.name is not None else _jobs_of_users
        return await self.db.read(lambda: look(tenant, wanted, place, filters.check_most(most)))

    async def dead_letters(
        self, tenant: str, wanted: filters.DeadLetterFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[DeadLetter]:
        """Tasks that failed for good, newest first."""
        place = wanted.place(cursor)
        return await self.db.read(lambda: _dead_letters(tenant, wanted, place, filters.check_most(most)))

    async def dead_letter(self, tenant: str, job_id: str, task_id: str) -> DeadLetter | None:
        def script() -> database.Script[DeadLetter | None]:
            found = yield from _read_letters(tenant, [(job_id, task_id)])
            return found[0] if found else None

        return await self.db.read(script)

    async def dead_letter_keys(
        self, tenant: str, wanted: filters.DeadLetterFilter, *, cursor: str | None = None, most: int = KEYS
    ) -> filters.Page[rows.TaskKey]:
        """(job id, task id) of dead letters, newest first: what is enough to count them, or to run them again."""
        place = wanted.place(cursor)

        def script() -> database.Script[filters.Page[rows.TaskKey]]:
            keys, cursor = yield from _letter_places(tenant, wanted, place, most)
            return filters.Page([(job_id, task_id) for _, job_id, task_id in keys], cursor)

        return await self.db.read(script, snapshot=False)

    async def are_dead_letters(self, tenant: str, keys: Sequence[rows.TaskKey]) -> list[rows.TaskKey]:
        """Those of the given tasks that failed for good, in the order in which they were given."""

        def script() -> database.Script[list[rows.TaskKey]]:
            found = yield fetch("read_dead_letter_keys", tenant=tenant, keys=list(keys))
            there = {(row[0], row[1]) for row in found}
            return [key for key in dict.fromkeys(keys) if key in there]

        return await self.db.read(script, snapshot=False)

    async def count_dead_letters(self, tenant: str) -> int:
        def script() -> database.Script[int]:
            return int((yield fetch("count_dead_letters", tenant=tenant))[0][0])

        return await self.db.read(script, snapshot=False)


# --- jobs ------------------------------------------------------------------------------------------------------


def _jobs(
    tenant: str, wanted: filters.JobFilter, place: filters.Place, most: int
) -> database.Script[filters.Page[rows.Job]]:
    tag_key, tag_value = wanted.tag or (None, None)
    args: dict[str, Any] = {
        "tenant": tenant,
        "before_at": place[0],
        "before_id": place[1],
        "after_at": wanted.created_from or 0,
        "after_id": "",
        "states": f",{','.join(wanted.states)}," if wanted.states else None,
        "name": wanted.name,
        "request_id": wanted.request_id,
        "correlation_id": wanted.correlation_id,
        "tag_key": tag_key,
        "tag_value": tag_value,
        "most": most + 1,
    }
    keys: list[tuple[int, str]] = []
    for block, more in _job_looks(wanted):
        keys += [(at, job_id) for at, job_id in (yield fetch(block, **(args | more)))]
    keys.sort(reverse=True)
    cursor = cursors.write(keys[most - 1]) if len(keys) > most else None
    order = {job_id: index for index, (_, job_id) in enumerate(keys[:most])}
    found = yield fetch("load_jobs", tenant=tenant, job_ids=list(order))
    jobs = sorted((rows.Job(*row) for row in found), key=lambda job: order[job.job_id])
    return filters.Page(jobs, cursor)


def _jobs_of_users(
    tenant: str, wanted: filters.JobFilter, place: filters.Place, most: int
) -> database.Script[filters.Page[rows.Job]]:
    """Without the engine's own. No more than a few pages of all are looked at: where most are its own, one is short."""
    kept: list[rows.Job] = []
    for _ in range(MOST_PAGES):
        page = yield from _jobs(tenant, wanted, place, max(most, LEAST_LOOKED_AT))
        for number, job in enumerate(page, 1):
            if not job.name.startswith(graph.OWN_JOBS):
                kept.append(job)
            if len(kept) == most:
                more = number < len(page) or page.cursor is not None
                return filters.Page(kept, cursors.write((job.created_at, job.job_id)) if more else None)
        if page.cursor is None:
            return filters.Page(kept)
        place = wanted.place(page.cursor)
    return filters.Page(kept, cursors.write(place))


def _job_looks(wanted: filters.JobFilter) -> list[tuple[str, dict[str, Any]]]:
    """Which indexes to go along: those of the filter that as a rule selects least. The rest is checked on the way."""
    if wanted.correlation_id is not None:
        # A job without a correlation id of its producer's has its own id, and is not in the index.
        return [("find_jobs_by_correlation_id", {}), ("find_job_by_its_own_correlation_id", {})]
    if wanted.request_id is not None:
        return [("find_jobs_by_request_id", {})]
    if wanted.tag is not None:
        return [("find_jobs_by_tag" if wanted.tag[1] is None else "find_jobs_by_tag_value", {})]
    if wanted.states and (wanted.name is None or states.COMPLETED not in wanted.states):
        return [("find_jobs_by_state", {"state": state}) for state in wanted.states]
    return [("find_jobs" if wanted.name is None else "find_jobs_by_name", {})]


# --- dead letters ----------------------------------------------------------------------------------------------


def _dead_letters(
    tenant: str, wanted: filters.DeadLetterFilter, place: filters.LetterPlace, most: int
) -> database.Script[filters.Page[DeadLetter]]:
    keys, cursor = yield from _letter_places(tenant, wanted, place, most)
    letters: list[DeadLetter] = []
    size = 0
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        order = {key[1:]: index for index, key in enumerate(part)}
        found = yield from _read_letters(tenant, list(order))
        letters += sorted(found, key=lambda letter: order[letter.job_id, letter.task_id])
        size += sum(len(codec.encode_own([letter.input, letter.error])) for letter in found)
        if size > PAGE_BYTES and start + AT_ONCE < len(keys):
            return filters.Page(letters, cursors.write(part[-1]))
    return filters.Page(letters, cursor)


def _read_letters(tenant: str, keys: Sequence[rows.TaskKey]) -> database.Script[list[DeadLetter]]:
    letters: list[DeadLetter] = []
    for job_id, task_id, name, failed_at, attempts, error, data in (
        yield fetch("read_dead_letters", tenant=tenant, keys=list(keys))
    ):
        given = codec.decode((yield from reads.resolve(tenant, job_id, data)))
        reason = None if error is None else codec.decode(error)
        letters.append(DeadLetter(job_id, task_id, name, failed_at, attempts, reason, given))
    return letters


def _letter_places(
    tenant: str, wanted: filters.DeadLetterFilter, place: filters.LetterPlace, most: int
) -> database.Script[tuple[list[filters.LetterPlace], str | None]]:
    found = yield fetch(
        _letter_look(wanted),
        tenant=tenant,
        before_at=place[0],
        before_job=place[1],
        before_task=place[2],
        from_at=0 if wanted.failed_from is None else wanted.failed_from,
        name=wanted.name,
        job_id=wanted.job_id,
        error_type=wanted.error_type,
        most=most + 1,
    )
    keys: list[filters.LetterPlace] = [(at, job_id, task_id) for at, job_id, task_id in found]
    return keys[:most], cursors.write(keys[most - 1]) if len(keys) > most else None


def _letter_look(wanted: filters.DeadLetterFilter) -> str:
    if wanted.job_id is not None:
        return "find_dead_letters_by_job"
    if wanted.error_type is not None:
        return "find_dead_letters_by_error_type"
    return "find_dead_letters" if wanted.name is None else "find_dead_letters_by_name"
