-- Counts that nobody waits for, what attempts use up, and how much may be spent.

-- Each process adds to rows of its own; who reads sums over the writers. Those of processes that are gone are added up
-- under the writer ''.
CREATE TABLE tally (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    topic TEXT NOT NULL CHECK (topic <> ''),
    key TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    writer TEXT NOT NULL,
    count INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (tenant, topic, key, bucket, writer)
) WITHOUT ROWID;
CREATE INDEX tally_bucket ON tally (tenant, topic, bucket, key) WHERE topic <> '';
CREATE INDEX tally_writer ON tally (tenant, writer) WHERE writer <> '';

-- What an attempt has used up. Costs are in millionths of the currency.
CREATE TABLE usage (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    last_id TEXT,
    PRIMARY KEY (tenant, job_id, task_id, attempt)
) WITHOUT ROWID;

-- What a job may cost and has cost, and what a tenant may spend in a day and in a month.
ALTER TABLE job ADD COLUMN budget INTEGER;
ALTER TABLE job ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN budget_day INTEGER;
ALTER TABLE tenant ADD COLUMN budget_month INTEGER;

-- (A check cannot be changed in place.)
ALTER TABLE timer RENAME TO timer_before;
DROP INDEX timer_due;
DROP INDEX timer_wait;
DROP INDEX timer_turn;
CREATE TABLE timer (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind = 'retry' OR kind = 'sleep' OR kind = 'wait' OR kind = 'delay' OR kind = 'turn' OR kind = 'external'
        OR kind = 'deadline' OR kind = 'budget'),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;
INSERT INTO timer SELECT tenant, job_id, task_id, kind, name, key, due_at FROM timer_before;
DROP TABLE timer_before;
CREATE INDEX timer_due ON timer (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX timer_wait ON timer (tenant, job_id, name) WHERE kind = 'wait';
CREATE INDEX timer_turn ON timer (tenant, job_id, name) WHERE kind = 'turn';
CREATE INDEX timer_budget ON timer (tenant, job_id, name) WHERE kind = 'budget';
