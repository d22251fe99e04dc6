-- What attempts have used up.

-- name: read_usage
-- What a job has used up, by attempt; or one task of it.
SELECT task_id, attempt, calls, input_tokens, output_tokens, cost FROM usage
WHERE tenant = :tenant AND job_id = :job_id AND (CAST(:task_id AS TEXT) IS NULL OR task_id = :task_id)
ORDER BY task_id, attempt;

-- name: sum_usage
-- What a job has used up in all.
SELECT sum(calls), sum(input_tokens), sum(output_tokens), sum(cost) FROM usage
WHERE tenant = :tenant AND job_id = :job_id;

-- name: read_budget
-- What a tenant may spend in a day and in a month, if it has said so.
SELECT budget_day, budget_month FROM tenant WHERE tenant = :tenant;

-- name: set_budget
-- What a tenant may spend from now on.
INSERT INTO tenant (tenant, budget_day, budget_month) VALUES (:tenant, :day, :month)
ON CONFLICT (tenant) DO UPDATE SET budget_day = excluded.budget_day, budget_month = excluded.budget_month
RETURNING tenant;

-- name: wake_for_budget
-- Let those who wait for a tenant's budget look again.
UPDATE timer SET due_at = :now WHERE tenant = :tenant AND kind = 'budget' AND due_at IS NOT NULL AND due_at > :now
RETURNING task_id;
