-- What people and programs look at. Lists go by keys, not by page numbers.

-- name: read_job
-- One job.
SELECT {job}
FROM job WHERE tenant = :tenant AND job_id = :job_id;

-- name: list_tasks
-- Tasks of a job in the producer's order, from a place on.
SELECT {task t}, t.state
FROM task t
WHERE t.tenant = :tenant AND t.job_id = :job_id AND t.position > :after
    AND (CAST(:state AS TEXT) IS NULL OR t.state = :state)
ORDER BY t.position
LIMIT :most;

-- name: read_task
-- One task.
SELECT {task t}, t.state
FROM task t
WHERE t.tenant = :tenant AND t.job_id = :job_id AND t.task_id = :task_id;

-- name: read_dependencies
-- What one task depends on.
SELECT up FROM edge WHERE CASE tenant WHEN '' THEN '' ELSE tenant END = :tenant AND job_id = :job_id AND down = :task_id
ORDER BY up;

-- name: read_edges
-- All dependencies of a job.
SELECT up, down FROM edge WHERE tenant = :tenant AND job_id = :job_id;

-- name: read_all_dependency_outputs
-- The outcomes of all that one task depends on.
SELECT t.task_id, t.state, t.output, t.error
FROM edge e JOIN task t ON t.tenant = e.tenant AND t.job_id = e.job_id AND t.task_id = e.up
WHERE CASE e.tenant WHEN '' THEN '' ELSE e.tenant END = :tenant AND e.job_id = :job_id AND e.down = :task_id
ORDER BY t.position;

-- name: read_job_outputs
-- The outputs of all completed tasks of a job.
SELECT task_id, output FROM task
WHERE tenant = :tenant AND job_id = :job_id AND state = 'completed'
ORDER BY position;

-- name: read_job_failures
-- What failed or stands still in a job.
SELECT task_id, state, error FROM task
WHERE tenant = :tenant AND job_id = :job_id AND (state IN ('failed', 'blocked', 'cancelled'))
    AND NOT (state = 'failed' AND CAST(optional AS INTEGER) = 1)
ORDER BY position
LIMIT :most;

-- name: read_steps
-- The finished steps of a task.
SELECT key, output, recorded_at FROM step
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id
ORDER BY recorded_at, key;

-- name: list_steps
-- The first finished steps of a task.
SELECT key, output, recorded_at FROM step
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id
ORDER BY recorded_at, key
LIMIT :most;

-- name: read_blob_size
-- How large a large payload is.
SELECT length(data) FROM blob WHERE tenant = :tenant AND job_id = :job_id AND digest = :digest;

-- name: read_blob
-- A large payload.
SELECT data FROM blob WHERE tenant = :tenant AND job_id = :job_id AND digest = :digest;

-- name: read_timer
-- What a task (or with an empty task id, the job) waits for.
SELECT {timer} FROM timer
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id;

-- name: read_feed_secret
-- What cursors of feeds are encrypted with.
SELECT secret FROM feed_secret;

-- name: list_tenants
-- Everybody who has a job, was told something of executions or events elsewhere, or has something counted. From each tenant to
-- the next one, and past all that it has.
WITH RECURSIVE
    jobs (tenant) AS (
        SELECT min(tenant) FROM job UNION ALL
        SELECT (SELECT min(x.tenant) FROM job x WHERE x.tenant > t.tenant) FROM jobs t WHERE t.tenant IS NOT NULL),
    executions (tenant) AS (
        SELECT min(tenant) FROM execution UNION ALL
        SELECT (SELECT min(x.tenant) FROM execution x WHERE x.tenant > t.tenant) FROM executions t
        WHERE t.tenant IS NOT NULL),
    outside (tenant) AS (
        SELECT min(tenant) FROM outside_event UNION ALL
        SELECT (SELECT min(x.tenant) FROM outside_event x WHERE x.tenant > t.tenant) FROM outside t
        WHERE t.tenant IS NOT NULL),
    tallies (tenant) AS (
        SELECT min(tenant) FROM tally UNION ALL
        SELECT (SELECT min(x.tenant) FROM tally x WHERE x.tenant > t.tenant) FROM tallies t WHERE t.tenant IS NOT NULL)
SELECT tenant FROM (
    SELECT tenant FROM jobs UNION SELECT tenant FROM executions UNION SELECT tenant FROM outside
    UNION SELECT tenant FROM tallies) AS found
WHERE tenant IS NOT NULL ORDER BY tenant;

-- name: list_job_ids
-- The ids of a tenant's jobs in order, from a place on.
SELECT job_id FROM job WHERE tenant = :tenant AND job_id > :after ORDER BY job_id LIMIT :most;

-- name: count_ready
-- Depth of the queues: how much is ready, and since when the oldest is.
SELECT queue, name, count(*), min(ready_at) FROM ready WHERE tenant = :tenant
GROUP BY queue, name ORDER BY queue, name;

-- name: count_dead_letters
-- How many tasks failed for good.
SELECT count(*) FROM dead_letter WHERE tenant = :tenant;

-- name: count_jobs
-- How many jobs stand how.
SELECT state, count(*) FROM job WHERE tenant = :tenant AND state <> '' GROUP BY state ORDER BY state;

-- name: count_timers
-- What tasks wait for: how many, and when the next of them is due.
SELECT kind, count(*), min(due_at) FROM timer WHERE tenant = :tenant AND task_id <> '' GROUP BY kind ORDER BY kind;

-- name: list_newest_jobs
-- The newest jobs since a moment, with how many tasks they have.
SELECT job_id, total FROM job WHERE tenant = :tenant AND job_id <> '' AND created_at >= :since
ORDER BY created_at DESC, job_id DESC
LIMIT :most;
