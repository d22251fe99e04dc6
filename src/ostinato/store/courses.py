"""Items of pipelines for a transaction: which they are, and the courses that they follow."""

from __future__ import annotations

import msgspec

from ostinato import errors
from ostinato.core import courses, items, ledger, needs, retry
from ostinato.store import database, memory
from ostinato.store.database import fetch

KIND = "pipeline"
RETRY_KIND = "retry-policy"
MOST_COURSES = 1000
RETRIES_SECONDS = 1.0
"""How long a process may go on with the retry policies as they were."""


class CourseCache:
    """Courses never change once they are saved. Retry policies do, and are read anew every second."""

    def __init__(self) -> None:
        self._courses: dict[tuple[str, str, int], courses.Course] = {}
        self._retries: dict[str, tuple[int, dict[str, retry.Retry]]] = {}

    def load(self, tenant: str, now: int, wanted: needs.Needs, book: ledger.Ledger) -> database.Script[None]:
        """What the items of a transaction need; nothing is read where there are none."""
        runs = [j.job_id for j in book.jobs.values() if j.name.startswith(courses.JOB) and j.job_id not in book.items]
        if runs:
            for row in (yield fetch("load_items", tenant=tenant, job_ids=runs)):
                enter(book, items.read(row))
        if not (book.items or book.items_by_id or wanted.courses):
            return
        pinned = {(item.pipeline, item.version) for item in (*book.items.values(), *book.items_by_id.values())}
        for name, version in wanted.courses | pinned:
            book.courses[(name, version)] = yield from self.course(tenant, name, version)
        if book.items:
            book.retries = yield from self._policies(tenant, now)

    def course(self, tenant: str, name: str, version: int) -> database.Script[courses.Course]:
        key = (tenant, name, version)
        known = self._courses.get(key)
        if known is None:
            found = yield fetch("read_definition_version", tenant=tenant, kind=KIND, name=name, version=version)
            if not found or found[0][2] is None:
                raise errors.DefinitionNotFound(f"there is no version {version} of pipeline {name!r}", name=name)
            if len(self._courses) >= MOST_COURSES:
                self._courses.clear()
            known = self._courses[key] = courses.decode(found[0][2], version)
        return known

    def forget(self, tenant: str) -> None:
        self._retries.pop(tenant, None)

    def _policies(self, tenant: str, now: int) -> database.Script[dict[str, retry.Retry]]:
        known = self._retries.get(tenant)
        if known is not None and now - known[0] <= RETRIES_SECONDS * 1e6:
            return known[1]
        found = yield fetch("list_definitions", tenant=tenant, kind=RETRY_KIND)
        policies = {row[0]: msgspec.json.decode(row[2], type=retry.Retry) for row in found}
        self._retries[tenant] = (now, policies)
        return policies


def find_items(
    tenant: str, wanted: needs.Needs, recalled: memory.Recalled, book: ledger.Ledger
) -> database.Script[None]:
    """Items that commands name. Only now is it known which jobs to load."""
    for row in (yield fetch("load_items_by_id", tenant=tenant, item_ids=sorted(wanted.items))):
        item = items.read(row)
        if item.job_id is not None and item.job_id in book.items:
            item = book.items[item.job_id]  # as it is remembered: a change of it is checked when it is written
        elif item.job_id is not None:
            recalled.job_ids.append(item.job_id)
        enter(book, item)


def enter(book: ledger.Ledger, item: items.Item) -> None:
    book.items_by_id[item.item_id] = item
    if item.job_id is not None:
        book.items[item.job_id] = item
