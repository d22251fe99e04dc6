-- What the audit compares with the tasks of a job.

-- name: audit_ready
-- Which tasks of a job are queued, and since when.
SELECT task_id, ready_at FROM ready WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_timers
-- What tasks of a job wait for.
SELECT job_id, task_id, kind, name, key, due_at FROM timer WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_dead_letters
-- Which tasks of a job failed for good.
SELECT task_id FROM dead_letter WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_approvals
-- What people were asked in a job.
SELECT
    job_id, task_id, key, state, document, payload, asked, not_submitter, submitted_by, version, requested_at,
    due_at, escalated_at, decided_at
FROM approval WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_steps
-- Which steps of a job are recorded, with results that may be references to blobs.
SELECT task_id, key, CASE WHEN length(output) <= :most THEN output END FROM step
WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_signals
-- Which signals a job has got, with payloads that may be references to blobs.
SELECT name, signal_id, CASE WHEN length(payload) <= :most THEN payload END FROM signal
WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_tags
-- By which tags a job is found.
SELECT key, value FROM job_tag WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_blobs
-- Which large payloads of a job are there.
SELECT digest FROM blob WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_leases
-- What the workers of a tenant hold.
SELECT token, tasks FROM lease WHERE tenant = :tenant;
