-- Executions by key, and the writes of the index.
-- Differs: PostgreSQL takes a set as arrays, and lets two transactions merge into the same row unless one waits for the other.

-- name: lock_executions
-- Let only one transaction at a time merge what is reported of the executions in these stripes.
SELECT count(pg_advisory_xact_lock(1869771883, s.stripe))
FROM (SELECT stripe FROM unnest(:stripes::int4[]) AS u (stripe) ORDER BY stripe OFFSET 0) s;

-- name: load_own_executions
-- What the index shows of jobs, by id, with the last event of those that run.
SELECT
    j.job_id, j.name, j.state, j.correlation_id, j.tags, j.created_at, j.finished_at,
    CASE WHEN j.state = 'running' THEN (
        SELECT p.at FROM event_page p WHERE p.tenant = :tenant AND p.job_id = j.job_id ORDER BY p.last_seq DESC LIMIT 1
    ) END AS changed_at
FROM unnest(:job_ids::text[]) AS k (job_id)
CROSS JOIN LATERAL (SELECT * FROM job x WHERE x.tenant = :tenant AND x.job_id = k.job_id OFFSET 0) j;

-- name: load_executions
-- Outside executions by ARN.
SELECT
    e.execution_arn, e.state_machine_arn, e.agent_name, e.execution_name, e.status, e.start_at, e.stop_at,
    e.correlation_id, e.indexed_at
FROM unnest(:arns::text[]) AS k (arn)
CROSS JOIN LATERAL (SELECT * FROM execution x WHERE x.tenant = :tenant AND x.execution_arn = k.arn OFFSET 0) e;

-- name: load_execution_tags
-- The tags of outside executions.
SELECT g.execution_arn, g.key, g.value
FROM unnest(:arns::text[]) AS k (arn)
CROSS JOIN LATERAL (SELECT * FROM execution_tag x WHERE x.tenant = :tenant AND x.execution_arn = k.arn OFFSET 0) g
ORDER BY g.execution_arn, g.key;

-- name: tagged_jobs
-- Those of the given jobs that have a tag of this key. Along the index of the tag: what is near in time is near there.
SELECT g.job_id
FROM unnest(:keys.0::int8[], :keys.1::text[]) AS k (at, id)
CROSS JOIN LATERAL (
    SELECT job_id FROM job_tag x
    WHERE x.tenant = :tenant AND x.key = :tag_key AND x.key <> '' AND x.created_at = k.at AND x.job_id = k.id OFFSET 0
) g;

-- name: tagged_jobs_value
-- Those of the given jobs that have this tag.
SELECT g.job_id
FROM unnest(:keys.0::int8[], :keys.1::text[]) AS k (at, id)
CROSS JOIN LATERAL (
    SELECT job_id FROM job_tag x
    WHERE x.tenant = :tenant AND x.key = :tag_key AND x.value = :tag_value AND x.job_id <> ''
        AND x.created_at = k.at AND x.job_id = k.id
    OFFSET 0
) g;

-- name: tagged_executions
-- Those of the given outside executions that have a tag of this key.
SELECT g.execution_arn
FROM unnest(:keys.0::int8[], :keys.1::text[]) AS k (at, id)
CROSS JOIN LATERAL (
    SELECT execution_arn FROM execution_tag x
    WHERE x.tenant = :tenant AND x.key = :tag_key AND x.key <> '' AND x.start_at = k.at AND x.execution_arn = k.id OFFSET 0
) g;

-- name: tagged_executions_value
-- Those of the given outside executions that have this tag.
SELECT g.execution_arn
FROM unnest(:keys.0::int8[], :keys.1::text[]) AS k (at, id)
CROSS JOIN LATERAL (
    SELECT execution_arn FROM execution_tag x
    WHERE x.tenant = :tenant AND x.key = :tag_key AND x.value = :tag_value AND x.execution_arn <> ''
        AND x.start_at = k.at AND x.execution_arn = k.id
    OFFSET 0
) g;

-- name: narrowed_jobs
-- Those of the given jobs that have an agent and one of some statuses, and perhaps are not the engine's own.
SELECT e.job_id
FROM unnest(:keys.1::text[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT job_id, name, state FROM job x WHERE x.tenant = :tenant AND x.job_id = k.id OFFSET 0
) e
WHERE (CAST(:agent_name AS TEXT) IS NULL OR e.name = :agent_name)
    AND (CAST(:statuses AS TEXT) IS NULL OR CAST(:statuses AS TEXT) LIKE '%,' || e.state || ',%')
    AND (CAST(:users AS BOOLEAN) IS NULL OR substr(e.name, 1, 5) NOT IN ('gate:', 'rule:') AND substr(e.name, 1, 7) <> 'budget:');

-- name: narrowed_executions
-- Those of the given outside executions that have an agent and one of some statuses.
SELECT e.execution_arn
FROM unnest(:keys.1::text[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT execution_arn, agent_name, status FROM execution x WHERE x.tenant = :tenant AND x.execution_arn = k.id OFFSET 0
) e
WHERE (CAST(:agent_name AS TEXT) IS NULL OR e.agent_name = :agent_name)
    AND (CAST(:statuses AS TEXT) IS NULL OR CAST(:statuses AS TEXT) LIKE '%,' || e.status || ',%');

-- name: read_definition_tags
-- The tags of definitions.
SELECT d.state_machine_arn, d.tags
FROM unnest(:arns::text[]) AS k (arn)
CROSS JOIN LATERAL (SELECT * FROM definition_tags x WHERE x.tenant = :tenant AND x.state_machine_arn = k.arn OFFSET 0) d;

-- name: put_execution
-- Write executions as they have become.
INSERT INTO execution (
    tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, correlation_id,
    indexed_at
)
SELECT :tenant, r.* FROM unnest(
    :rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::text[], :rows.5::text[], :rows.6::int8[],
    :rows.7::int8[], :rows.8::text[], :rows.9::int8[]
) AS r
ON CONFLICT (tenant, execution_arn) DO UPDATE SET
    state_machine_arn = excluded.state_machine_arn, agent_name = excluded.agent_name,
    execution_name = excluded.execution_name, status = excluded.status, start_at = excluded.start_at,
    stop_at = excluded.stop_at, correlation_id = excluded.correlation_id, indexed_at = excluded.indexed_at;

-- name: put_execution_tag
-- Write the tags of executions.
INSERT INTO execution_tag (tenant, execution_arn, key, value, start_at)
SELECT :tenant, r.* FROM unnest(:rows.1::text[], :rows.2::text[], :rows.3::text[], :rows.4::int8[]) AS r
ON CONFLICT (tenant, execution_arn, key) DO UPDATE SET value = excluded.value, start_at = excluded.start_at;

-- name: prune_execution
-- Remove those of the given executions that were last reported before a moment.
DELETE FROM execution WHERE tenant = :tenant AND execution_arn = ANY(:arns::text[]) AND indexed_at < :before
RETURNING execution_arn;

-- name: prune_execution_tag
-- Remove what belongs to the given executions.
DELETE FROM execution_tag WHERE tenant = :tenant AND execution_arn = ANY(:arns::text[]);
