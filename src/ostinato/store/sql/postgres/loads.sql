-- What a transaction loads before it decides. Nothing is locked row by row: a write only takes effect on jobs that still
-- are as they were loaded. Transactions that kept being overtaken take the stripes of their jobs first.
-- Differs: PostgreSQL takes a set of rows as arrays.

-- name: lock_stripes
-- Let only one transaction at a time work on the jobs of the given stripes. (These locks draw no transaction number: it
-- is drawn by the first write, when everything has been read, so that the numbers of a job's events never go back.)
SELECT count(pg_advisory_xact_lock(1869771881, s.stripe))
FROM (SELECT stripe FROM unnest(:stripes::int4[]) AS u (stripe) ORDER BY stripe OFFSET 0) s;

-- name: load_at_once
-- What a transition needs, on one snapshot and in one round trip, without locks: candidates and jobs (first column) and
-- tasks (second column), whole, and for a task which of `ups` it waits for. Of candidates of known jobs their key comes instead.
WITH c AS MATERIALIZED (
    SELECT c.job_id, c.task_id, c.rank, c.ready_at
    FROM unnest(:queues::text[]) AS q (queue)
    CROSS JOIN unnest(:names::text[]) AS n (name)
    CROSS JOIN LATERAL (
        SELECT r.job_id, r.task_id, r.rank, r.ready_at FROM ready r
        WHERE r.tenant = :tenant AND r.queue = q.queue AND r.name = n.name
        ORDER BY r.rank, r.ready_at, r.job_id, r.task_id
        LIMIT :most
    ) c
    ORDER BY c.rank, c.ready_at
    LIMIT :most
)
SELECT j.job, NULL::task AS task, NULL::text[] AS ups, 0::int8 AS rank, 0::int8 AS ready_at
FROM (
    SELECT unnest(:job_ids::text[]) AS job_id UNION SELECT c.job_id FROM c WHERE c.job_id <> ALL(:known::text[])
) k
CROSS JOIN LATERAL (SELECT x AS job FROM job x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) j
UNION ALL
SELECT NULL, t.task, k.ups, k.rank, k.ready_at
FROM (
    SELECT u.job_id, u.task_id, NULL::text[] AS ups, NULL::int8 AS rank, 0::int8 AS ready_at
    FROM unnest(:keys.0::text[], :keys.1::text[]) AS u (job_id, task_id)
    UNION ALL
    SELECT e.job_id, e.down, array_agg(e.up), NULL, 0
    FROM unnest(:ups.0::text[], :ups.1::text[]) AS u (job_id, task_id)
    CROSS JOIN LATERAL (
        SELECT x.job_id, x.up, x.down FROM edge x
        WHERE x.tenant = :tenant AND x.job_id = u.job_id AND x.up = u.task_id OFFSET 0
    ) e
    GROUP BY e.job_id, e.down
    UNION ALL
    SELECT c.job_id, c.task_id, NULL, c.rank, c.ready_at FROM c WHERE c.job_id <> ALL(:known::text[])
) k
CROSS JOIN LATERAL (
    SELECT x AS task FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t
UNION ALL
SELECT NULL, NULL, ARRAY[c.job_id, c.task_id], c.rank, c.ready_at FROM c WHERE c.job_id = ANY(:known::text[]);

-- name: load_jobs
-- Jobs by id.
SELECT {job j}
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM job x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) j;

-- name: load_jobs_by_idempotency_key
-- Jobs by the key that their producer chose; of those that were removed, what is left. Two that use a new key at once clash on
-- its index, and one tries again.
SELECT k.key, r.job_id, r.request_hash, {job j}
FROM unnest(:keys::text[]) AS k (key)
LEFT JOIN LATERAL (SELECT * FROM job x WHERE x.tenant = :tenant AND x.idempotency_key = k.key OFFSET 0) j ON true
LEFT JOIN LATERAL (SELECT * FROM removed_key x WHERE x.tenant = :tenant AND x.idempotency_key = k.key OFFSET 0) r ON true
WHERE j.job_id IS NOT NULL OR r.job_id IS NOT NULL;

-- name: load_tasks
-- Tasks by key. (OFFSET 0 keeps each lookup an index lookup, whatever the planner thinks of the tables.)
SELECT {task t}, t.state, t.ready_at
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t;

-- name: load_dependants
-- Which tasks wait for the given ones.
SELECT e.job_id, e.up, e.down
FROM unnest(:ups.0::text[], :ups.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT x.job_id, x.up, x.down FROM edge x
    WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.up = k.task_id OFFSET 0
) e;

-- name: load_whole_jobs
-- All tasks of jobs.
SELECT {task t}, t.state, t.ready_at
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) t;

-- name: load_edges
-- All dependencies of jobs.
SELECT e.job_id, e.up, e.down
FROM edge e WHERE e.tenant = :tenant AND e.job_id = ANY(:job_ids::text[])
ORDER BY e.job_id, e.up, e.down;

-- name: load_signals
-- The first signals of a job by name that nobody has taken, oldest first.
SELECT {signal s}
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, name)
CROSS JOIN LATERAL (
    SELECT * FROM signal x
    WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.name = k.name AND NOT x.taken
    ORDER BY x.seq, x.signal_id LIMIT :most
) s
ORDER BY s.seq, s.signal_id;

-- name: load_sent_signals
-- Which signals were sent before. Those that were taken are kept, so that none is taken twice.
SELECT s.job_id, s.name, s.signal_id
FROM unnest(:keys.0::text[], :keys.1::text[], :keys.2::text[]) AS k (job_id, name, signal_id)
CROSS JOIN LATERAL (
    SELECT * FROM signal x
    WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.name = k.name AND x.signal_id = k.signal_id OFFSET 0
) s;

-- name: load_waiters
-- Tasks that wait for a signal, in the order of their jobs.
SELECT {timer m}
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, name)
CROSS JOIN LATERAL (
    SELECT * FROM timer x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.name = k.name AND x.kind = 'wait'
    OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT x.position FROM task x WHERE x.tenant = m.tenant AND x.job_id = m.job_id AND x.task_id = m.task_id OFFSET 0
) t
ORDER BY t.position;

-- name: load_timers
-- Timers by key.
SELECT {timer m}
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM timer x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) m;

-- name: load_candidates
-- The first ready tasks of each function of a worker, in the order in which they are to be claimed.
SELECT c.job_id, c.task_id
FROM unnest(:queues::text[]) AS q (queue)
CROSS JOIN unnest(:names::text[]) AS n (name)
CROSS JOIN LATERAL (
    SELECT r.job_id, r.task_id, r.rank, r.ready_at FROM ready r
    WHERE r.tenant = :tenant AND r.queue = q.queue AND r.name = n.name
    ORDER BY r.rank, r.ready_at, r.job_id, r.task_id
    LIMIT :most
) c
ORDER BY c.rank, c.ready_at
LIMIT :most;

-- name: load_gate_keys
-- Which jobs stand for gates and keys.
SELECT g.gate, g.key, g.job_id
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (gate, key)
CROSS JOIN LATERAL (
    SELECT * FROM gate_key x WHERE x.tenant = :tenant AND x.gate = k.gate AND x.key = k.key OFFSET 0
) g;

-- name: load_outside_events
-- Which events of others were received before.
SELECT k.source, k.event_id
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (source, event_id)
CROSS JOIN LATERAL (
    SELECT FROM outside_event x WHERE x.tenant = :tenant AND x.source = k.source AND x.event_id = k.event_id
    UNION ALL
    SELECT FROM removed_event x WHERE x.tenant = :tenant AND x.source = k.source AND x.event_id = k.event_id
    LIMIT 1
) o;

-- name: read_outside_events
-- Events of others that were received before.
SELECT o.source, o.event_id, o.received_at, o.data
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (source, event_id)
CROSS JOIN LATERAL (
    SELECT * FROM outside_event x WHERE x.tenant = :tenant AND x.source = k.source AND x.event_id = k.event_id OFFSET 0
) o;

-- name: load_waiting_for_turn
-- The first few tasks of jobs that wait for their turn.
SELECT {task t}, t.state, t.ready_at
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (
    SELECT * FROM timer x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.kind = 'turn'
    ORDER BY x.name LIMIT :most
) m
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = m.tenant AND x.job_id = m.job_id AND x.task_id = m.task_id OFFSET 0
) t
ORDER BY m.job_id, m.name;

-- name: load_last_usages
-- What was told last of the usage of attempts.
SELECT u.job_id, u.task_id, u.attempt, u.last_id
FROM unnest(:keys.0::text[], :keys.1::text[], :keys.2::int8[]) AS k (job_id, task_id, attempt)
CROSS JOIN LATERAL (
    SELECT * FROM usage x
    WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id AND x.attempt = k.attempt OFFSET 0
) u;

-- name: load_waiting_for_budget
-- The tasks of jobs that wait for a budget.
SELECT {task t}, t.state, t.ready_at
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (
    SELECT * FROM timer x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.kind = 'budget' OFFSET 0
) m
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = m.tenant AND x.job_id = m.job_id AND x.task_id = m.task_id OFFSET 0
) t;

-- name: load_items
-- Items by the job of their run.
SELECT
    i.item_id, i.pipeline, i.version, i.status, i.open, i.job_id, i.run, i.steps, i.step, i.attempt, i.retry_at,
    i.failures, i.error_type, i.entered_at, i.status_at, i.submitted_by, i.reviewed_by, i.reviewed_at, i.digest
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM item x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) i;

-- name: load_items_by_id
-- Items by id.
SELECT
    i.item_id, i.pipeline, i.version, i.status, i.open, i.job_id, i.run, i.steps, i.step, i.attempt, i.retry_at,
    i.failures, i.error_type, i.entered_at, i.status_at, i.submitted_by, i.reviewed_by, i.reviewed_at, i.digest
FROM unnest(:item_ids::text[]) AS k (item_id)
CROSS JOIN LATERAL (SELECT * FROM item x WHERE x.tenant = :tenant AND x.item_id = k.item_id OFFSET 0) i;

-- name: read_last_moves
-- The newest entry in the history of items.
SELECT h.item_id, h.how, h.moved_by, h.reason
FROM unnest(:item_ids::text[]) AS k (value)
CROSS JOIN status_history h
WHERE h.tenant = :tenant AND h.item_id = k.value AND h.number = (
    SELECT max(x.number) FROM status_history x WHERE x.tenant = :tenant AND x.item_id = k.value);

-- name: load_approvals
-- What tasks ask people, or have asked them.
SELECT {approval a}
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM approval x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) a;

-- name: load_approvals_of_jobs
-- What the tasks of jobs ask people, or have asked them.
SELECT {approval a}
FROM approval a WHERE a.tenant = :tenant AND a.job_id = ANY(:job_ids::text[]);

-- name: load_added_options
-- The settings of tasks that were added to a job by somebody and depend on one, on the way through others.
WITH RECURSIVE guarded (task_id) AS (
    SELECT e.down FROM edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = :task_id
    UNION
    SELECT e.down FROM guarded g CROSS JOIN edge e WHERE e.tenant = :tenant AND e.job_id = :job_id AND e.up = g.task_id
)
SELECT t.options
FROM guarded g CROSS JOIN task t
WHERE t.tenant = :tenant AND t.job_id = :job_id AND t.task_id = g.task_id AND position('"addedBy"'::bytea IN t.options) > 0;

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
FROM unnest(:keys.0::text[], :keys.1::text[]) AS k (job_id, task_id)
CROSS JOIN LATERAL (
    SELECT * FROM task x WHERE x.tenant = :tenant AND x.job_id = k.job_id AND x.task_id = k.task_id OFFSET 0
) t;
