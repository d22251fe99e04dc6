-- An index for each way to look for jobs and dead letters, newest first. Jobs are entered often: only the indexes on state and
-- name hold all of them, the others those that have what they are about. A condition that is always true (`name <> ''`) keeps
-- an index for the queries that say so: on an empty table a planner finds all indexes equally good.

CREATE INDEX job_state ON job (tenant, state, created_at, job_id) WHERE state <> '';
CREATE INDEX job_name ON job (tenant, name, created_at, job_id) WHERE name <> '';
CREATE INDEX job_request ON job (tenant, request_id, created_at, job_id) WHERE request_id IS NOT NULL;
CREATE INDEX job_correlation ON job (tenant, correlation_id, created_at, job_id)
WHERE correlation_id <> job_id;

-- The tags of jobs that have some, to be found by; `job.tags` is what is shown.
CREATE TABLE job_tag (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, job_id, key)
);
CREATE INDEX job_tag_key ON job_tag (tenant, key, created_at, job_id) WHERE key <> '';
CREATE INDEX job_tag_value ON job_tag (tenant, key, value, created_at, job_id) WHERE job_id <> '';
INSERT INTO job_tag (tenant, job_id, key, value, created_at)
SELECT j.tenant, j.job_id, t.key, t.value, j.created_at
FROM job j, jsonb_each_text(convert_from(j.tags, 'UTF8')::jsonb) t;

ALTER TABLE dead_letter ADD COLUMN error_type text COLLATE "C" NOT NULL DEFAULT '';
-- (An error that is no plain JSON is encrypted: its type stays unknown.)
UPDATE dead_letter d SET error_type = CASE WHEN substr(t.error, 1, 1) = '{'::bytea
    THEN COALESCE(substr(convert_from(t.error, 'UTF8')::jsonb ->> 'type', 1, 200), '') ELSE '' END
FROM task t WHERE t.tenant = d.tenant AND t.job_id = d.job_id AND t.task_id = d.task_id;
CREATE INDEX dead_letter_name ON dead_letter (tenant, name, failed_at, job_id, task_id) WHERE name <> '';
CREATE INDEX dead_letter_error ON dead_letter (tenant, error_type, failed_at, job_id, task_id) WHERE error_type <> '';
