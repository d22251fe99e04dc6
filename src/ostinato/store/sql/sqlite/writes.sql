-- Writes, each over many rows of one tenant.
-- Differs: SQLite binds one row at a time: the tenant, then the columns in order.
-- (OR ROLLBACK: a statement that would take its whole transaction back need not keep what it has changed, page by page,
-- to take back only itself. Here one that fails always takes the transaction with it.)

-- name: insert_job
-- Enter jobs.
INSERT OR ROLLBACK INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags,
    cascades, deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled, trace_parent, max_parallel, turns, budget, spent,
    submitted_by
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
    ?24, ?25, ?26, ?27, ?28, ?29, ?30
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
UPDATE OR ROLLBACK job SET
    state = ?4, cascades = ?5, deadline_at = ?6, finished_at = ?7, failure_detected_at = ?8, last_seq = ?9,
    total = ?10, blocked = ?11, active = ?12, completed = ?13, failed = ?14, tolerated = ?15, skipped = ?16,
    cancelled = ?17, turns = ?18, budget = ?20, spent = ?21
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?19;

-- name: advance_job
-- The same for the most common change: tasks have moved on, none has ended otherwise than completed.
UPDATE OR ROLLBACK job SET
    last_seq = ?4, blocked = ?5, active = ?6, completed = ?7
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?8;

-- name: insert_task
-- Enter tasks.
INSERT OR ROLLBACK INTO task (
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
UPDATE OR ROLLBACK task SET
    state = 'processing', open_dependencies = 0, resuming = 0, attempt = ?4, started_at = ?5, ready_at = ?6,
    worker = ?7, token = ?8, max_attempts = ?9, timeout_at = ?10
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: complete_task
-- The same for the most common change: a task that was running has completed, and nothing else about it is new.
UPDATE OR ROLLBACK task SET
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
INSERT OR ROLLBACK INTO edge (
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
    tenant, job_id, name, signal_id, payload, taken, seq
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
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
INSERT OR ROLLBACK INTO event_page (
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

-- name: insert_item
-- Enter items. A trigger checks the moves that led to their status, and writes them down.
INSERT INTO item (
    tenant, item_id, pipeline, version, status, open, job_id, run, steps, step, attempt, retry_at, failures, error_type,
    entered_at, status_at, submitted_by, reviewed_by, reviewed_at, digest, via, payload
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22
);

-- name: update_item
-- Write back what can change in an item, if it still is as it was loaded: not every change of it is one of its job.
-- Without a payload it keeps its own.
-- (What its triggers write would be counted with it: what comes back is not.)
UPDATE item SET
    version = ?4, status = ?5, open = ?6, job_id = ?7, run = ?8, steps = ?9, step = ?10, attempt = ?11, retry_at = ?12,
    failures = ?13, error_type = ?14, status_at = ?15, reviewed_by = ?16, reviewed_at = ?17, via = ?18,
    payload = coalesce(?19, payload), digest = coalesce(?24, digest)
WHERE tenant = ?1 AND item_id = ?2 AND status = ?3 AND version = ?20 AND run = ?21 AND steps = ?22 AND reviewed_at IS ?23
RETURNING 1;

-- name: insert_pipeline_status
-- The statuses of a version of a pipeline.
INSERT INTO pipeline_status (
    tenant, pipeline, version, code, name, phase, position
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
);

-- name: insert_state_transition
-- The legal moves of a version of a pipeline.
INSERT INTO state_transition (
    tenant, pipeline, version, from_code, to_code
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
);

-- name: insert_approval
-- Ask people, or note what they have decided.
INSERT INTO approval (
    tenant, job_id, task_id, key, state, document, payload, asked, not_submitter, submitted_by, version,
    requested_at, due_at, escalated_at, decided_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15
)
ON CONFLICT (tenant, job_id, task_id, key) DO UPDATE SET
    state = excluded.state, document = excluded.document, payload = excluded.payload, asked = excluded.asked,
    not_submitter = excluded.not_submitter, submitted_by = excluded.submitted_by, version = excluded.version,
    requested_at = excluded.requested_at, due_at = excluded.due_at, escalated_at = excluded.escalated_at,
    decided_at = excluded.decided_at;

-- name: withdraw_approval
-- Ask no longer, about tasks that have ended.
UPDATE approval SET
    state = 'withdrawn', due_at = NULL, decided_at = ?4
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3 AND state = 'waiting';

-- name: add_tally
-- Count on, each process in rows of its own.
INSERT INTO tally (
    tenant, topic, key, bucket, writer, count, amount
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
)
ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET
    count = tally.count + excluded.count, amount = tally.amount + excluded.amount;

-- name: add_usage
-- Add to what attempts have used up.
INSERT INTO usage (
    tenant, job_id, task_id, attempt, calls, input_tokens, output_tokens, cost, last_id
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
)
ON CONFLICT (tenant, job_id, task_id, attempt) DO UPDATE SET
    calls = usage.calls + excluded.calls, input_tokens = usage.input_tokens + excluded.input_tokens,
    output_tokens = usage.output_tokens + excluded.output_tokens, cost = usage.cost + excluded.cost,
    last_id = excluded.last_id;

-- name: hold_budget
-- Something waits for a tenant's budget: only if that is still what it was taken to be.
UPDATE tenant SET
    budget_day = budget_day
WHERE tenant = ?1 AND budget_day IS NOT DISTINCT FROM ?2 AND budget_month IS NOT DISTINCT FROM ?3
RETURNING 1;
