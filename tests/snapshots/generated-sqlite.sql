-- name: insert_blob
-- Keep large payloads, once for each content.
INSERT INTO blob (
    tenant, job_id, digest, data
)
VALUES (
    ?1, ?2, ?3, ?4
)
ON CONFLICT (tenant, job_id, digest) DO NOTHING;

-- name: insert_job
-- Enter jobs.
INSERT OR ROLLBACK INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, idempotency_key, request_hash, tags,
    cascades, deadline_at, created_at, finished_at, failure_detected_at, last_seq, total, blocked, active,
    completed, failed, tolerated, skipped, cancelled, trace_parent, max_parallel, turns, budget, spent,
    submitted_by, keep_seconds, processing, waiting
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33
);

-- name: insert_job_tag
-- Let jobs be found by their tags.
INSERT OR ROLLBACK INTO job_tag (
    tenant, job_id, key, value, created_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
);

-- name: update_job
-- Write back what can change in a job, if it still is as it was loaded.
UPDATE OR ROLLBACK job SET
    state = ?5, cascades = ?6, deadline_at = ?7, finished_at = ?8, failure_detected_at = ?9, last_seq = ?10,
    total = ?11, blocked = ?12, active = ?13, completed = ?14, failed = ?15, tolerated = ?16, skipped = ?17,
    cancelled = ?18, turns = ?19, budget = ?20, spent = ?21, processing = ?22, waiting = ?23
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?4;

-- name: advance_job
-- The same for the most common change: tasks have moved on, and none has ended but as completed.
UPDATE OR ROLLBACK job SET
    last_seq = ?5, blocked = ?6, active = ?7, completed = ?8, processing = ?9, waiting = ?10
WHERE tenant = ?1 AND job_id = ?2 AND last_seq = ?3 AND created_at = ?4;

-- name: insert_task
-- Enter tasks.
INSERT OR ROLLBACK INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, started_at, finished_at, ready_at, worker, token,
    max_attempts, timeout_at, attempt_base, crashes, resuming
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0, 0,
    false
);

-- name: insert_ended_task
-- Enter tasks whose outcome is known already.
INSERT OR ROLLBACK INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, options, input, state,
    attempt, open_dependencies, skipped_by_dependency, output, error, started_at, finished_at, ready_at, worker,
    token, max_attempts, timeout_at, attempt_base, crashes, resuming
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, 0, 0, false
);

-- name: insert_edge
-- Enter dependencies.
INSERT OR ROLLBACK INTO edge (
    tenant, job_id, up, down
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: update_task
-- Write back what can change in a task.
UPDATE OR ROLLBACK task SET
    state = ?4, attempt = ?5, attempt_base = ?6, crashes = ?7, open_dependencies = ?8, resuming = ?9,
    skipped_by_dependency = ?10, output = ?11, error = ?12, started_at = ?13, finished_at = ?14, ready_at = ?15,
    worker = ?16, token = ?17, max_attempts = ?18, timeout_at = ?19
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: claim_task
-- The same for a task that was ready, or has just become so, and is now leased.
UPDATE OR ROLLBACK task SET
    state = 'processing', open_dependencies = 0, resuming = false, attempt = ?4, started_at = ?5, ready_at = ?6,
    worker = ?7, token = ?8, max_attempts = ?9, timeout_at = ?10
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: complete_task
-- The same for the most common change: a task that was running has completed.
UPDATE OR ROLLBACK task SET
    state = 'completed', error = NULL, worker = NULL, token = NULL, timeout_at = NULL, output = ?4, finished_at = ?5
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: update_task_and_input
-- The same for tasks that are to run again with another input.
UPDATE OR ROLLBACK task SET
    input = ?4, options = ?5, state = ?6, attempt = ?7, attempt_base = ?8, crashes = ?9, open_dependencies = ?10,
    resuming = ?11, skipped_by_dependency = ?12, output = ?13, error = ?14, started_at = ?15, finished_at = ?16,
    ready_at = ?17, worker = ?18, token = ?19, max_attempts = ?20, timeout_at = ?21
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: delete_ready
-- Take tasks out of the queue.
DELETE FROM ready
WHERE tenant = ?1 AND queue = ?2 AND name = ?3 AND rank = ?4 AND ready_at = ?5 AND job_id = ?6 AND task_id = ?7;

-- name: insert_ready
-- Queue pending tasks.
INSERT OR ROLLBACK INTO ready (
    tenant, queue, name, rank, ready_at, job_id, task_id
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
);

-- name: delete_lease
-- Forget claims whose tasks have all been reported.
DELETE FROM lease
WHERE tenant = ?1 AND worker = ?2 AND token = ?3;

-- name: insert_lease
-- Note what a worker has claimed.
INSERT OR ROLLBACK INTO lease (
    tenant, worker, token, tasks
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: delete_timer
-- Disarm timers.
DELETE FROM timer
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

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

-- name: insert_step
-- Record finished steps. The first record of a step stands.
INSERT INTO step (
    tenant, job_id, task_id, key, output, recorded_at
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
)
ON CONFLICT (tenant, job_id, task_id, key) DO NOTHING;

-- name: take_signal
-- Mark signals as taken.
UPDATE OR ROLLBACK signal SET
    taken = ?5
WHERE tenant = ?1 AND job_id = ?2 AND name = ?3 AND signal_id = ?4;

-- name: insert_signal
-- Keep signals.
INSERT OR ROLLBACK INTO signal (
    tenant, job_id, name, signal_id, payload, taken, seq
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
);

-- name: insert_dead_letter
-- List tasks that failed for good.
INSERT OR ROLLBACK INTO dead_letter (
    tenant, job_id, task_id, name, failed_at, error_type
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
);

-- name: delete_dead_letter
-- Take tasks off the list of dead letters.
DELETE FROM dead_letter
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3;

-- name: delete_gate_key
-- The next report for a key begins again.
DELETE FROM gate_key
WHERE tenant = ?1 AND gate = ?2 AND key = ?3;

-- name: update_gate_key
-- A key begins again, with another job.
UPDATE OR ROLLBACK gate_key SET
    job_id = ?4
WHERE tenant = ?1 AND gate = ?2 AND key = ?3;

-- name: insert_gate_key
-- Note which job stands for a gate and a key.
INSERT OR ROLLBACK INTO gate_key (
    tenant, gate, key, job_id
)
VALUES (
    ?1, ?2, ?3, ?4
);

-- name: insert_item
-- Enter items. A trigger checks the moves that led to their status, and writes them down.
INSERT INTO item (
    tenant, item_id, pipeline, version, status, open, job_id, run, steps, step, attempt, retry_at, failures,
    error_type, entered_at, status_at, submitted_by, reviewed_by, reviewed_at, digest, via, payload
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22
);

-- name: update_item
-- Write back what can change in an item, if it still is as it was loaded.
UPDATE item SET
    version = ?8, status = ?9, open = ?10, job_id = ?11, run = ?12, steps = ?13, step = ?14, attempt = ?15,
    retry_at = ?16, failures = ?17, error_type = ?18, status_at = ?19, reviewed_by = ?20, reviewed_at = ?21,
    via = ?22, payload = coalesce(?23, payload), digest = coalesce(?24, digest)
WHERE tenant = ?1 AND item_id = ?2 AND status = ?3 AND version = ?4 AND run = ?5 AND steps = ?6
    AND reviewed_at IS NOT DISTINCT FROM ?7
RETURNING 1;

-- name: withdraw_approval
-- Ask no longer, about tasks that have ended.
UPDATE OR ROLLBACK approval SET
    state = 'withdrawn', due_at = NULL, decided_at = ?4
WHERE tenant = ?1 AND job_id = ?2 AND task_id = ?3 AND state = 'waiting';

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

-- name: insert_outside_event
-- Record events of others.
INSERT OR ROLLBACK INTO outside_event (
    tenant, source, event_id, received_at, data
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
);

-- name: insert_removed_event
-- Remember the ids of events that are removed.
INSERT INTO removed_event (
    tenant, source, event_id, removed_at
)
VALUES (
    ?1, ?2, ?3, ?4
)
ON CONFLICT (tenant, source, event_id) DO NOTHING;

-- name: hold_budget
-- Something waits for a budget of the tenant, if that still is what it was taken to be.
UPDATE OR ROLLBACK tenant SET
    budget_day = budget_day
WHERE tenant = ?1 AND budget_day IS NOT DISTINCT FROM ?2 AND budget_month IS NOT DISTINCT FROM ?3
RETURNING 1;

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

-- name: insert_event_page
-- Append pages of events.
INSERT OR ROLLBACK INTO event_page (
    tenant, job_id, first_seq, last_seq, at, body
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6
);

-- name: insert_result
-- Save results.
INSERT OR ROLLBACK INTO result (
    tenant, result_id, job_id, domain, kind, created_at, document, text
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
);

-- name: insert_result_digest
-- Note what results are known by.
INSERT OR ROLLBACK INTO result_digest (
    tenant, number, digest
)
VALUES (
    ?1, ?2, ?3
);

-- name: insert_pipeline_status
-- The statuses of a version of a pipeline.
INSERT OR ROLLBACK INTO pipeline_status (
    tenant, pipeline, version, code, name, phase, position
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7
);

-- name: insert_state_transition
-- The legal moves of a version of a pipeline.
INSERT OR ROLLBACK INTO state_transition (
    tenant, pipeline, version, from_code, to_code
)
VALUES (
    ?1, ?2, ?3, ?4, ?5
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
