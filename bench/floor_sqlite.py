"""The floor on SQLite: WAL, synchronous=FULL, one transaction per batch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import cast

import apsw

from bench.floor import CLAIM, Batch, Floor, Written, event

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, remaining INTEGER, document TEXT);
CREATE TABLE task (
    id INTEGER PRIMARY KEY, job INTEGER, name TEXT, state TEXT, waits INTEGER, attempt INTEGER, result TEXT
);
CREATE INDEX task_ready ON task (id) WHERE state = 'ready';
CREATE TABLE edge (up INTEGER, down INTEGER, PRIMARY KEY (up, down)) WITHOUT ROWID;
CREATE TABLE event (seq INTEGER PRIMARY KEY, job INTEGER, task INTEGER, body TEXT);
CREATE INDEX event_job ON event (job, seq);
"""
INSERT_JOB = "INSERT INTO job VALUES (?, 'running', ?, '{}')"
INSERT_TASK = "INSERT INTO task VALUES (?1, ?2, 'noop', iif(?3, 'pending', 'ready'), ?3, 0, NULL)"
INSERT_EDGE = "INSERT INTO edge VALUES (?, ?)"
INSERT_EVENT = "INSERT INTO event (job, task, body) VALUES (?, ?, ?)"
COMPLETE = "UPDATE task SET state = 'done', result = ? WHERE id = ? AND state = 'running'"
RELEASE = """
UPDATE task SET waits = waits - freed.n, state = iif(waits = freed.n, 'ready', state)
FROM (
    SELECT edge.down AS id, count(*) AS n FROM json_each(?) AS done JOIN edge ON edge.up = done.value GROUP BY edge.down
) AS freed
WHERE task.id = freed.id
"""
COUNT_DOWN = "UPDATE job SET remaining = remaining - ? WHERE id = ?"
END = """
UPDATE job SET state = 'done' WHERE remaining = 0 AND id IN (SELECT value FROM json_each(?)) RETURNING id
"""
CLAIM_READY = f"""
UPDATE task SET state = 'running', attempt = attempt + 1
WHERE state = 'ready' AND id IN (SELECT id FROM task WHERE state = 'ready' LIMIT {CLAIM}) RETURNING id, job
"""


class SqliteFloor(Floor):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def open(self) -> None:
        self._db = apsw.Connection(str(self._path))
        self._db.execute(SCHEMA).fetchall()

    async def close(self) -> None:
        self._db.close()

    async def write(self, batch: Batch) -> Written:
        self._db.execute("BEGIN IMMEDIATE")
        if batch.jobs:
            self._insert(batch)
        ended = self._complete(batch) if batch.done else []
        claimed = cast("list[tuple[int, int]]", self._db.execute(CLAIM_READY).fetchall())
        self._db.executemany(INSERT_EVENT, [(job, task, event("task.started", attempt=1)) for task, job in claimed])
        self._db.execute("COMMIT")
        return Written(ended, claimed)

    def _insert(self, batch: Batch) -> None:
        self._db.executemany(INSERT_JOB, zip(batch.jobs, batch.job_tasks, strict=True))
        self._db.executemany(INSERT_TASK, zip(batch.tasks, batch.task_jobs, batch.task_waits, strict=True))
        self._db.executemany(INSERT_EDGE, zip(batch.ups, batch.downs, strict=True))
        self._db.executemany(INSERT_EVENT, zip(batch.task_jobs, batch.tasks, batch.task_events, strict=True))

    def _complete(self, batch: Batch) -> list[int]:
        """Record what is done, make ready what waited for it, and say which jobs ended with it."""
        self._db.executemany(COMPLETE, zip(batch.done_results, batch.done, strict=True))
        self._db.executemany(INSERT_EVENT, zip(batch.done_jobs, batch.done, batch.done_events, strict=True))
        self._db.execute(RELEASE, (json.dumps(batch.done),))
        per_job = Counter(batch.done_jobs)
        self._db.executemany(COUNT_DOWN, [(count, job) for job, count in per_job.items()])
        return [job for (job,) in self._db.execute(END, (json.dumps(list(per_job)),))]
