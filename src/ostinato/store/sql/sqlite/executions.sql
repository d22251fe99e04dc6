-- Executions by key, and the writes of the index.
-- Differs: SQLite takes a set as one JSON text and binds one row at a time to write it; a writing transaction is alone already.

-- name: lock_executions
-- Let only one transaction at a time merge what is reported of the executions in these stripes.
SELECT :stripes;

-- name: load_own_executions
-- What the index shows of jobs, by id, with the last event of those that run.
SELECT
    j.job_id, j.name, j.state, j.correlation_id, j.tags, j.created_at, j.finished_at,
    CASE WHEN j.state = 'running' THEN (
        SELECT p.at FROM event_page p WHERE p.tenant = :tenant AND p.job_id = j.job_id ORDER BY p.last_seq DESC LIMIT 1
    ) END AS changed_at
FROM json_each(:job_ids) k CROSS JOIN job j ON j.tenant = :tenant AND j.job_id = k.value;

-- name: load_executions
-- Outside executions by ARN.
SELECT
    e.execution_arn, e.state_machine_arn, e.agent_name, e.execution_name, e.status, e.start_at, e.stop_at,
    e.correlation_id, e.indexed_at
FROM json_each(:arns) k CROSS JOIN execution e ON e.tenant = :tenant AND e.execution_arn = k.value;

-- name: load_execution_tags
-- The tags of outside executions.
SELECT g.execution_arn, g.key, g.value
FROM json_each(:arns) k CROSS JOIN execution_tag g ON g.tenant = :tenant AND g.execution_arn = k.value
ORDER BY g.execution_arn, g.key;

-- name: tagged_jobs
-- Those of the given jobs that have a tag of this key. Along the index of the tag: what is near in time is near there.
SELECT g.job_id
FROM json_each(:keys) k
CROSS JOIN job_tag g ON g.tenant = :tenant AND g.key = :tag_key AND g.key <> ''
    AND g.created_at = k.value ->> 0 AND g.job_id = k.value ->> 1;

-- name: tagged_jobs_value
-- Those of the given jobs that have this tag.
SELECT g.job_id
FROM json_each(:keys) k
CROSS JOIN job_tag g ON g.tenant = :tenant AND g.key = :tag_key AND g.value = :tag_value AND g.job_id <> ''
    AND g.created_at = k.value ->> 0 AND g.job_id = k.value ->> 1;

-- name: tagged_executions
-- Those of the given outside executions that have a tag of this key.
SELECT g.execution_arn
FROM json_each(:keys) k
CROSS JOIN execution_tag g ON g.tenant = :tenant AND g.key = :tag_key AND g.key <> ''
    AND g.start_at = k.value ->> 0 AND g.execution_arn = k.value ->> 1;

-- name: tagged_executions_value
-- Those of the given outside executions that have this tag.
SELECT g.execution_arn
FROM json_each(:keys) k
CROSS JOIN execution_tag g ON g.tenant = :tenant AND g.key = :tag_key AND g.value = :tag_value AND g.execution_arn <> ''
    AND g.start_at = k.value ->> 0 AND g.execution_arn = k.value ->> 1;

-- name: narrowed_jobs
-- Those of the given jobs that have an agent and one of some statuses, and perhaps are not the engine's own.
SELECT e.job_id
FROM json_each(:keys) k CROSS JOIN job e ON e.tenant = :tenant AND e.job_id = k.value ->> 1
WHERE (:agent_name IS NULL OR e.name = :agent_name)
    AND (:statuses IS NULL OR :statuses LIKE '%,' || e.state || ',%')
    AND (:users IS NULL OR substr(e.name, 1, 5) NOT IN ('gate:', 'rule:') AND substr(e.name, 1, 7) <> 'budget:');

-- name: narrowed_executions
-- Those of the given outside executions that have an agent and one of some statuses.
SELECT e.execution_arn
FROM json_each(:keys) k CROSS JOIN execution e ON e.tenant = :tenant AND e.execution_arn = k.value ->> 1
WHERE (:agent_name IS NULL OR e.agent_name = :agent_name)
    AND (:statuses IS NULL OR :statuses LIKE '%,' || e.status || ',%');

-- name: read_definition_tags
-- The tags of definitions.
SELECT d.state_machine_arn, d.tags
FROM json_each(:arns) k CROSS JOIN definition_tags d ON d.tenant = :tenant AND d.state_machine_arn = k.value;

-- name: put_execution
-- Write executions as they have become.
INSERT INTO execution (
    tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, correlation_id,
    indexed_at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (tenant, execution_arn) DO UPDATE SET
    state_machine_arn = excluded.state_machine_arn, agent_name = excluded.agent_name,
    execution_name = excluded.execution_name, status = excluded.status, start_at = excluded.start_at,
    stop_at = excluded.stop_at, correlation_id = excluded.correlation_id, indexed_at = excluded.indexed_at;

-- name: put_execution_tag
-- Write the tags of executions.
INSERT INTO execution_tag (tenant, execution_arn, key, value, start_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, execution_arn, key) DO UPDATE SET value = excluded.value, start_at = excluded.start_at;

-- name: prune_execution
-- Remove those of the given executions that were last reported before a moment.
DELETE FROM execution WHERE tenant = :tenant AND execution_arn IN (SELECT value FROM json_each(:arns)) AND indexed_at < :before
RETURNING execution_arn;

-- name: prune_execution_tag
-- Remove what belongs to the given executions.
DELETE FROM execution_tag WHERE tenant = :tenant AND execution_arn IN (SELECT value FROM json_each(:arns));
