-- The inbox: what people are asked, oldest first, from a place on. (Conditions like `job_id <> ''` are always true: they are
-- those of the index to use.)

-- name: find_waiting_approvals
-- What is waiting for people; with a name, for somebody who is called that or has that other name.
SELECT requested_at, job_id, task_id, key FROM approval
WHERE tenant = :tenant AND state = 'waiting'
    AND (requested_at, job_id, task_id, key) > (:after_at, :after_job, :after_task, :after_key)
    AND (CAST(:approver AS TEXT) IS NULL OR (
        (asked IS NULL OR replace(asked, :approver, '') <> asked OR replace(asked, :called, '') <> asked)
        AND (CAST(not_submitter AS INTEGER) = 0 OR submitted_by IS NULL OR submitted_by <> :actor)))
ORDER BY requested_at, job_id, task_id, key
LIMIT :most;

-- name: find_approvals
-- What people are or were asked.
SELECT requested_at, job_id, task_id, key FROM approval
WHERE tenant = :tenant AND job_id <> ''
    AND (requested_at, job_id, task_id, key) > (:after_at, :after_job, :after_task, :after_key)
    AND (CAST(:state AS TEXT) IS NULL OR state = :state)
    AND (CAST(:approver AS TEXT) IS NULL OR (
        (asked IS NULL OR replace(asked, :approver, '') <> asked OR replace(asked, :called, '') <> asked)
        AND (CAST(not_submitter AS INTEGER) = 0 OR submitted_by IS NULL OR submitted_by <> :actor)))
ORDER BY requested_at, job_id, task_id, key
LIMIT :most;

-- name: find_approvals_of_job
-- What people are or were asked in a job, or by one task of it.
SELECT requested_at, job_id, task_id, key FROM approval
WHERE tenant = :tenant AND job_id = :job_id
    AND (requested_at, job_id, task_id, key) > (:after_at, :after_job, :after_task, :after_key)
    AND (CAST(:task_id AS TEXT) IS NULL OR task_id = :task_id)
    AND (CAST(:state AS TEXT) IS NULL OR state = :state)
    AND (CAST(:approver AS TEXT) IS NULL OR (
        (asked IS NULL OR replace(asked, :approver, '') <> asked OR replace(asked, :called, '') <> asked)
        AND (CAST(not_submitter AS INTEGER) = 0 OR submitted_by IS NULL OR submitted_by <> :actor)))
ORDER BY requested_at, job_id, task_id, key
LIMIT :most;

-- name: count_waiting_approvals
-- How much waits for people, and since when the oldest does.
SELECT count(*), min(requested_at) FROM approval WHERE tenant = :tenant AND state = 'waiting';
