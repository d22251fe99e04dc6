-- Writes, each over many rows of one tenant.
-- Differs: SQLite binds one row at a time: the tenant, then the columns in order.

-- name: insert_job
-- Enter jobs.
INSERT INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags,
    cascades, deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled, trace_parent, max_parallel, turns
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
    ?24, ?25, ?26, ?27
);

-- name: insert_job_tag
-- Let jobs be found by their tags.
INSERT INTO job_tag (
    tenant, job_id, key, value, created_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
);

-- name: update_job
-- Write back what can change in a job, if it still is as it was loaded.
UPDATE job SET
    state = ?4, cascades = ?5, deadline_at = ?6, finished_at = ?7, failure_detected_at = ?8, last_seq = ?9,
    total = ?10, blocked = ?11, active = ?12, completed = ?13, failed = ?14, tolerated = ?15, skipped = ?16,
    cancelled = ?17, turns = ?18
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?19;

-- name: advance_job
-- The same for the most common change: tasks have moved on, none has ended otherwise than completed.
UPDATE job SET
    last_seq = ?4, blocked = ?5, active = ?6, completed = ?7
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?8;

-- name: insert_task
-- Enter tasks.
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input,
    state, attempt, open_dependencies, skipped_by_dependency, started_at, finished_at, ready_at, worker, token,
    max_attempts, timeout_at, attempt_base, crashes, resuming
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0,
    0, 0
);

-- name: insert_ended_task
-- Enter tasks of which somebody has told the outcome already.
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input,
    state, attempt, open_dependencies, skipped_by_dependency, started_at, finished_at, ready_at, worker, token,
    max_attempts, timeout_at, attempt_base, crashes, resuming, output, error
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0,
    0, 0, ?24, ?25
);

-- name: update_task
-- Write back what can change in a task.
UPDATE task SET
    state = ?4, attempt = ?5, attempt_base = ?6, crashes = ?7, open_dependencies = ?8, resuming = ?9,
    skipped_by_dependency = ?10, output = ?11, error = ?12, started_at = ?13, finished_at = ?14, ready_at = ?15,
    worker = ?16, token = ?17, max_attempts = ?18, timeout_at = ?19
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: claim_task
-- The same for a task that was ready, or has just become so, and is now leased.
UPDATE task SET
    state = 'processing', open_dependencies = 0, resuming = 0, attempt = ?4, started_at = ?5, ready_at = ?6,
    worker = ?7, token = ?8, max_attempts = ?9, timeout_at = ?10
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: complete_task
-- The same for the most common change: a task that was running has completed, and nothing else about it is new.
UPDATE task SET
    state = 'completed', output = ?4, finished_at = ?5, error = NULL, worker = NULL, token = NULL, timeout_at = NULL
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: update_task_and_input
-- The same for tasks that are to run again with another input.
UPDATE task SET
    input = ?4, state = ?5, attempt = ?6, attempt_base = ?7, crashes = ?8, open_dependencies = ?9, resuming =
    ?10, skipped_by_dependency = ?11, output = ?12, error = ?13, started_at = ?14, finished_at = ?15, ready_at =
    ?16, worker = ?17, token = ?18, max_attempts = ?19, timeout_at = ?20
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_edge
-- Enter dependencies.
INSERT INTO edge (
    tenant, job_id, up, down
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: insert_ready
-- Queue pending tasks.
INSERT INTO ready (
    tenant, queue, name, rank, ready_at, job_id, task_id
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
);

-- name: delete_ready
-- Take tasks out of the queue.
DELETE FROM ready
WHERE tenant = ?1 AND queue = ?2 AND name = ?3 AND rank = ?4 AND ready_at = ?5 AND job_id = ?6 AND task_id = ?7;

-- name: insert_lease
-- Note what a worker has claimed.
INSERT INTO lease (
    tenant, worker, token, tasks
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: delete_lease
-- Forget claims whose tasks have all been reported.
DELETE FROM lease
WHERE tenant = ?1 AND worker = ?2 AND token = ?3;

-- name: insert_timer
-- Arm timers, or move them.
INSERT INTO timer (
    tenant, job_id, task_id, kind, name, key, due_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
)
ON CONFLICT (tenant, job_id, task_id) DO UPDATE SET
    kind = excluded.kind, name = excluded.name, key = excluded.key, due_at = excluded.due_at;

-- name: delete_timer
-- Disarm timers.
DELETE FROM timer
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_step
-- Record finished steps. The first record of a step stands.
INSERT INTO step (
    tenant, job_id, task_id, key, output, recorded_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
)
ON CONFLICT (tenant, job_id, task_id, key) DO NOTHING;

-- name: insert_signal
-- Keep signals.
INSERT INTO signal (
    tenant, job_id, name, signal_id, payload, taken
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
);

-- name: take_signal
-- Mark signals as taken.
UPDATE signal SET
    taken = ?5
WHERE tenant = ?1 AND job_id = ?2 AND name = ?3 AND signal_id = ?4;

-- name: insert_dead_letter
-- List tasks that failed for good.
INSERT INTO dead_letter (
    tenant, job_id, task_id, name, failed_at, error_type
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
);

-- name: delete_dead_letter
-- Take tasks off the list of dead letters.
DELETE FROM dead_letter
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: insert_event_page
-- Append pages of events.
INSERT INTO event_page (
    tenant, job_id, first_seq, last_seq, at, body
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
);

-- name: insert_blob
-- Keep large payloads, once for each content.
INSERT INTO blob (
    tenant, job_id, digest, data
)
VALUES (
    ?1, ?2, ?3, ?4
)
ON CONFLICT (tenant, job_id, digest) DO NOTHING;

-- name: insert_gate_key
-- Note which job stands for a gate and a key.
INSERT INTO gate_key (
    tenant, gate, key, job_id
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: delete_gate_key
-- The next report for this key begins anew.
DELETE FROM gate_key
WHERE tenant = ?1 AND gate = ?2 AND key = ?3;

-- name: update_gate_key
-- The key has begun anew, with another job.
UPDATE gate_key SET
    job_id = ?4
WHERE tenant = ?1 AND gate = ?2 AND key = ?3;

-- name: insert_outside_event
-- Record events of others.
INSERT INTO outside_event (
    tenant, source, event_id, received_at, data
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
);
