-- The execution index: keys, newest first, between two places. One block for each index to go along, and nothing is checked on the
-- way: what is left to check is checked on the rows, a bounded number at a time. Own executions are found by the blocks of `lists.sql`.
-- Conditions like `agent_name <> ''` are always true: they are those of the index to use.

-- name: find_jobs_by_name_and_state
-- Jobs of a name that went wrong in a certain way. Both ways.
SELECT created_at, job_id FROM job
WHERE tenant = :tenant AND name = :name AND state = :state
    AND (state = 'failed' OR state = 'cancelled' OR state = 'timed_out')
    AND (created_at, job_id) > (:after_at, :after_id) AND (created_at, job_id) < (:before_at, :before_id)
ORDER BY created_at DESC, job_id DESC
LIMIT :most;

-- name: find_executions
-- All that are reported from outside. Both ways.
SELECT start_at, execution_arn FROM execution
WHERE tenant = :tenant AND execution_arn <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_agent
-- Executions of an agent. Both ways.
SELECT start_at, execution_arn FROM execution
WHERE tenant = :tenant AND agent_name = :agent_name AND agent_name <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_status
-- Executions with a status. Both ways.
SELECT start_at, execution_arn FROM execution
WHERE tenant = :tenant AND status = :status AND status <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_agent_and_status
-- Executions of an agent with a status. Both ways.
SELECT start_at, execution_arn FROM execution
WHERE tenant = :tenant AND agent_name = :agent_name AND status = :status AND tenant <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_correlation_id
-- Executions with a correlation id. Both ways.
SELECT start_at, execution_arn FROM execution
WHERE tenant = :tenant AND correlation_id = :correlation_id
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_tag
-- Executions that have a tag of this key. Both ways.
SELECT start_at, execution_arn FROM execution_tag
WHERE tenant = :tenant AND key = :tag_key AND key <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- name: find_executions_by_tag_value
-- Executions that have this tag. Both ways.
SELECT start_at, execution_arn FROM execution_tag
WHERE tenant = :tenant AND key = :tag_key AND value = :tag_value AND execution_arn <> ''
    AND (start_at, execution_arn) > (:after_at, :after_id) AND (start_at, execution_arn) < (:before_at, :before_id)
ORDER BY start_at DESC, execution_arn DESC
LIMIT :most;

-- Counts by status and day (or hour: `span`) of UTC, within a range. They cost time in proportion to what they count.

-- name: count_jobs_by_state
-- Jobs in a state, by day.
SELECT CAST(:state AS TEXT), created_at / :span, count(*) FROM job
WHERE tenant = :tenant AND state = :state AND state <> '' AND created_at >= :from_at AND created_at < :until_at
GROUP BY 2;

-- name: count_jobs_of_users_by_state
-- Jobs in a state but for the engine's own, by day.
SELECT CAST(:state AS TEXT), created_at / :span, count(*) FROM job
WHERE tenant = :tenant AND state = :state AND state <> '' AND created_at >= :from_at AND created_at < :until_at
    AND substr(name, 1, 5) NOT IN ('gate:', 'rule:') AND substr(name, 1, 7) <> 'budget:'
GROUP BY 2;

-- name: count_jobs_by_name
-- Jobs of a name, by state and day.
SELECT state, created_at / :span, count(*) FROM job
WHERE tenant = :tenant AND name = :name AND name <> '' AND created_at >= :from_at AND created_at < :until_at
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
GROUP BY 1, 2;

-- name: count_jobs_by_tag
-- Jobs that have a tag of this key, by state and day.
SELECT j.state, g.created_at / :span, count(*)
FROM job_tag g JOIN job j ON j.tenant = g.tenant AND j.job_id = g.job_id
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.key <> '' AND g.created_at >= :from_at AND g.created_at < :until_at
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || j.state || ',%')
    AND (CAST(:users AS BOOLEAN) IS NULL OR substr(j.name, 1, 5) NOT IN ('gate:', 'rule:') AND substr(j.name, 1, 7) <> 'budget:')
GROUP BY 1, 2;

-- name: count_jobs_by_tag_value
-- Jobs that have this tag, by state and day.
SELECT j.state, g.created_at / :span, count(*)
FROM job_tag g JOIN job j ON j.tenant = g.tenant AND j.job_id = g.job_id
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.value = :tag_value AND g.job_id <> ''
    AND g.created_at >= :from_at AND g.created_at < :until_at
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || j.state || ',%')
    AND (CAST(:users AS BOOLEAN) IS NULL OR substr(j.name, 1, 5) NOT IN ('gate:', 'rule:') AND substr(j.name, 1, 7) <> 'budget:')
GROUP BY 1, 2;

-- name: count_executions_by_status
-- Outside executions with a status, by day.
SELECT CAST(:status AS TEXT), start_at / :span, count(*) FROM execution
WHERE tenant = :tenant AND status = :status AND status <> '' AND start_at >= :from_at AND start_at < :until_at
GROUP BY 2;

-- name: count_executions_by_agent
-- Outside executions of an agent with a status, by day.
SELECT CAST(:status AS TEXT), start_at / :span, count(*) FROM execution
WHERE tenant = :tenant AND agent_name = :agent_name AND status = :status AND tenant <> ''
    AND start_at >= :from_at AND start_at < :until_at
GROUP BY 2;

-- name: count_executions_by_tag
-- Outside executions that have a tag of this key, by status and day.
SELECT e.status, g.start_at / :span, count(*)
FROM execution_tag g JOIN execution e ON e.tenant = g.tenant AND e.execution_arn = g.execution_arn
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.key <> '' AND g.start_at >= :from_at AND g.start_at < :until_at
    AND (CAST(:agent_name AS TEXT) IS NULL OR e.agent_name = :agent_name)
    AND (CAST(:statuses AS TEXT) IS NULL OR CAST(:statuses AS TEXT) LIKE '%,' || e.status || ',%')
GROUP BY 1, 2;

-- name: count_executions_by_tag_value
-- Outside executions that have this tag, by status and day.
SELECT e.status, g.start_at / :span, count(*)
FROM execution_tag g JOIN execution e ON e.tenant = g.tenant AND e.execution_arn = g.execution_arn
WHERE g.tenant = :tenant AND g.key = :tag_key AND g.value = :tag_value AND g.execution_arn <> ''
    AND g.start_at >= :from_at AND g.start_at < :until_at
    AND (CAST(:agent_name AS TEXT) IS NULL OR e.agent_name = :agent_name)
    AND (CAST(:statuses AS TEXT) IS NULL OR CAST(:statuses AS TEXT) LIKE '%,' || e.status || ',%')
GROUP BY 1, 2;

-- Definitions, and what rebuilds the index.

-- name: tag_definition
-- Say what the tags of a definition are.
INSERT INTO definition_tags (tenant, state_machine_arn, tags, tagged_at)
VALUES (:tenant, :state_machine_arn, :tags, :now)
ON CONFLICT (tenant, state_machine_arn) DO UPDATE SET tags = excluded.tags, tagged_at = excluded.tagged_at
RETURNING tagged_at;

-- name: learn_definition
-- The same, unless they are known already.
INSERT INTO definition_tags (tenant, state_machine_arn, tags, tagged_at)
VALUES (:tenant, :state_machine_arn, :tags, :now)
ON CONFLICT (tenant, state_machine_arn) DO NOTHING
RETURNING tagged_at;

-- name: count_outside_events
-- How many events of others are recorded.
SELECT count(*) FROM outside_event WHERE tenant = :tenant;

-- name: count_own_executions
-- How many jobs there are.
SELECT count(*) FROM job WHERE tenant = :tenant AND job_id <> '';

-- name: read_indexed_job
-- What the index shows of a job, and how many events it has seen.
SELECT job_id, name, state, correlation_id, tags, created_at, finished_at, last_seq FROM job
WHERE tenant = :tenant AND job_id = :job_id;

-- name: mend_job
-- Let a job be found by what its events say, if it still is as it was looked at.
UPDATE job SET
    name = :name, state = :state, correlation_id = :correlation_id, tags = :tags, created_at = :created_at,
    finished_at = :finished_at
WHERE tenant = :tenant AND job_id = :job_id AND last_seq = :last_seq
RETURNING job_id;

-- name: read_job_tags
-- The tags by which a job is found.
SELECT key, value, created_at FROM job_tag WHERE tenant = :tenant AND job_id = :job_id ORDER BY key;

-- name: old_executions
-- Outside executions that were last reported before a moment, the first of them. (One that stopped long ago may have been
-- reported just now, and one that never ended was heard of some time.)
SELECT execution_arn FROM execution WHERE tenant = :tenant AND execution_arn <> '' AND indexed_at < :before
ORDER BY indexed_at, execution_arn
LIMIT :most;

-- name: drop_execution_tags
-- Forget the tags of an outside execution, to write them anew.
DELETE FROM execution_tag WHERE tenant = :tenant AND execution_arn = :execution_arn;

-- name: drop_job_tags
-- Forget the tags by which a job is found, to write them anew.
DELETE FROM job_tag WHERE tenant = :tenant AND job_id = :job_id;
