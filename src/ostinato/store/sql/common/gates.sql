-- Gates, and the events of others.

-- name: read_gate_key
-- The job in which the members of a gate report for a key.
SELECT job_id FROM gate_key WHERE tenant = :tenant AND gate = :gate AND key = :key;

-- name: list_gate_keys
-- The keys of a gate in descending order, from a place on, with how their jobs stand.
SELECT g.key, g.job_id, j.state, j.created_at, j.finished_at, j.total, j.completed
FROM gate_key g JOIN job j ON j.tenant = g.tenant AND j.job_id = g.job_id
WHERE g.tenant = :tenant AND g.gate = :gate AND g.key < :before
ORDER BY g.key DESC LIMIT :most;

-- name: tenants_with_system_work
-- Tenants that have something ready for the engine itself. (The queue is named here so that its own index serves.)
SELECT DISTINCT tenant FROM ready WHERE queue = 'ostinato.system';

-- name: list_outside_events
-- What was received from a moment and place on.
SELECT source, event_id, received_at, data FROM outside_event
WHERE tenant = :tenant AND (received_at, source, event_id) > (:after_at, :after_source, :after_id)
ORDER BY received_at, source, event_id LIMIT :most;

-- name: prune_outside_event
-- Forget what others told before a time.
DELETE FROM outside_event WHERE tenant = :tenant AND received_at < :before;
