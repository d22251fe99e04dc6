-- Gates and rules: what is defined, what was reported from outside, and which job stands for a gate and a key.

-- A task that is ready may wait for its time, or for somebody outside.
DROP TRIGGER task_move ON task;
CREATE TRIGGER task_move BEFORE UPDATE OF state ON task FOR EACH ROW
WHEN (OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN NEW.state IN ('pending', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')
    WHEN 'pending' THEN NEW.state IN ('processing', 'skipped', 'cancelled')
    WHEN 'blocked' THEN NEW.state IN ('pending', 'processing', 'waiting', 'skipped', 'cancelled')
    WHEN 'waiting' THEN NEW.state IN ('blocked', 'pending', 'processing', 'completed', 'failed', 'skipped', 'cancelled')
    WHEN 'failed' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
    WHEN 'skipped' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting')
    WHEN 'cancelled' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
    ELSE false END)
EXECUTE FUNCTION ostinato_refuse('this move of a task is not legal');

ALTER TABLE timer DROP CONSTRAINT timer_kind_check;
ALTER TABLE timer ADD CONSTRAINT timer_kind_check
    CHECK (kind IN ('retry', 'sleep', 'wait', 'delay', 'turn', 'external', 'deadline'));

-- How many tasks of a job may run at the same time, and how many may now.
ALTER TABLE job ADD COLUMN max_parallel bigint;
ALTER TABLE job ADD COLUMN turns bigint NOT NULL DEFAULT 0;
CREATE INDEX timer_turn ON timer (tenant, job_id, name) WHERE kind = 'turn';

-- Who has work for the engine itself.
CREATE INDEX ready_system ON ready (tenant) WHERE queue = 'ostinato.system';

-- What a tenant has described, each version of it. The newest one counts; without a document, it was taken away.
CREATE TABLE definition (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    kind text COLLATE "C" NOT NULL CHECK (kind <> ''),
    name text COLLATE "C" NOT NULL CHECK (name <> ''),
    version bigint NOT NULL CHECK (version >= 1),
    document bytea,
    created_at bigint NOT NULL,
    created_by text COLLATE "C",
    PRIMARY KEY (tenant, kind, name, version)
);
CREATE INDEX definition_created ON definition (tenant, created_at);

-- Events of others, each once.
CREATE TABLE outside_event (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    source text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    received_at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
);
CREATE INDEX outside_event_received ON outside_event (tenant, received_at, source, event_id);

-- The job in which the members of a gate report for a key.
CREATE TABLE gate_key (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    gate text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, gate, key)
);
CREATE UNIQUE INDEX gate_key_job ON gate_key (tenant, job_id);

