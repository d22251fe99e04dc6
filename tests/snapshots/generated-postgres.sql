-- name: insert_blob
-- Keep large payloads, once for each content.
INSERT INTO blob (
    tenant, job_id, digest, data
)
SELECT
    :tenant, r.job_id, r.digest, r.data
FROM unnest(
    :rows.1::text[], :rows.2::bytea[], :rows.3::bytea[]
) AS r (
    job_id, digest, data
)
ON CONFLICT (tenant, job_id, digest) DO NOTHING;

-- name: insert_job
-- Enter jobs.
INSERT INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags,
    cascades, deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled, trace_parent, max_parallel, turns, budget, spent,
    submitted_by, keep_seconds, processing, waiting
)
SELECT
    :tenant, r.job_id, r.name, r.state, r.priority, r.request_id, r.correlation_id, r.idempotency_key,
    r.request_hash, r.tags, r.cascades, r.deadline_at, r.created_at, r.finished_at, r.failure_detected_at,
    r.last_seq, r.total, r.blocked, r.active, r.completed, r.failed, r.tolerated, r.skipped, r.cancelled,
    r.trace_parent, r.max_parallel, r.turns, r.budget, r.spent, r.submitted_by, r.keep_seconds, r.processing,
    r.waiting
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::int8[], :rows.5::text[], :rows.6::text[],
    :rows.7::text[], :rows.8::bytea[], :rows.9::bytea[], :rows.10::bool[], :rows.11::int8[], :rows.12::int8[],
    :rows.13::int8[], :rows.14::int8[], :rows.15::int8[], :rows.16::int8[], :rows.17::int8[], :rows.18::int8[],
    :rows.19::int8[], :rows.20::int8[], :rows.21::int8[], :rows.22::int8[], :rows.23::int8[], :rows.24::text[],
    :rows.25::int8[], :rows.26::int8[], :rows.27::int8[], :rows.28::int8[], :rows.29::text[], :rows.30::int8[],
    :rows.31::int8[], :rows.32::int8[]
) AS r (
    job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags, cascades,
    deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active, completed, failed,
    tolerated, skipped, cancelled, trace_parent, max_parallel, turns, budget, spent, submitted_by, keep_seconds,
    processing, waiting
);

-- name: insert_job_tag
-- Let jobs be found by their tags.
INSERT INTO job_tag (
    tenant, job_id, key, value, created_at
)
SELECT
    :tenant, r.job_id, r.key, r.value, r.created_at
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::int8[]
) AS r (
    job_id, key, value, created_at
);

-- name: update_job
-- Write back what can change in a job, if it still is as it was loaded.
UPDATE job AS x SET
    state = r.state, cascades = r.cascades, deadline_at = r.deadline_at, finished_at = r.finished_at,
    failure_detected_at = r.failure_detected_at, last_seq = r.last_seq, total = r.total, blocked = r.blocked,
    active = r.active, completed = r.completed, failed = r.failed, tolerated = r.tolerated, skipped = r.skipped,
    cancelled = r.cancelled, turns = r.turns, budget = r.budget, spent = r.spent, processing = r.processing,
    waiting = r.waiting
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::text[], :rows.5::bool[], :rows.6::int8[],
        :rows.7::int8[], :rows.8::int8[], :rows.9::int8[], :rows.10::int8[], :rows.11::int8[], :rows.12::int8[],
        :rows.13::int8[], :rows.14::int8[], :rows.15::int8[], :rows.16::int8[], :rows.17::int8[], :rows.18::int8[],
        :rows.19::int8[], :rows.20::int8[], :rows.21::int8[], :rows.22::int8[]
    ) AS u (
        job_id, was_seq, created_at, state, cascades, deadline_at, finished_at, failure_detected_at, last_seq, total,
        blocked, active, completed, failed, tolerated, skipped, cancelled, turns, budget, spent, processing, waiting
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.last_seq = r.was_seq AND x.created_at = r.created_at
RETURNING 1;

-- name: advance_job
-- The same for the most common change: tasks have moved on, and none has ended but as completed.
UPDATE job AS x SET
    last_seq = r.last_seq, blocked = r.blocked, active = r.active, completed = r.completed,
    processing = r.processing, waiting = r.waiting
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::int8[], :rows.5::int8[], :rows.6::int8[],
        :rows.7::int8[], :rows.8::int8[], :rows.9::int8[]
    ) AS u (
        job_id, was_seq, created_at, last_seq, blocked, active, completed, processing, waiting
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.last_seq = r.was_seq AND x.created_at = r.created_at
RETURNING 1;

-- name: insert_task
-- Enter tasks.
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, started_at, finished_at, ready_at, worker, token,
    max_attempts, timeout_at, attempt_base, crashes, resuming
)
SELECT
    :tenant, r.job_id, r.task_id, r.position, r.name, r.queue, r.priority, r.policy, r.optional, r.dependencies,
    r.options, r.input, r.state, r.attempt, r.open_dependencies, r.skipped_by_dependency, r.started_at,
    r.finished_at, r.ready_at, r.worker, r.token, r.max_attempts, r.timeout_at, 0, 0, false
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::text[], :rows.5::text[], :rows.6::int8[],
    :rows.7::text[], :rows.8::bool[], :rows.9::int8[], :rows.10::bytea[], :rows.11::bytea[], :rows.12::text[],
    :rows.13::int8[], :rows.14::int8[], :rows.15::bool[], :rows.16::int8[], :rows.17::int8[], :rows.18::int8[],
    :rows.19::text[], :rows.20::text[], :rows.21::int8[], :rows.22::int8[]
) AS r (
    job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, started_at, finished_at, ready_at, worker, token,
    max_attempts, timeout_at
);

-- name: insert_ended_task
-- Enter tasks whose outcome is known already.
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, output, error, started_at, finished_at, ready_at, worker,
    token, max_attempts, timeout_at, attempt_base, crashes, resuming
)
SELECT
    :tenant, r.job_id, r.task_id, r.position, r.name, r.queue, r.priority, r.policy, r.optional, r.dependencies,
    r.options, r.input, r.state, r.attempt, r.open_dependencies, r.skipped_by_dependency, r.output, r.error,
    r.started_at, r.finished_at, r.ready_at, r.worker, r.token, r.max_attempts, r.timeout_at, 0, 0, false
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::text[], :rows.5::text[], :rows.6::int8[],
    :rows.7::text[], :rows.8::bool[], :rows.9::int8[], :rows.10::bytea[], :rows.11::bytea[], :rows.12::text[],
    :rows.13::int8[], :rows.14::int8[], :rows.15::bool[], :rows.16::bytea[], :rows.17::bytea[], :rows.18::int8[],
    :rows.19::int8[], :rows.20::int8[], :rows.21::text[], :rows.22::text[], :rows.23::int8[], :rows.24::int8[]
) AS r (
    job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, output, error, started_at, finished_at, ready_at, worker,
    token, max_attempts, timeout_at
);

-- name: insert_edge
-- Enter dependencies.
INSERT INTO edge (
    tenant, job_id, up, down
)
SELECT
    :tenant, r.job_id, r.up, r.down
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[]
) AS r (
    job_id, up, down
);

-- name: update_task
-- Write back what can change in a task.
UPDATE task AS x SET
    state = r.state, attempt = r.attempt, attempt_base = r.attempt_base, crashes = r.crashes,
    open_dependencies = r.open_dependencies, resuming = r.resuming, skipped_by_dependency = r.skipped_by_dependency,
    output = r.output, error = r.error, started_at = r.started_at, finished_at = r.finished_at,
    ready_at = r.ready_at, worker = r.worker, token = r.token, max_attempts = r.max_attempts,
    timeout_at = r.timeout_at
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::int8[], :rows.5::int8[], :rows.6::int8[],
        :rows.7::int8[], :rows.8::bool[], :rows.9::bool[], :rows.10::bytea[], :rows.11::bytea[], :rows.12::int8[],
        :rows.13::int8[], :rows.14::int8[], :rows.15::text[], :rows.16::text[], :rows.17::int8[], :rows.18::int8[]
    ) AS u (
        job_id, task_id, state, attempt, attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency,
        output, error, started_at, finished_at, ready_at, worker, token, max_attempts, timeout_at
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: claim_task
-- The same for a task that was ready, or has just become so, and is now leased.
UPDATE task AS x SET
    state = 'processing', open_dependencies = 0, resuming = false, attempt = r.attempt, started_at = r.started_at,
    ready_at = r.ready_at, worker = r.worker, token = r.token, max_attempts = r.max_attempts,
    timeout_at = r.timeout_at
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::int8[], :rows.5::int8[], :rows.6::text[],
        :rows.7::text[], :rows.8::int8[], :rows.9::int8[]
    ) AS u (
        job_id, task_id, attempt, started_at, ready_at, worker, token, max_attempts, timeout_at
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: complete_task
-- The same for the most common change: a task that was running has completed.
UPDATE task AS x SET
    state = 'completed', error = NULL, worker = NULL, token = NULL, timeout_at = NULL, output = r.output,
    finished_at = r.finished_at
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::bytea[], :rows.4::int8[]
    ) AS u (
        job_id, task_id, output, finished_at
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: update_task_and_input
-- The same for tasks that are to run again with another input.
UPDATE task AS x SET
    input = r.input, options = r.options, state = r.state, attempt = r.attempt, attempt_base = r.attempt_base,
    crashes = r.crashes, open_dependencies = r.open_dependencies, resuming = r.resuming,
    skipped_by_dependency = r.skipped_by_dependency, output = r.output, error = r.error, started_at = r.started_at,
    finished_at = r.finished_at, ready_at = r.ready_at, worker = r.worker, token = r.token,
    max_attempts = r.max_attempts, timeout_at = r.timeout_at
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::bytea[], :rows.4::bytea[], :rows.5::text[], :rows.6::int8[],
        :rows.7::int8[], :rows.8::int8[], :rows.9::int8[], :rows.10::bool[], :rows.11::bool[], :rows.12::bytea[],
        :rows.13::bytea[], :rows.14::int8[], :rows.15::int8[], :rows.16::int8[], :rows.17::text[], :rows.18::text[],
        :rows.19::int8[], :rows.20::int8[]
    ) AS u (
        job_id, task_id, input, options, state, attempt, attempt_base, crashes, open_dependencies, resuming,
        skipped_by_dependency, output, error, started_at, finished_at, ready_at, worker, token, max_attempts, timeout_at
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: delete_ready
-- Take tasks out of the queue.
DELETE FROM ready AS x
USING (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::int8[], :rows.5::text[], :rows.6::text[]
    ) AS u (
        queue, name, rank, ready_at, job_id, task_id
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.queue = r.queue AND x.name = r.name AND x.rank = r.rank AND x.ready_at = r.ready_at
    AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: insert_ready
-- Queue pending tasks.
INSERT INTO ready (
    tenant, queue, name, rank, ready_at, job_id, task_id
)
SELECT
    :tenant, r.queue, r.name, r.rank, r.ready_at, r.job_id, r.task_id
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::int8[], :rows.5::text[], :rows.6::text[]
) AS r (
    queue, name, rank, ready_at, job_id, task_id
);

-- name: delete_lease
-- Forget claims whose tasks have all been reported.
DELETE FROM lease AS x
USING (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[]
    ) AS u (
        worker, token
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.worker = r.worker AND x.token = r.token;

-- name: insert_lease
-- Note what a worker has claimed.
INSERT INTO lease (
    tenant, worker, token, tasks
)
SELECT
    :tenant, r.worker, r.token, r.tasks
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::bytea[]
) AS r (
    worker, token, tasks
);

-- name: delete_timer
-- Disarm timers.
DELETE FROM timer AS x
USING (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[]
    ) AS u (
        job_id, task_id
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: insert_timer
-- Arm timers, or move them.
INSERT INTO timer (
    tenant, job_id, task_id, kind, name, key, due_at
)
SELECT
    :tenant, r.job_id, r.task_id, r.kind, r.name, r.key, r.due_at
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::text[], :rows.5::text[], :rows.6::int8[]
) AS r (
    job_id, task_id, kind, name, key, due_at
)
ON CONFLICT (tenant, job_id, task_id) DO UPDATE SET
    kind = excluded.kind, name = excluded.name, key = excluded.key, due_at = excluded.due_at;

-- name: insert_step
-- Record finished steps. The first record of a step stands.
INSERT INTO step (
    tenant, job_id, task_id, key, output, recorded_at
)
SELECT
    :tenant, r.job_id, r.task_id, r.key, r.output, r.recorded_at
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::bytea[], :rows.5::int8[]
) AS r (
    job_id, task_id, key, output, recorded_at
)
ON CONFLICT (tenant, job_id, task_id, key) DO NOTHING;

-- name: take_signal
-- Mark signals as taken.
UPDATE signal AS x SET
    taken = r.taken
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::bool[]
    ) AS u (
        job_id, name, signal_id, taken
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.name = r.name AND x.signal_id = r.signal_id;

-- name: insert_signal
-- Keep signals.
INSERT INTO signal (
    tenant, job_id, name, signal_id, payload, taken, seq
)
SELECT
    :tenant, r.job_id, r.name, r.signal_id, r.payload, r.taken, r.seq
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::bytea[], :rows.5::bool[], :rows.6::int8[]
) AS r (
    job_id, name, signal_id, payload, taken, seq
);

-- name: insert_dead_letter
-- List tasks that failed for good.
INSERT INTO dead_letter (
    tenant, job_id, task_id, name, failed_at, error_type
)
SELECT
    :tenant, r.job_id, r.task_id, r.name, r.failed_at, r.error_type
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::int8[], :rows.5::text[]
) AS r (
    job_id, task_id, name, failed_at, error_type
);

-- name: delete_dead_letter
-- Take tasks off the list of dead letters.
DELETE FROM dead_letter AS x
USING (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[]
    ) AS u (
        job_id, task_id
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id;

-- name: delete_gate_key
-- The next report for a key begins again.
DELETE FROM gate_key AS x
USING (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[]
    ) AS u (
        gate, key
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.gate = r.gate AND x.key = r.key;

-- name: update_gate_key
-- A key begins again, with another job.
UPDATE gate_key AS x SET
    job_id = r.job_id
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::text[]
    ) AS u (
        gate, key, job_id
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.gate = r.gate AND x.key = r.key;

-- name: insert_gate_key
-- Note which job stands for a gate and a key.
INSERT INTO gate_key (
    tenant, gate, key, job_id
)
SELECT
    :tenant, r.gate, r.key, r.job_id
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[]
) AS r (
    gate, key, job_id
);

-- name: insert_item
-- Enter items. A trigger checks the moves that led to their status, and writes them down.
INSERT INTO item (
    tenant, item_id, pipeline, version, status, open, job_id, run, steps, step, attempt, retry_at, failures,
    error_type, entered_at, status_at, submitted_by, reviewed_by, reviewed_at, digest, via, payload
)
SELECT
    :tenant, r.item_id, r.pipeline, r.version, r.status, r.open, r.job_id, r.run, r.steps, r.step, r.attempt,
    r.retry_at, r.failures, r.error_type, r.entered_at, r.status_at, r.submitted_by, r.reviewed_by, r.reviewed_at,
    r.digest, r.via, r.payload
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::int8[], :rows.5::bool[], :rows.6::text[],
    :rows.7::int8[], :rows.8::bytea[], :rows.9::text[], :rows.10::int8[], :rows.11::int8[], :rows.12::int8[],
    :rows.13::text[], :rows.14::int8[], :rows.15::int8[], :rows.16::text[], :rows.17::text[], :rows.18::int8[],
    :rows.19::bytea[], :rows.20::text[], :rows.21::bytea[]
) AS r (
    item_id, pipeline, version, status, open, job_id, run, steps, step, attempt, retry_at, failures, error_type,
    entered_at, status_at, submitted_by, reviewed_by, reviewed_at, digest, via, payload
);

-- name: update_item
-- Write back what can change in an item, if it still is as it was loaded.
UPDATE item AS x SET
    version = r.version, status = r.status, open = r.open, job_id = r.job_id, run = r.run, steps = r.steps,
    step = r.step, attempt = r.attempt, retry_at = r.retry_at, failures = r.failures, error_type = r.error_type,
    status_at = r.status_at, reviewed_by = r.reviewed_by, reviewed_at = r.reviewed_at, via = r.via,
    payload = coalesce(r.payload, x.payload), digest = coalesce(r.digest, x.digest)
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::int8[], :rows.5::bytea[], :rows.6::int8[],
        :rows.7::int8[], :rows.8::int8[], :rows.9::bool[], :rows.10::text[], :rows.11::int8[], :rows.12::bytea[],
        :rows.13::text[], :rows.14::int8[], :rows.15::int8[], :rows.16::int8[], :rows.17::text[], :rows.18::int8[],
        :rows.19::text[], :rows.20::int8[], :rows.21::text[], :rows.22::bytea[], :rows.23::bytea[]
    ) AS u (
        item_id, was_status, was_version, was_run, was_steps, was_reviewed_at, version, status, open, job_id, run,
        steps, step, attempt, retry_at, failures, error_type, status_at, reviewed_by, reviewed_at, via, payload, digest
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.item_id = r.item_id AND x.status = r.was_status AND x.version = r.was_version
    AND x.run = r.was_run AND x.steps = r.was_steps AND x.reviewed_at IS NOT DISTINCT FROM r.was_reviewed_at
RETURNING 1;

-- name: withdraw_approval
-- Ask no longer, about tasks that have ended.
UPDATE approval AS x SET
    state = 'withdrawn', due_at = NULL, decided_at = r.decided_at
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::text[], :rows.2::text[], :rows.3::int8[]
    ) AS u (
        job_id, task_id, decided_at
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.job_id = r.job_id AND x.task_id = r.task_id AND x.state = 'waiting';

-- name: insert_approval
-- Ask people, or note what they have decided.
INSERT INTO approval (
    tenant, job_id, task_id, key, state, document, payload, asked, not_submitter, submitted_by, version,
    requested_at, due_at, escalated_at, decided_at
)
SELECT
    :tenant, r.job_id, r.task_id, r.key, r.state, r.document, r.payload, r.asked, r.not_submitter, r.submitted_by,
    r.version, r.requested_at, r.due_at, r.escalated_at, r.decided_at
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::text[], :rows.5::bytea[], :rows.6::bytea[],
    :rows.7::text[], :rows.8::bool[], :rows.9::text[], :rows.10::int8[], :rows.11::int8[], :rows.12::int8[],
    :rows.13::int8[], :rows.14::int8[]
) AS r (
    job_id, task_id, key, state, document, payload, asked, not_submitter, submitted_by, version, requested_at,
    due_at, escalated_at, decided_at
)
ON CONFLICT (tenant, job_id, task_id, key) DO UPDATE SET
    state = excluded.state, document = excluded.document, payload = excluded.payload, asked = excluded.asked,
    not_submitter = excluded.not_submitter, submitted_by = excluded.submitted_by, version = excluded.version,
    requested_at = excluded.requested_at, due_at = excluded.due_at, escalated_at = excluded.escalated_at,
    decided_at = excluded.decided_at;

-- name: insert_outside_event
-- Record events of others.
INSERT INTO outside_event (
    tenant, source, event_id, received_at, data
)
SELECT
    :tenant, r.source, r.event_id, r.received_at, r.data
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::bytea[]
) AS r (
    source, event_id, received_at, data
);

-- name: insert_removed_event
-- Remember the ids of events that are removed.
INSERT INTO removed_event (
    tenant, source, event_id, removed_at
)
SELECT
    :tenant, r.source, r.event_id, r.removed_at
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[]
) AS r (
    source, event_id, removed_at
)
ON CONFLICT (tenant, source, event_id) DO NOTHING;

-- name: hold_budget
-- Something waits for a budget of the tenant, if that still is what it was taken to be.
UPDATE tenant AS x SET
    budget_day = x.budget_day
FROM (
    SELECT CAST(:tenant AS text) AS tenant, u.* FROM unnest(
        :rows.1::int8[], :rows.2::int8[]
    ) AS u (
        was_day, was_month
    ) OFFSET 0
) r
WHERE x.tenant = r.tenant AND x.budget_day IS NOT DISTINCT FROM r.was_day
    AND x.budget_month IS NOT DISTINCT FROM r.was_month
RETURNING 1;

-- name: add_usage
-- Add to what attempts have used up.
INSERT INTO usage (
    tenant, job_id, task_id, attempt, calls, input_tokens, output_tokens, cost, last_id
)
SELECT
    :tenant, r.job_id, r.task_id, r.attempt, r.calls, r.input_tokens, r.output_tokens, r.cost, r.last_id
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::int8[], :rows.5::int8[], :rows.6::int8[],
    :rows.7::int8[], :rows.8::text[]
) AS r (
    job_id, task_id, attempt, calls, input_tokens, output_tokens, cost, last_id
)
ON CONFLICT (tenant, job_id, task_id, attempt) DO UPDATE SET
    calls = usage.calls + excluded.calls, input_tokens = usage.input_tokens + excluded.input_tokens,
    output_tokens = usage.output_tokens + excluded.output_tokens, cost = usage.cost + excluded.cost,
    last_id = excluded.last_id;

-- name: add_tally
-- Count on, each process in rows of its own.
INSERT INTO tally (
    tenant, topic, key, bucket, writer, count, amount
)
SELECT
    :tenant, r.topic, r.key, r.bucket, r.writer, r.count, r.amount
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::int8[], :rows.4::text[], :rows.5::int8[], :rows.6::int8[]
) AS r (
    topic, key, bucket, writer, count, amount
)
ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET
    count = tally.count + excluded.count, amount = tally.amount + excluded.amount;

-- name: insert_event_page
-- Append pages of events.
INSERT INTO event_page (
    tenant, job_id, first_seq, last_seq, at, body
)
SELECT
    :tenant, r.job_id, r.first_seq, r.last_seq, r.at, r.body
FROM unnest(
    :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::int8[], :rows.5::bytea[]
) AS r (
    job_id, first_seq, last_seq, at, body
);

-- name: insert_result
-- Save results.
INSERT INTO result (
    tenant, result_id, job_id, domain, kind, created_at, document, text
)
SELECT
    :tenant, r.result_id, r.job_id, r.domain, r.kind, r.created_at, r.document, r.text
FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::text[], :rows.5::int8[], :rows.6::bytea[],
    :rows.7::bytea[]
) AS r (
    result_id, job_id, domain, kind, created_at, document, text
);

-- name: insert_result_digest
-- Note what results are known by.
INSERT INTO result_digest (
    tenant, number, digest
)
SELECT
    :tenant, r.number, r.digest
FROM unnest(
    :rows.1::int8[], :rows.2::int8[]
) AS r (
    number, digest
);

-- name: insert_pipeline_status
-- The statuses of a version of a pipeline.
INSERT INTO pipeline_status (
    tenant, pipeline, version, code, name, phase, position
)
SELECT
    :tenant, r.pipeline, r.version, r.code, r.name, r.phase, r.position
FROM unnest(
    :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::text[], :rows.5::text[], :rows.6::int8[]
) AS r (
    pipeline, version, code, name, phase, position
);

-- name: insert_state_transition
-- The legal moves of a version of a pipeline.
INSERT INTO state_transition (
    tenant, pipeline, version, from_code, to_code
)
SELECT
    :tenant, r.pipeline, r.version, r.from_code, r.to_code
FROM unnest(
    :rows.1::text[], :rows.2::int8[], :rows.3::int8[], :rows.4::int8[]
) AS r (
    pipeline, version, from_code, to_code
);

-- name: rotate_blob
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, digest, data FROM blob
WHERE tenant = :tenant AND (job_id, digest) > (:after_job_id, :after_digest)
    AND (substr(data, 1, 17) <> :head)
ORDER BY job_id, digest
LIMIT :most;

-- name: reseal_blob
-- Replace the payloads of a row, if they still are as they were read.
UPDATE blob SET
    data = :new_data
WHERE tenant = :tenant AND job_id = :job_id AND digest = :digest AND data = :old_data
RETURNING job_id;

-- name: rotate_task
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, task_id, input, output, error FROM task
WHERE tenant = :tenant AND (job_id, task_id) > (:after_job_id, :after_task_id)
    AND (substr(input, 1, 17) <> :head OR substr(output, 1, 17) <> :head OR substr(error, 1, 17) <> :head)
ORDER BY job_id, task_id
LIMIT :most;

-- name: reseal_task
-- Replace the payloads of a row, if they still are as they were read.
UPDATE task SET
    input = :new_input, output = :new_output, error = :new_error
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id AND input = :old_input
    AND output IS NOT DISTINCT FROM :old_output AND error IS NOT DISTINCT FROM :old_error
RETURNING job_id;

-- name: rotate_step
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, task_id, key, output FROM step
WHERE tenant = :tenant AND (job_id, task_id, key) > (:after_job_id, :after_task_id, :after_key)
    AND (substr(output, 1, 17) <> :head)
ORDER BY job_id, task_id, key
LIMIT :most;

-- name: reseal_step
-- Replace the payloads of a row, if they still are as they were read.
UPDATE step SET
    output = :new_output
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id AND key = :key AND output = :old_output
RETURNING job_id;

-- name: rotate_signal
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, name, signal_id, payload FROM signal
WHERE tenant = :tenant AND (job_id, name, signal_id) > (:after_job_id, :after_name, :after_signal_id)
    AND (substr(payload, 1, 17) <> :head)
ORDER BY job_id, name, signal_id
LIMIT :most;

-- name: reseal_signal
-- Replace the payloads of a row, if they still are as they were read.
UPDATE signal SET
    payload = :new_payload
WHERE tenant = :tenant AND job_id = :job_id AND name = :name AND signal_id = :signal_id AND payload = :old_payload
RETURNING job_id;

-- name: rotate_item
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT item_id, digest, payload FROM item
WHERE tenant = :tenant AND (item_id) > (:after_item_id)
    AND (substr(digest, 1, 17) <> :head OR substr(payload, 1, 17) <> :head)
ORDER BY item_id
LIMIT :most;

-- name: reseal_item
-- Replace the payloads of a row, if they still are as they were read.
UPDATE item SET
    digest = :new_digest, payload = :new_payload
WHERE tenant = :tenant AND item_id = :item_id AND digest = :old_digest AND payload = :old_payload
RETURNING item_id;

-- name: rotate_approval
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, task_id, key, document, payload FROM approval
WHERE tenant = :tenant AND (job_id, task_id, key) > (:after_job_id, :after_task_id, :after_key)
    AND (substr(document, 1, 17) <> :head OR substr(payload, 1, 17) <> :head)
ORDER BY job_id, task_id, key
LIMIT :most;

-- name: reseal_approval
-- Replace the payloads of a row, if they still are as they were read.
UPDATE approval SET
    document = :new_document, payload = :new_payload
WHERE tenant = :tenant AND job_id = :job_id AND task_id = :task_id AND key = :key AND document = :old_document
    AND payload IS NOT DISTINCT FROM :old_payload
RETURNING job_id;

-- name: rotate_outside_event
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT source, event_id, data FROM outside_event
WHERE tenant = :tenant AND (source, event_id) > (:after_source, :after_event_id)
    AND (substr(data, 1, 17) <> :head)
ORDER BY source, event_id
LIMIT :most;

-- name: reseal_outside_event
-- Replace the payloads of a row, if they still are as they were read.
UPDATE outside_event SET
    data = :new_data
WHERE tenant = :tenant AND source = :source AND event_id = :event_id AND data = :old_data
RETURNING source;

-- name: rotate_event_page
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, first_seq, body FROM event_page
WHERE tenant = :tenant AND (job_id, first_seq) > (:after_job_id, :after_first_seq)
    AND (substr(body, 1, 17) <> :head)
ORDER BY job_id, first_seq
LIMIT :most;

-- name: reseal_event_page
-- Replace the payloads of a row, if they still are as they were read.
UPDATE event_page SET
    body = :new_body
WHERE tenant = :tenant AND job_id = :job_id AND first_seq = :first_seq AND body = :old_body
RETURNING job_id;

-- name: rotate_result
-- Rows with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, document, text FROM result
WHERE tenant = :tenant AND (job_id) > (:after_job_id)
    AND (substr(document, 1, 17) <> :head OR substr(text, 1, 17) <> :head)
ORDER BY job_id
LIMIT :most;

-- name: reseal_result
-- Replace the payloads of a row, if they still are as they were read.
UPDATE result SET
    document = :new_document, text = :new_text
WHERE tenant = :tenant AND job_id = :job_id AND document = :old_document AND text = :old_text
RETURNING job_id;

-- name: audit_ids_of_blob
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM blob x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_job_tag
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM job_tag x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_task
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM task x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_edge
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM edge x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_ready
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM ready x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_timer
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM timer x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_step
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM step x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_signal
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM signal x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_dead_letter
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM dead_letter x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_gate_key
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM gate_key x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_item
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM item x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_approval
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM approval x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_usage
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM usage x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_event_page
-- The jobs that have something here, in order, and whether they are there themselves.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM event_page x
    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: count_sealed
-- How many payloads each key has encrypted, by kind; those without a key are not encrypted.
SELECT kind, CASE WHEN substr(payload, 1, 1) = :mark THEN substr(payload, 2, 16) END AS key_id, count(*)
FROM (
    SELECT 'blob' AS kind, data AS payload FROM blob WHERE tenant = :tenant AND data IS NOT NULL
    UNION ALL SELECT 'input' AS kind, input AS payload FROM task WHERE tenant = :tenant AND input IS NOT NULL
    UNION ALL SELECT 'output' AS kind, output AS payload FROM task WHERE tenant = :tenant AND output IS NOT NULL
    UNION ALL SELECT 'error' AS kind, error AS payload FROM task WHERE tenant = :tenant AND error IS NOT NULL
    UNION ALL SELECT 'step' AS kind, output AS payload FROM step WHERE tenant = :tenant AND output IS NOT NULL
    UNION ALL SELECT 'signal' AS kind, payload AS payload FROM signal WHERE tenant = :tenant AND payload IS NOT NULL
    UNION ALL SELECT 'item_digest' AS kind, digest AS payload FROM item WHERE tenant = :tenant AND digest IS NOT NULL
    UNION ALL SELECT 'item' AS kind, payload AS payload FROM item WHERE tenant = :tenant AND payload IS NOT NULL
    UNION ALL SELECT 'approval' AS kind, document AS payload FROM approval WHERE tenant = :tenant AND document IS NOT NULL
    UNION ALL SELECT 'approval_payload' AS kind, payload AS payload FROM approval WHERE tenant = :tenant AND payload IS NOT NULL
    UNION ALL SELECT 'outside' AS kind, data AS payload FROM outside_event WHERE tenant = :tenant AND data IS NOT NULL
    UNION ALL SELECT 'events' AS kind, body AS payload FROM event_page WHERE tenant = :tenant AND body IS NOT NULL
    UNION ALL SELECT 'result' AS kind, document AS payload FROM result WHERE tenant = :tenant AND document IS NOT NULL
    UNION ALL SELECT 'result_text' AS kind, text AS payload FROM result WHERE tenant = :tenant AND text IS NOT NULL
) AS p
GROUP BY 1, 2
ORDER BY 1, 2;
