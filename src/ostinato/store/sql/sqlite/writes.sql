-- Writes, each over many rows. A row is the tenant, then the columns in order.
-- Differs: SQLite binds one row at a time.

-- name: insert_job
-- Enter jobs.
INSERT INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags,
    cascades, deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_job
-- Write back what can change in a job.
UPDATE job SET
    state = ?3, cascades = ?4, deadline_at = ?5, finished_at = ?6, failure_detected_at = ?7, last_seq = ?8,
    total = ?9, blocked = ?10, active = ?11, completed = ?12, failed = ?13, tolerated = ?14, skipped = ?15,
    cancelled = ?16
WHERE tenant = ?1 AND job_id = ?2;

-- name: insert_task
-- Enter tasks.
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input,
    state, attempt, attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, output, error,
    started_at, finished_at, ready_at, worker, token, max_attempts, timeout_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_task
-- Write back what can change in a task.
UPDATE task SET
    input = ?4, state = ?5, attempt = ?6, attempt_base = ?7, crashes = ?8, open_dependencies = ?9, resuming =
    ?10, skipped_by_dependency = ?11, output = ?12, error = ?13, started_at = ?14, finished_at = ?15, ready_at
    = ?16, worker = ?17, token = ?18, max_attempts = ?19, timeout_at = ?20
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_edge
-- Enter dependencies.
INSERT INTO edge (
    tenant, job_id, up, down
)
VALUES (?, ?, ?, ?);

-- name: insert_ready
-- Queue pending tasks.
INSERT INTO ready (
    tenant, queue, name, rank, ready_at, job_id, task_id
)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: delete_ready
-- Take tasks out of the queue.
DELETE FROM ready
WHERE tenant = ?1 AND queue = ?2 AND name = ?3 AND rank = ?4 AND ready_at = ?5 AND job_id = ?6 AND task_id = ?7;

-- name: insert_lease
-- Note what a worker has claimed.
INSERT INTO lease (
    tenant, worker, token, tasks
)
VALUES (?, ?, ?, ?);

-- name: delete_lease
-- Forget claims whose tasks have all been reported.
DELETE FROM lease
WHERE tenant = ?1 AND worker = ?2 AND token = ?3;

-- name: insert_timer
-- Arm timers, or move them.
INSERT INTO timer (
    tenant, job_id, task_id, kind, name, key, due_at
)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, job_id, task_id) DO UPDATE SET
    kind = excluded.kind, name = excluded.name, key = excluded.key, due_at = excluded.due_at;

-- name: delete_timer
-- Disarm timers.
DELETE FROM timer WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_step
-- Record finished steps. The first record of a step stands.
INSERT INTO step (
    tenant, job_id, task_id, key, output, recorded_at
)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, job_id, task_id, key) DO NOTHING;

-- name: insert_signal
-- Keep signals.
INSERT INTO signal (
    tenant, job_id, name, signal_id, payload, taken
)
VALUES (?, ?, ?, ?, ?, ?);

-- name: take_signal
-- Mark signals as taken.
UPDATE signal SET taken = 1
WHERE tenant = ?1 AND job_id = ?2 AND name = ?3 AND signal_id = ?4;

-- name: insert_dead_letter
-- List tasks that failed for good.
INSERT INTO dead_letter (
    tenant, job_id, task_id, name, failed_at
)
VALUES (?, ?, ?, ?, ?);

-- name: delete_dead_letter
-- Take tasks off the list of dead letters.
DELETE FROM dead_letter WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_event
-- Append events.
INSERT INTO event (
    tenant, job_id, seq, type, task_id, attempt, at, data
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_blob
-- Keep large payloads, once for each content.
INSERT INTO blob (
    tenant, job_id, digest, data
)
VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, job_id, digest) DO NOTHING;
