-- What explains why a task is not running.

-- name: read_job_state
-- How a job stands.
SELECT state FROM job WHERE tenant = :tenant AND job_id = :job_id;

-- name: read_open_dependencies
-- Dependencies of a task that are not satisfied, those that have ended first; only the first so many edges are looked at.
SELECT t.task_id, t.state
FROM (
    SELECT tenant, job_id, up FROM edge
    WHERE CASE tenant WHEN '' THEN '' ELSE tenant END = :tenant AND job_id = :job_id AND down = :task_id
    LIMIT :examined
) e
JOIN task t ON t.tenant = e.tenant AND t.job_id = e.job_id AND t.task_id = e.up
WHERE t.state <> 'completed'
    AND NOT (t.state IN ('failed', 'skipped') AND CAST(t.optional AS INTEGER) = 1)
    AND NOT (t.state = 'skipped' AND CAST(t.skipped_by_dependency AS INTEGER) = 0)
    AND NOT (CAST(:policy AS TEXT) = 'run' AND t.state IN ('failed', 'cancelled', 'skipped'))
ORDER BY CASE WHEN t.state IN ('failed', 'cancelled', 'skipped') THEN 0 ELSE 1 END, t.position
LIMIT :most;

-- name: count_ahead
-- Ready tasks of one function that come before a place in the queue, up to so many.
SELECT count(*) FROM (
    SELECT 1 AS one FROM ready
    WHERE tenant = :tenant AND queue = :queue AND name = :name
        AND (rank, ready_at, job_id, task_id) < (:rank, :ready_at, :job_id, :task_id)
    LIMIT :most
) counted;
