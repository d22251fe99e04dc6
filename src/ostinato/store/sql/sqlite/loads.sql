-- What a transaction loads before it decides. The write lock of the whole database is already held.
-- Differs: SQLite takes a set of rows as one JSON text.

-- name: load_jobs
-- Jobs by id.
SELECT {job j}
FROM json_each(:job_ids) k CROSS JOIN job j ON j.tenant = :tenant AND j.job_id = k.value;

-- name: load_jobs_by_idempotency_key
-- Jobs by the key that their producer chose; of those that were removed, what is left.
SELECT k.value, r.job_id, r.request_hash, {job j}
FROM json_each(:keys) k
LEFT JOIN job j ON j.tenant = :tenant AND j.idempotency_key = k.value
LEFT JOIN removed_key r ON r.tenant = :tenant AND r.idempotency_key = k.value
WHERE j.job_id IS NOT NULL OR r.job_id IS NOT NULL;

-- name: load_tasks
-- Tasks by key.
SELECT {task t}, t.state, t.ready_at
FROM json_each(:keys) k
CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value ->> 0 AND t.task_id = k.value ->> 1;

-- name: load_dependants
-- Which tasks wait for the given ones.
SELECT e.job_id, e.up, e.down
FROM json_each(:ups) k
CROSS JOIN edge e ON e.tenant = :tenant AND e.job_id = k.value ->> 0 AND e.up = k.value ->> 1;

-- name: load_whole_jobs
-- All tasks of jobs.
SELECT {task t}, t.state, t.ready_at
FROM json_each(:job_ids) k CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value;

-- name: load_edges
-- All dependencies of jobs.
SELECT e.job_id, e.up, e.down
FROM json_each(:job_ids) k CROSS JOIN edge e ON e.tenant = :tenant AND e.job_id = k.value
ORDER BY e.job_id, e.up, e.down;

-- name: load_signals
-- The first signals of a job by name that nobody has taken, oldest first.
SELECT {signal s}
FROM json_each(:keys) k
CROSS JOIN signal s ON s.tenant = :tenant AND s.job_id = k.value ->> 0 AND s.name = k.value ->> 1 AND s.signal_id IN (
    SELECT x.signal_id FROM signal x INDEXED BY signal_untaken
    WHERE x.tenant = :tenant AND x.job_id = k.value ->> 0 AND x.name = k.value ->> 1 AND NOT x.taken
    ORDER BY x.seq, x.signal_id LIMIT :most)
ORDER BY s.seq, s.signal_id;

-- name: load_sent_signals
-- Which signals were sent before. Those that were taken are kept, so that none is taken twice.
SELECT s.job_id, s.name, s.signal_id
FROM json_each(:keys) k
CROSS JOIN signal s ON s.tenant = :tenant AND s.job_id = k.value ->> 0 AND s.name = k.value ->> 1
    AND s.signal_id = k.value ->> 2;

-- name: load_waiters
-- Tasks that wait for a signal, in the order of their jobs.
SELECT {timer m}
FROM json_each(:keys) k
CROSS JOIN timer m ON m.tenant = :tenant AND m.job_id = k.value ->> 0 AND m.name = k.value ->> 1 AND m.kind = 'wait'
CROSS JOIN task t ON t.tenant = m.tenant AND t.job_id = m.job_id AND t.task_id = m.task_id
ORDER BY t.position;

-- name: load_timers
-- Timers by key.
SELECT {timer m}
FROM json_each(:keys) k
CROSS JOIN timer m ON m.tenant = :tenant AND m.job_id = k.value ->> 0 AND m.task_id = k.value ->> 1;

-- name: load_candidates
-- The first ready tasks of one function in one queue, in the order in which they are to be claimed.
SELECT rank, ready_at, job_id, task_id FROM ready
WHERE tenant = :tenant AND queue = :queue AND name = :name
ORDER BY rank, ready_at, job_id, task_id
LIMIT :most;

-- name: load_gate_keys
-- Which jobs stand for gates and keys.
SELECT g.gate, g.key, g.job_id
FROM json_each(:keys) k
CROSS JOIN gate_key g ON g.tenant = :tenant AND g.gate = k.value ->> 0 AND g.key = k.value ->> 1;

-- name: load_outside_events
-- Which events of others were received before.
SELECT k.value ->> 0, k.value ->> 1
FROM json_each(:keys) k
WHERE EXISTS (
    SELECT 1 FROM outside_event o WHERE o.tenant = :tenant AND o.source = k.value ->> 0 AND o.event_id = k.value ->> 1)
    OR EXISTS (
    SELECT 1 FROM removed_event r WHERE r.tenant = :tenant AND r.source = k.value ->> 0 AND r.event_id = k.value ->> 1);

-- name: read_outside_events
-- Events of others that were received before.
SELECT o.source, o.event_id, o.received_at, o.data
FROM json_each(:keys) k
CROSS JOIN outside_event o ON o.tenant = :tenant AND o.source = k.value ->> 0 AND o.event_id = k.value ->> 1;

-- name: load_waiting_for_turn
-- The first few tasks of jobs that wait for their turn.
SELECT {task t}, t.state, t.ready_at
FROM json_each(:job_ids) k
CROSS JOIN timer m ON m.tenant = :tenant AND m.job_id = k.value AND m.kind = 'turn' AND m.name IN (
    SELECT x.name FROM timer x WHERE x.tenant = :tenant AND x.job_id = k.value AND x.kind = 'turn'
    ORDER BY x.name LIMIT :most)
CROSS JOIN task t ON t.tenant = m.tenant AND t.job_id = m.job_id AND t.task_id = m.task_id
ORDER BY m.job_id, m.name;

-- name: load_last_usages
-- What was told last of the usage of attempts.
SELECT u.job_id, u.task_id, u.attempt, u.last_id
FROM json_each(:keys) k
CROSS JOIN usage u ON u.tenant = :tenant AND u.job_id = k.value ->> 0 AND u.task_id = k.value ->> 1
    AND u.attempt = k.value ->> 2;

-- name: load_waiting_for_budget
-- The tasks of jobs that wait for a budget.
SELECT {task t}, t.state, t.ready_at
FROM json_each(:job_ids) k
CROSS JOIN timer m ON m.tenant = :tenant AND m.job_id = k.value AND m.kind = 'budget'
CROSS JOIN task t ON t.tenant = m.tenant AND t.job_id = m.job_id AND t.task_id = m.task_id;

-- name: load_items
-- Items by the job of their run.
SELECT
    i.item_id, i.pipeline, i.version, i.status, i.open, i.job_id, i.run, i.steps, i.step, i.attempt, i.retry_at,
    i.failures, i.error_type, i.entered_at, i.status_at, i.submitted_by, i.reviewed_by, i.reviewed_at, i.digest
FROM json_each(:job_ids) k
CROSS JOIN item i ON i.tenant = :tenant AND i.job_id = k.value;

-- name: load_items_by_id
-- Items by id.
SELECT
    i.item_id, i.pipeline, i.version, i.status, i.open, i.job_id, i.run, i.steps, i.step, i.attempt, i.retry_at,
    i.failures, i.error_type, i.entered_at, i.status_at, i.submitted_by, i.reviewed_by, i.reviewed_at, i.digest
FROM json_each(:item_ids) k
CROSS JOIN item i ON i.tenant = :tenant AND i.item_id = k.value;

-- name: read_last_moves
-- The newest entry in the history of items.
SELECT h.item_id, h.how, h.moved_by, h.reason
FROM json_each(:item_ids) k
CROSS JOIN status_history h
WHERE h.tenant = :tenant AND h.item_id = k.value AND h.number = (
    SELECT max(x.number) FROM status_history x WHERE x.tenant = :tenant AND x.item_id = k.value);

-- name: load_approvals
-- What tasks ask people, or have asked them.
SELECT {approval a}
FROM json_each(:keys) k
CROSS JOIN approval a ON a.tenant = :tenant AND a.job_id = k.value ->> 0 AND a.task_id = k.value ->> 1;

-- name: load_approvals_of_jobs
-- What the tasks of jobs ask people, or have asked them.
SELECT {approval a}
FROM json_each(:job_ids) k
CROSS JOIN approval a ON a.tenant = :tenant AND a.job_id = k.value;

-- name: load_added_options
-- The settings of tasks that were added to a job by somebody and depend on one, on the way through others.
WITH RECURSIVE guarded (task_id) AS (
    SELECT e.down FROM edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = :task_id
    UNION
    SELECT e.down FROM guarded g CROSS JOIN edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = g.task_id
)
SELECT t.options
FROM guarded g CROSS JOIN task t
WHERE t.tenant = :tenant AND t.job_id = :job_id AND t.task_id = g.task_id AND instr(t.options, CAST('"addedBy"' AS BLOB)) > 0;

-- name: load_guarded
-- The tasks that depend on one, on the way through others.
WITH RECURSIVE guarded (task_id) AS (
    SELECT e.down FROM edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = :task_id
    UNION
    SELECT e.down FROM guarded g CROSS JOIN edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = g.task_id
)
SELECT g.task_id FROM guarded g;

-- name: load_inputs
-- The inputs of tasks.
SELECT t.job_id, t.task_id, t.input
FROM json_each(:keys) k
CROSS JOIN task t ON t.tenant = :tenant AND t.job_id = k.value ->> 0 AND t.task_id = k.value ->> 1;
