-- Removing finished jobs, and reads over sets.
-- Differs: SQLite takes a set as one JSON text.

-- name: prune_blob
-- Remove what belongs to the given jobs.
DELETE FROM blob WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_signal
-- Remove what belongs to the given jobs.
DELETE FROM signal WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_step
-- Remove what belongs to the given jobs.
DELETE FROM step WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_timer
-- Remove what belongs to the given jobs.
DELETE FROM timer WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_dead_letter
-- Remove what belongs to the given jobs.
DELETE FROM dead_letter WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_edge
-- Remove what belongs to the given jobs.
DELETE FROM edge WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_event_page
-- Remove what belongs to the given jobs.
DELETE FROM event_page WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_job_tag
-- Remove what belongs to the given jobs.
DELETE FROM job_tag WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_task
-- Remove what belongs to the given jobs.
DELETE FROM task WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: prune_job
-- Remove what belongs to the given jobs.
DELETE FROM job WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: lock_old
-- Those of the given jobs that still can be removed: each by its own period if it has one.
SELECT job_id FROM job WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids))
    AND finished_at IS NOT NULL AND finished_at < coalesce(:now - keep_seconds * 1000000, :before)
    AND NOT EXISTS (SELECT 1 FROM item i WHERE i.tenant = :tenant AND i.job_id = job.job_id AND i.open);

-- name: insert_removed_key
-- Remember the keys of the given jobs.
INSERT INTO removed_key (tenant, idempotency_key, job_id, request_hash, removed_at)
SELECT tenant, idempotency_key, job_id, request_hash, :now FROM job
WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids)) AND idempotency_key IS NOT NULL
ON CONFLICT (tenant, idempotency_key) DO UPDATE SET
    job_id = excluded.job_id, request_hash = excluded.request_hash, removed_at = excluded.removed_at;

-- name: read_states
-- How jobs stand.
SELECT job_id, state FROM job WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: read_task_names
-- The functions of tasks.
SELECT t.job_id, t.task_id, t.name
FROM json_each(:keys) k
CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value ->> 0 AND t.task_id = k.value ->> 1;

-- name: read_dependency_outputs
-- The outcomes of some of what one task depends on.
SELECT t.task_id, t.state, t.output, t.error
FROM json_each(:wanted) k
CROSS JOIN edge e ON e.tenant = :tenant AND e.job_id = :job_id AND e.up = k.value AND e.down = :task_id
CROSS JOIN task t ON t.tenant = e.tenant AND t.job_id = e.job_id AND t.task_id = e.up;

-- name: read_leased
-- Who holds the given tasks, and until when.
SELECT t.job_id, t.task_id, t.token, t.timeout_at
FROM json_each(:keys) k
CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value ->> 0 AND t.task_id = k.value ->> 1
WHERE t.state = 'processing';

-- name: list_pages
-- The stream of a job, from a place on; with a mention, only pages that contain it.
SELECT first_seq, last_seq, at, body FROM event_page
WHERE tenant = :tenant AND job_id = :job_id AND last_seq > :after
    AND (:mention IS NULL OR instr(body, :mention) > 0)
ORDER BY last_seq
LIMIT :most;

-- name: feed
-- Pages of all jobs of a tenant from a place on, in the order of their commits. There is one writer at a time: positions are that order.
SELECT p.position, 0, p.job_id, p.first_seq, p.at, p.body, j.name, j.correlation_id
FROM event_page p JOIN job j ON j.tenant = p.tenant AND j.job_id = p.job_id
WHERE p.tenant = :tenant AND p.position >= :major AND :minor = :minor
ORDER BY p.position
LIMIT :most;

-- name: feed_of_job
-- The pages of one job in the feed, from a place on. Its events are in the same order there as in its own stream.
SELECT p.position, 0, p.job_id, p.first_seq, p.at, p.body, j.name, j.correlation_id
FROM event_page p JOIN job j ON j.tenant = p.tenant AND j.job_id = p.job_id
WHERE p.tenant = :tenant AND p.job_id = :job_id AND +p.position >= :major AND :minor = :minor
ORDER BY p.last_seq
LIMIT :most;

-- name: feed_end
-- Where the feed ends now, and whether that is after everything that was committed: with one writer, always.
SELECT COALESCE(max(position), 0) + 1, 0, 1 FROM event_page;

-- name: feed_end_of_tenant
-- The last event of a tenant in the feed.
SELECT position, 0, last_seq FROM event_page WHERE tenant = :tenant ORDER BY position DESC LIMIT 1;

-- name: read_dead_letters
-- Dead letters by key, in no order.
SELECT d.job_id, d.task_id, d.name, d.failed_at, t.attempt, t.error, t.input
FROM json_each(:keys) k
CROSS JOIN dead_letter d ON d.tenant = :tenant AND d.job_id = k.value ->> 0 AND d.task_id = k.value ->> 1
CROSS JOIN task t ON t.tenant = d.tenant AND t.job_id = d.job_id AND t.task_id = d.task_id;

-- name: read_dead_letter_keys
-- Those of the given tasks that are dead letters.
SELECT d.job_id, d.task_id
FROM json_each(:keys) k
CROSS JOIN dead_letter d ON d.tenant = :tenant AND d.job_id = k.value ->> 0 AND d.task_id = k.value ->> 1;

-- name: prune_gate_key
-- Remove what belongs to the given jobs.
DELETE FROM gate_key WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: count_outcomes
-- How the tasks of jobs went, by function; how long they took is in microseconds.
SELECT
    t.name, sum(CASE WHEN t.state = 'completed' THEN 1 ELSE 0 END), sum(CASE WHEN t.state = 'failed' THEN 1 ELSE 0 END),
    sum(CASE WHEN t.attempt > 1 THEN 1 ELSE 0 END), avg(t.finished_at - t.started_at)
FROM json_each(:job_ids) k CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value
WHERE t.state = 'completed' OR t.state = 'failed'
GROUP BY t.name ORDER BY t.name;

-- name: read_dependencies_of_tasks
-- What tasks depend on, of any jobs.
SELECT e.job_id, e.down, e.up
FROM json_each(:keys) k
CROSS JOIN edge e ON CASE e.tenant WHEN '' THEN '' ELSE e.tenant END = :tenant AND e.job_id = k.value ->> 0
    AND e.down = k.value ->> 1
ORDER BY e.job_id, e.down, e.up;

-- name: read_dependencies_of
-- What some tasks of a job depend on.
SELECT e.down, e.up
FROM json_each(:task_ids) k
CROSS JOIN edge e ON CASE e.tenant WHEN '' THEN '' ELSE e.tenant END = :tenant AND e.job_id = :job_id
    AND e.down = k.value
ORDER BY e.down, e.up;

-- name: prune_item
-- Remove items with the last of their runs.
DELETE FROM item WHERE (tenant, item_id) IN (
    SELECT i.tenant, i.item_id FROM json_each(:job_ids) k CROSS JOIN item i ON i.tenant = :tenant AND i.job_id = k.value)
RETURNING pipeline, status;

-- name: prune_approval
-- Remove what belongs to the given jobs.
DELETE FROM approval WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));

-- name: read_approvals
-- Approvals by key, in no order.
SELECT {approval a}
FROM json_each(:keys) k
CROSS JOIN approval a ON a.tenant = :tenant AND a.job_id = k.value ->> 0 AND a.task_id = k.value ->> 1 AND a.key = k.value ->> 2;

-- name: read_tallies_of_keys
-- What was counted under some keys, by key and bucket.
SELECT t.key, t.bucket, sum(t.count), sum(t.amount)
FROM json_each(:keys) k
CROSS JOIN tally t ON t.tenant = :tenant AND t.topic = :topic AND t.key = k.value
    AND t.bucket >= :since AND t.bucket < :until
GROUP BY t.key, t.bucket ORDER BY t.key, t.bucket;

-- name: prune_usage
-- Remove what belongs to the given jobs.
DELETE FROM usage WHERE tenant = :tenant AND job_id IN (SELECT value FROM json_each(:job_ids));
