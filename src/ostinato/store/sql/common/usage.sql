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

-- name: find_budget_questions
-- What people are, or were, asked about a tenant's budget since a day or a month began.
SELECT job_id, state, tolerated, tags FROM job
WHERE tenant = :tenant AND name = :name AND name <> '' AND created_at >= :since
ORDER BY created_at DESC, job_id DESC;

-- name: raise_budget_day
-- Let a tenant spend more in a day, if what it may spend is still what was looked at, and less than that.
UPDATE tenant SET budget_day = :amount WHERE tenant = :tenant AND budget_day = :was AND budget_day < :amount
RETURNING tenant;

-- name: raise_budget_month
-- Let a tenant spend more in a month, if what it may spend is still what was looked at, and less than that.
UPDATE tenant SET budget_month = :amount WHERE tenant = :tenant AND budget_month = :was AND budget_month < :amount
RETURNING tenant;
