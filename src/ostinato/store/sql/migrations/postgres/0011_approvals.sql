-- Approvals: what people are asked, and what they have decided.

ALTER TABLE timer DROP CONSTRAINT timer_kind_check;
ALTER TABLE timer ADD CONSTRAINT timer_kind_check
    CHECK (kind IN ('retry', 'sleep', 'wait', 'delay', 'turn', 'external', 'approval', 'deadline', 'budget'));

-- Who entered a job: some approvals are not theirs to give.
ALTER TABLE job ADD COLUMN submitted_by text COLLATE "C";

-- The inbox, and what became of what was in it. A function may ask several times: the key is the step that asks.
CREATE TABLE approval (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state <> ''),
    document bytea NOT NULL,
    payload bytea,
    asked text COLLATE "C",
    not_submitter boolean NOT NULL,
    submitted_by text COLLATE "C",
    version bigint NOT NULL,
    requested_at bigint NOT NULL,
    due_at bigint,
    escalated_at bigint,
    decided_at bigint,
    PRIMARY KEY (tenant, job_id, task_id, key)
);
CREATE INDEX approval_waiting ON approval (tenant, requested_at, job_id, task_id, key) WHERE state = 'waiting';
CREATE INDEX approval_requested ON approval (tenant, requested_at, job_id, task_id, key) WHERE job_id <> '';
SELECT ostinato_raise_wall();
