-- Gates, and the events of others.

-- name: read_gate_key
-- The job in which the members of a gate report for a key.
SELECT job_id FROM gate_key WHERE tenant = :tenant AND gate = :gate AND key = :key;

-- name: list_gate_keys
-- The keys of a gate in descending order, from a place on, with how their jobs stand. The own tasks of a gate begin with
-- a dollar, which no member does; there are few of them, however many members there are. One whose reports could not be
-- put together is not open, but as its job is.
SELECT g.key, g.job_id, j.state, j.created_at, j.finished_at, j.total, j.completed,
    j.total - (
        SELECT count(*) FROM task t
        WHERE t.tenant = g.tenant AND t.job_id = g.job_id AND t.task_id >= '$' AND t.task_id < '%'),
    j.completed - (
        SELECT count(*) FROM task t
        WHERE t.tenant = g.tenant AND t.job_id = g.job_id AND t.task_id >= '$' AND t.task_id < '%'
            AND t.state = 'completed'),
    EXISTS (
        SELECT 1 FROM step s
        WHERE s.tenant = g.tenant AND s.job_id = g.job_id AND s.task_id = '$open' AND s.key = 'opened')
    AND NOT EXISTS (
        SELECT 1 FROM task t
        WHERE t.tenant = g.tenant AND t.job_id = g.job_id AND t.task_id = '$open' AND t.state = 'failed')
FROM gate_key g JOIN job j ON j.tenant = g.tenant AND j.job_id = g.job_id
WHERE g.tenant = :tenant AND g.gate = :gate AND g.key < :before
ORDER BY g.key DESC LIMIT :most;

-- name: count_gate_members
-- How many members a gate has for a key, and how many of them have completed: all tasks but its own.
SELECT j.total - count(*), j.completed - sum(CASE WHEN t.state = 'completed' THEN 1 ELSE 0 END)
FROM job j JOIN task t ON t.tenant = j.tenant AND t.job_id = j.job_id AND t.task_id >= '$' AND t.task_id < '%'
WHERE j.tenant = :tenant AND j.job_id = :job_id
GROUP BY j.total, j.completed;

-- name: tenants_with_system_work
-- Tenants that have something ready for the engine itself. (The queue is named here so that its own index serves.)
SELECT DISTINCT tenant FROM ready WHERE queue = 'ostinato.system';

-- name: list_outside_events
-- What was received from a moment and place on.
SELECT source, event_id, received_at, data FROM outside_event
WHERE tenant = :tenant AND (received_at, source, event_id) > (:after_at, :after_source, :after_id)
ORDER BY received_at, source, event_id LIMIT :most;
