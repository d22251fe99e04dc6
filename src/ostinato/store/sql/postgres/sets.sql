-- Removing finished jobs, and reads over sets.
-- Differs: PostgreSQL takes a set as an array.

-- name: prune_blob
-- Remove what belongs to the given jobs.
DELETE FROM blob WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_signal
-- Remove what belongs to the given jobs.
DELETE FROM signal WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_step
-- Remove what belongs to the given jobs.
DELETE FROM step WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_timer
-- Remove what belongs to the given jobs.
DELETE FROM timer WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_dead_letter
-- Remove what belongs to the given jobs.
DELETE FROM dead_letter WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_edge
-- Remove what belongs to the given jobs.
DELETE FROM edge WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_event_page
-- Remove what belongs to the given jobs.
DELETE FROM event_page WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_job_tag
-- Remove what belongs to the given jobs.
DELETE FROM job_tag WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_task
-- Remove what belongs to the given jobs.
DELETE FROM task WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: prune_job
-- Remove what belongs to the given jobs.
DELETE FROM job WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: lock_old
-- Those of the given jobs that still can be removed, locked: each by its own period if it has one.
SELECT job_id FROM job WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[])
    AND finished_at IS NOT NULL AND finished_at < coalesce(:now::int8 - keep_seconds * 1000000, :before::int8)
    AND NOT EXISTS (
        SELECT 1 FROM item i WHERE i.tenant = :tenant AND i.job_id = job.job_id AND i.open LIMIT 1 OFFSET 0)
ORDER BY job_id FOR UPDATE OF job;

-- name: insert_removed_key
-- Remember the keys of the given jobs.
INSERT INTO removed_key (tenant, idempotency_key, job_id, request_hash, removed_at)
SELECT j.tenant, j.idempotency_key, j.job_id, j.request_hash, :now
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM job x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) j
WHERE j.idempotency_key IS NOT NULL
ON CONFLICT (tenant, idempotency_key) DO UPDATE SET
    job_id = excluded.job_id, request_hash = excluded.request_hash, removed_at = excluded.removed_at;

-- name: read_states
-- How jobs stand.
SELECT job_id, state FROM job WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: read_task_names
-- The functions of tasks.
SELECT k.job_id, k.task_id, t.name
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT name FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t;

-- name: read_dependency_outputs
-- The outcomes of some of what one task depends on.
SELECT t.task_id, t.state, t.output, t.error
FROM unnest(:wanted::text[]) AS k (task_id)
CROSS JOIN LATERAL (
    SELECT x.up FROM edge x
    WHERE x.tenant = :tenant AND x.job_id = :job_id AND x.up = k.task_id AND x.down = :task_id OFFSET 0
) e
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = :job_id AND x.task_id = e.up OFFSET 0
) t;

-- name: read_leased
-- Who holds the given tasks, and until when.
SELECT t.job_id, t.task_id, t.token, t.timeout_at
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t
WHERE t.state = 'processing';

-- name: list_pages
-- The stream of a job, from a place on; with a mention, only pages that contain it.
SELECT first_seq, last_seq, at, body FROM event_page
WHERE tenant = :tenant AND job_id = :job_id AND last_seq > :after
    AND (:mention::bytea IS NULL OR position(:mention::bytea IN body) > 0)
ORDER BY last_seq
LIMIT :most;

-- name: feed
-- Pages of all jobs of a tenant from a place on, in the order of their commits. Numbers are drawn before the commit, so it goes by
-- transaction first, and no further than the oldest transaction that may still commit: nothing late is ever skipped.
SELECT p.transaction::text::int8, p.position, p.job_id, p.first_seq, p.at, p.body, j.name, j.correlation_id
FROM event_page p
CROSS JOIN LATERAL (SELECT x.name, x.correlation_id FROM job x WHERE x.tenant = p.tenant AND x.job_id = p.job_id OFFSET 0) j
WHERE p.tenant = :tenant
    AND (p.transaction, p.position) >= (CAST(CAST(:major::int8 AS text) AS xid8), :minor::int8)
    AND p.transaction < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY p.transaction, p.position
LIMIT :most;

-- name: feed_of_job
-- The pages of one job in the feed, from a place on. Its events are in the same order there as in its own stream.
SELECT p.transaction::text::int8, p.position, p.job_id, p.first_seq, p.at, p.body, j.name, j.correlation_id
FROM event_page p JOIN job j ON j.tenant = p.tenant AND j.job_id = p.job_id
WHERE p.tenant = :tenant AND p.job_id = :job_id
    AND (p.transaction, p.position) >= (CAST(CAST(:major::int8 AS text) AS xid8), :minor::int8)
    AND p.transaction < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY p.last_seq
LIMIT :most;

-- name: feed_end
-- Where the feed ends now, and whether that is after everything that was committed: no transaction is under way.
SELECT
    pg_snapshot_xmin(pg_current_snapshot())::text::int8, 0,
    pg_snapshot_xmin(pg_current_snapshot()) = pg_snapshot_xmax(pg_current_snapshot());

-- name: feed_end_of_tenant
-- The last event of a tenant in the feed, as far as the feed can be shown.
SELECT transaction::text::int8, position, last_seq FROM event_page
WHERE tenant = :tenant AND transaction < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY transaction DESC, position DESC LIMIT 1;

-- name: read_dead_letters
-- Dead letters by key, in no order.
SELECT d.job_id, d.task_id, d.name, d.failed_at, t.attempt, t.error, t.input
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM dead_letter x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) d
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t;

-- name: read_dead_letter_keys
-- Those of the given tasks that are dead letters.
SELECT d.job_id, d.task_id
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM dead_letter x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) d;

-- name: prune_gate_key
-- Remove what belongs to the given jobs.
DELETE FROM gate_key WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: count_outcomes
-- How the tasks of jobs went, by function; how long they took is in microseconds.
SELECT
    t.name, sum(CASE WHEN t.state = 'completed' THEN 1 ELSE 0 END), sum(CASE WHEN t.state = 'failed' THEN 1 ELSE 0 END),
    sum(CASE WHEN t.attempt > 1 THEN 1 ELSE 0 END), avg(t.finished_at - t.started_at)
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) t
WHERE t.state = 'completed' OR t.state = 'failed'
GROUP BY t.name ORDER BY t.name;

-- name: read_dependencies_of_tasks
-- What tasks depend on, of any jobs.
SELECT e.job_id, e.down, e.up
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT job_id, up, down FROM edge x
    WHERE CASE x.tenant WHEN '' THEN '' ELSE x.tenant END = :tenant AND x.job_id = k.job_id AND x.down = k.task_id
    OFFSET 0
) e
ORDER BY e.job_id, e.down, e.up;

-- name: read_dependencies_of
-- What some tasks of a job depend on.
SELECT e.down, e.up
FROM unnest(:task_ids::text[]) AS k (task_id)
CROSS JOIN LATERAL (
    SELECT up, down FROM edge x
    WHERE CASE x.tenant WHEN '' THEN '' ELSE x.tenant END = :tenant AND x.job_id = :job_id AND x.down = k.task_id
    OFFSET 0
) e
ORDER BY e.down, e.up;

-- name: prune_item
-- Remove items with the last of their runs.
DELETE FROM item WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[])
RETURNING pipeline, status;

-- name: prune_approval
-- Remove what belongs to the given jobs.
DELETE FROM approval WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: read_approvals
-- Approvals by key, in no order.
SELECT {approval a}
FROM unnest(:keys.0::text[], :keys.1::text[], :keys.2::text[]) AS k (job_id, task_id, key)
CROSS JOIN LATERAL (
    SELECT * FROM approval x
    WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id AND x.key = k.key OFFSET 0
) a;

-- name: read_tallies_of_keys
-- What was counted under some keys, by key and bucket.
SELECT t.key, t.bucket, sum(t.count), sum(t.amount)
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT * FROM tally x WHERE x.tenant = :tenant AND x.topic = :topic AND x.key = k.key
        AND x.bucket >= :since AND x.bucket < :until OFFSET 0
) t
GROUP BY t.key, t.bucket ORDER BY t.key, t.bucket;

-- name: prune_usage
-- Remove what belongs to the given jobs.
DELETE FROM usage WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);
