-- Keys of what is listed, newest first, from a place on. One block for each index to go along; a block checks only the filters
-- that select more than its own, for with one that selects less another block is used.
-- A block that goes both ways has a twin of the same name and `_upwards`, oldest first.
--
-- Conditions like `name <> ''` are always true. They are those of the index to use, which no query that does not say so can take
-- by mistake. OFFSET 0 keeps a lookup by key what it is, whatever the planner thinks of an empty table.

-- name: find_jobs
-- All jobs. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND job_id <> ''
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_jobs_by_name
-- Jobs of a name. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND name = :name AND name <> ''
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_jobs_by_state
-- Jobs in a state. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND state = :state AND state <> ''
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_jobs_by_tag
-- Jobs that have a tag of this key. Both ways.
SELECT g.created_at, g.job_id FROM job_tag g
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.key <> ''
    AND (g.created_at, g.job_id) > (:after_at, :after_id) AND (g.created_at, g.job_id) < (:before_at, :before_id)
    AND ((CAST(:name AS TEXT) IS NULL AND CAST(:states AS TEXT) IS NULL) OR EXISTS (
        SELECT 1 FROM job j WHERE j.tenant = g.tenant AND j.job_id = g.job_id
            AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
            AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || j.state || ',%')
        LIMIT 1 OFFSET 0))
ORDER BY g.created_at DESC, g.job_id DESC
LIMIT :most;

-- name: find_jobs_by_tag_value
-- Jobs that have this tag. Both ways.
SELECT g.created_at, g.job_id FROM job_tag g
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.value = :tag_value AND g.job_id <> ''
    AND (g.created_at, g.job_id) > (:after_at, :after_id) AND (g.created_at, g.job_id) < (:before_at, :before_id)
    AND ((CAST(:name AS TEXT) IS NULL AND CAST(:states AS TEXT) IS NULL) OR EXISTS (
        SELECT 1 FROM job j WHERE j.tenant = g.tenant AND j.job_id = g.job_id
            AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
            AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || j.state || ',%')
        LIMIT 1 OFFSET 0))
ORDER BY g.created_at DESC, g.job_id DESC
LIMIT :most;

-- name: find_jobs_by_request_id
-- Jobs of a request.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND request_id = :request_id
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
    AND (CAST(:tag_key AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM job_tag g WHERE g.tenant = job.tenant AND g.job_id = job.job_id AND g.key = :tag_key
            AND (CAST(:tag_value AS TEXT) IS NULL OR g.value = :tag_value)
        LIMIT 1 OFFSET 0))
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_jobs_by_correlation_id
-- Jobs to which their producers gave this correlation id. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND correlation_id = :correlation_id AND correlation_id <> job_id
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
    AND (CAST(:request_id AS TEXT) IS NULL OR request_id = :request_id)
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
    AND (CAST(:tag_key AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM job_tag g WHERE g.tenant = job.tenant AND g.job_id = job.job_id AND g.key = :tag_key
            AND (CAST(:tag_value AS TEXT) IS NULL OR g.value = :tag_value)
        LIMIT 1 OFFSET 0))
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_job_by_its_own_correlation_id
-- The job that has this correlation id because it is its own id. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND job_id = :correlation_id AND correlation_id = job_id
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
    AND (CAST(:request_id AS TEXT) IS NULL OR request_id = :request_id)
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
    AND (CAST(:tag_key AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM job_tag g WHERE g.tenant = job.tenant AND g.job_id = job.job_id AND g.key = :tag_key
            AND (CAST(:tag_value AS TEXT) IS NULL OR g.value = :tag_value)
        LIMIT 1 OFFSET 0))
LIMIT :most;

-- name: find_dead_letters
-- All dead letters.
SELECT failed_at, job_id, task_id FROM dead_letter
WHERE tenant = :tenant AND task_id <> ''
    AND (failed_at, job_id, task_id) < (:before_at, :before_job, :before_task) AND failed_at >= :from_at
ORDER BY failed_at DESC, job_id DESC, task_id DESC
LIMIT :most;

-- name: find_dead_letters_by_name
-- Dead letters of a function.
SELECT failed_at, job_id, task_id FROM dead_letter
WHERE tenant = :tenant AND name = :name AND name <> ''
    AND (failed_at, job_id, task_id) < (:before_at, :before_job, :before_task) AND failed_at >= :from_at
ORDER BY failed_at DESC, job_id DESC, task_id DESC
LIMIT :most;

-- name: find_dead_letters_by_error_type
-- Dead letters that failed with an error of this type.
SELECT failed_at, job_id, task_id FROM dead_letter
WHERE tenant = :tenant AND error_type = :error_type AND error_type <> ''
    AND (failed_at, job_id, task_id) < (:before_at, :before_job, :before_task) AND failed_at >= :from_at
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
ORDER BY failed_at DESC, job_id DESC, task_id DESC
LIMIT :most;

-- name: find_dead_letters_by_job
-- Dead letters of a job.
SELECT failed_at, job_id, task_id FROM dead_letter
WHERE tenant = :tenant AND job_id = :job_id
    AND (failed_at, job_id, task_id) < (:before_at, :before_job, :before_task) AND failed_at >= :from_at
    AND (CAST(:name AS TEXT) IS NULL OR name = :name)
    AND (CAST(:error_type AS TEXT) IS NULL OR error_type = :error_type)
ORDER BY failed_at DESC, job_id DESC, task_id DESC
LIMIT :most;
