-- Gates and rules: what is defined, what was reported from outside, and which job stands for a gate and a key.

-- A task that is ready may wait for its time, or for somebody outside.
DROP TRIGGER task_move;
CREATE TRIGGER task_move BEFORE UPDATE OF state ON task
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN (
        NEW.state = 'completed' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'failed'
        OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'pending' THEN (NEW.state = 'processing' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'blocked' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'skipped'
        OR NEW.state = 'cancelled')
    WHEN 'waiting' THEN (
        NEW.state = 'completed' OR NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'failed'
        OR NEW.state = 'blocked' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'failed' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'blocked'
        OR NEW.state = 'skipped')
    WHEN 'skipped' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'blocked')
    WHEN 'cancelled' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'blocked'
        OR NEW.state = 'skipped')
    ELSE 0 END
BEGIN
    SELECT RAISE(ABORT, 'ostinato: this move of a task is not legal');
END;

-- (A check cannot be changed in place.)
ALTER TABLE timer RENAME TO timer_before;
DROP INDEX timer_due;
DROP INDEX timer_wait;
CREATE TABLE timer (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind = 'retry' OR kind = 'sleep' OR kind = 'wait' OR kind = 'delay' OR kind = 'turn' OR kind = 'external'
        OR kind = 'deadline'),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;
INSERT INTO timer SELECT tenant, job_id, task_id, kind, name, key, due_at FROM timer_before;
DROP TABLE timer_before;
CREATE INDEX timer_due ON timer (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX timer_wait ON timer (tenant, job_id, name) WHERE kind = 'wait';

-- How many tasks of a job may run at the same time, and how many may now.
ALTER TABLE job ADD COLUMN max_parallel INTEGER;
ALTER TABLE job ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX timer_turn ON timer (tenant, job_id, name) WHERE kind = 'turn';

-- Who has work for the engine itself.
CREATE INDEX ready_system ON ready (tenant) WHERE queue = 'ostinato.system';

-- What a tenant has described, each version of it. The newest one counts; without a document, it was taken away.
CREATE TABLE definition (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    kind TEXT NOT NULL CHECK (kind <> ''),
    name TEXT NOT NULL CHECK (name <> ''),
    version INTEGER NOT NULL CHECK (version >= 1),
    document BLOB,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    PRIMARY KEY (tenant, kind, name, version)
) WITHOUT ROWID;
CREATE INDEX definition_created ON definition (tenant, created_at);

-- Events of others, each once.
CREATE TABLE outside_event (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
) WITHOUT ROWID;
CREATE INDEX outside_event_received ON outside_event (tenant, received_at, source, event_id);

-- The job in which the members of a gate report for a key.
CREATE TABLE gate_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    gate TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (tenant, gate, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX gate_key_job ON gate_key (tenant, job_id);
