"""The floor on PostgreSQL: synchronous_commit=on; a batch is one call of a function: one round trip, one commit."""

from __future__ import annotations

import asyncpg

from bench.floor import CLAIM, Batch, Floor, Written, event

SCHEMA = """
CREATE TABLE job (id bigint PRIMARY KEY, state text, remaining int, document text);
CREATE TABLE task (
    id bigint PRIMARY KEY, job bigint, name text, state text, waits int, attempt int, result text
) WITH (fillfactor = 70);
CREATE INDEX task_ready ON task (id) WHERE state = 'ready';
CREATE TABLE edge (up bigint, down bigint, PRIMARY KEY (up, down));
CREATE TABLE event (seq bigserial PRIMARY KEY, job bigint, task bigint, body text);
CREATE INDEX event_job ON event (job, seq);

CREATE FUNCTION write_batch(
    new_job bigint[], new_job_tasks int[],
    new_task bigint[], new_task_job bigint[], new_task_waits int[], new_task_event text[],
    new_up bigint[], new_down bigint[],
    done bigint[], done_job bigint[], done_result text[], done_event text[],
    started_event text, most int
) RETURNS TABLE (ended_job bigint, claimed_task bigint, claimed_job bigint) AS $$
BEGIN
    IF cardinality(new_job) > 0 THEN
        INSERT INTO job SELECT n.id, 'running', n.tasks, '{}' FROM unnest(new_job, new_job_tasks) AS n (id, tasks);
        INSERT INTO task
            SELECT n.id, n.job, 'noop', CASE WHEN n.waits = 0 THEN 'ready' ELSE 'pending' END, n.waits, 0, NULL
            FROM unnest(new_task, new_task_job, new_task_waits) AS n (id, job, waits);
        INSERT INTO edge SELECT * FROM unnest(new_up, new_down);
        INSERT INTO event (job, task, body) SELECT * FROM unnest(new_task_job, new_task, new_task_event);
    END IF;
    IF cardinality(done) > 0 THEN
        UPDATE task SET state = 'done', result = d.result
            FROM unnest(done, done_result) AS d (id, result) WHERE task.id = d.id AND task.state = 'running';
        UPDATE task SET waits = waits - freed.n, state = CASE WHEN waits = freed.n THEN 'ready' ELSE state END
            FROM (
                SELECT edge.down AS id, count(*)::int AS n
                FROM unnest(done) AS d (id) JOIN edge ON edge.up = d.id GROUP BY edge.down
            ) AS freed
            WHERE task.id = freed.id;
        INSERT INTO event (job, task, body) SELECT * FROM unnest(done_job, done, done_event);
        RETURN QUERY WITH counted AS (
            UPDATE job SET remaining = remaining - d.n, state = CASE WHEN remaining = d.n THEN 'done' ELSE state END
            FROM (SELECT u.job, count(*)::int AS n FROM unnest(done_job) AS u (job) GROUP BY 1) AS d
            WHERE job.id = d.job RETURNING job.id, job.remaining
        )
        SELECT counted.id, NULL::bigint, NULL::bigint FROM counted WHERE counted.remaining = 0;
    END IF;
    RETURN QUERY WITH ready AS (
        SELECT id FROM task WHERE state = 'ready' ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE task SET state = 'running', attempt = attempt + 1
        FROM ready WHERE task.id = ready.id RETURNING task.id, task.job
    ), started AS (
        INSERT INTO event (job, task, body) SELECT claimed.job, claimed.id, started_event FROM claimed
    )
    SELECT NULL::bigint, claimed.id, claimed.job FROM claimed;
END $$ LANGUAGE plpgsql;
"""
WRITE_BATCH = "SELECT * FROM write_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"


class PostgresFloor(Floor):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def open(self) -> None:
        self._db = await asyncpg.connect(self._url, server_settings={"synchronous_commit": "on"})
        await self._db.execute(SCHEMA)
        self._write = await self._db.prepare(WRITE_BATCH)

    async def close(self) -> None:
        await self._db.close()

    async def write(self, batch: Batch) -> Written:
        rows = await self._write.fetch(
            batch.jobs,
            batch.job_tasks,
            batch.tasks,
            batch.task_jobs,
            batch.task_waits,
            batch.task_events,
            batch.ups,
            batch.downs,
            batch.done,
            batch.done_jobs,
            batch.done_results,
            batch.done_events,
            event("task.started", attempt=1),
            CLAIM,
        )
        ended = [job for job, _, _ in rows if job is not None]
        return Written(ended, [(task, job) for _, task, job in rows if task is not None])
