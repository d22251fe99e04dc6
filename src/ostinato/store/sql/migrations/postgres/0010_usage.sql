-- Counts that nobody waits for, what attempts use up, and how much may be spent.

-- Each process adds to rows of its own; who reads sums over the writers. Those of processes that are gone are added up
-- under the writer ''.
CREATE TABLE tally (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    topic text COLLATE "C" NOT NULL CHECK (topic <> ''),
    key text COLLATE "C" NOT NULL,
    bucket bigint NOT NULL,
    writer text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (tenant, topic, key, bucket, writer)
);
CREATE INDEX tally_bucket ON tally (tenant, topic, bucket, key) WHERE topic <> '';
CREATE INDEX tally_writer ON tally (tenant, writer) WHERE writer <> '';
ALTER TABLE tally SET (fillfactor = 50);

-- What an attempt has used up. Costs are in millionths of the currency.
CREATE TABLE usage (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost bigint NOT NULL,
    last_id text COLLATE "C",
    PRIMARY KEY (tenant, job_id, task_id, attempt)
);

-- What a job may cost and has cost, and what a tenant may spend in a day and in a month.
ALTER TABLE job ADD COLUMN budget bigint;
ALTER TABLE job ADD COLUMN spent bigint NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN budget_day bigint;
ALTER TABLE tenant ADD COLUMN budget_month bigint;

ALTER TABLE timer DROP CONSTRAINT timer_kind_check;
ALTER TABLE timer ADD CONSTRAINT timer_kind_check
    CHECK (kind IN ('retry', 'sleep', 'wait', 'delay', 'turn', 'external', 'deadline', 'budget'));
CREATE INDEX timer_budget ON timer (tenant, job_id, name) WHERE kind = 'budget';

SELECT ostinato_raise_wall();
