-- Approvals: what people are asked, and what they have decided.

-- (A check cannot be changed in place.)
ALTER TABLE timer RENAME TO timer_before;
DROP INDEX timer_due;
DROP INDEX timer_wait;
DROP INDEX timer_turn;
DROP INDEX timer_budget;
CREATE TABLE timer (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind = 'retry' OR kind = 'sleep' OR kind = 'wait' OR kind = 'delay' OR kind = 'turn' OR kind = 'external'
        OR kind = 'approval' OR kind = 'deadline' OR kind = 'budget'),
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

-- Who entered a job: some approvals are not theirs to give.
ALTER TABLE job ADD COLUMN submitted_by TEXT;

-- The inbox, and what became of what was in it. A function may ask several times: the key is the step that asks.
CREATE TABLE approval (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state <> ''),
    document BLOB NOT NULL,
    payload BLOB,
    asked TEXT,
    not_submitter INTEGER NOT NULL,
    submitted_by TEXT,
    version INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    due_at INTEGER,
    escalated_at INTEGER,
    decided_at INTEGER,
    PRIMARY KEY (tenant, job_id, task_id, key)
) WITHOUT ROWID;
CREATE INDEX approval_waiting ON approval (tenant, requested_at, job_id, task_id, key) WHERE state = 'waiting';
CREATE INDEX approval_requested ON approval (tenant, requested_at, job_id, task_id, key) WHERE job_id <> '';
