-- The run model: jobs of tasks, what is ready or running, what waits, what happened.
-- Every key starts with the tenant. Times are microseconds since the epoch. Payloads are opaque bytes.
-- Indexes on (tenant || '') serve only queries that say so: on an empty table a planner finds all indexes equally good, and
-- would keep such a plan while the table grows.

CREATE TABLE job (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    job_id text COLLATE "C" NOT NULL CHECK (job_id <> ''),
    name text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')),
    priority bigint NOT NULL,
    request_id text COLLATE "C",
    correlation_id text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    request_hash bytea,
    tags bytea NOT NULL,
    cascades boolean NOT NULL,
    deadline_at bigint,
    created_at bigint NOT NULL,
    finished_at bigint,
    failure_detected_at bigint,
    last_seq bigint NOT NULL,
    total bigint NOT NULL,
    blocked bigint NOT NULL CHECK (blocked >= 0),
    active bigint NOT NULL CHECK (active >= 0),
    completed bigint NOT NULL CHECK (completed >= 0),
    failed bigint NOT NULL CHECK (failed >= 0),
    tolerated bigint NOT NULL CHECK (tolerated >= 0),
    skipped bigint NOT NULL CHECK (skipped >= 0),
    cancelled bigint NOT NULL CHECK (cancelled >= 0),
    PRIMARY KEY (tenant, job_id)
);
CREATE UNIQUE INDEX job_idempotency ON job (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_created ON job ((tenant || ''), created_at, job_id);
CREATE INDEX job_finished ON job ((tenant || ''), finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE task (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL CHECK (task_id <> ''),
    position bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    policy text COLLATE "C" NOT NULL CHECK (policy IN ('block', 'skip', 'run')),
    optional boolean NOT NULL,
    dependencies bigint NOT NULL,
    options bytea,
    input bytea NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN
        ('blocked', 'pending', 'processing', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')),
    attempt bigint NOT NULL,
    attempt_base bigint NOT NULL,
    crashes bigint NOT NULL,
    open_dependencies bigint NOT NULL CHECK (open_dependencies >= 0),
    resuming boolean NOT NULL,
    skipped_by_dependency boolean NOT NULL,
    output bytea,
    error bytea,
    started_at bigint,
    finished_at bigint,
    ready_at bigint,
    worker text COLLATE "C",
    token text COLLATE "C",
    max_attempts bigint NOT NULL,
    timeout_at bigint,
    PRIMARY KEY (tenant, job_id, task_id)
);

CREATE TABLE edge (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    up text COLLATE "C" NOT NULL,
    down text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, job_id, up, down)
);
CREATE INDEX edge_down ON edge ((tenant || ''), job_id, down);

-- The queue: one row for each pending task, in the order in which they are to be claimed.
CREATE TABLE ready (
    tenant text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    rank bigint NOT NULL,
    ready_at bigint NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, queue, name, rank, ready_at, job_id, task_id)
);

-- What workers hold: one row for each claim, however many tasks it got. It goes when the last of them is reported.
CREATE TABLE lease (
    tenant text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    tasks bytea NOT NULL,
    PRIMARY KEY (tenant, worker, token)
);

CREATE TABLE timer (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('retry', 'sleep', 'wait', 'deadline')),
    name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    due_at bigint,
    PRIMARY KEY (tenant, job_id, task_id)
);
CREATE INDEX timer_due ON timer (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX timer_wait ON timer (tenant, job_id, name) WHERE kind = 'wait';

CREATE TABLE step (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    output bytea NOT NULL,
    recorded_at bigint NOT NULL,
    PRIMARY KEY (tenant, job_id, task_id, key)
);

CREATE TABLE signal (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    signal_id text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    taken boolean NOT NULL,
    PRIMARY KEY (tenant, job_id, name, signal_id)
);

CREATE TABLE dead_letter (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    failed_at bigint NOT NULL,
    PRIMARY KEY (tenant, job_id, task_id)
);
CREATE INDEX dead_letter_failed ON dead_letter ((tenant || ''), failed_at, job_id, task_id);

CREATE TABLE blob (
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, job_id, digest)
);

-- Numbers are drawn before the commit, so `position` is not the order of commits: the feed goes by `transaction` first, and
-- only as far as no older transaction can still commit.
CREATE TABLE event_page (
    position bigint GENERATED ALWAYS AS IDENTITY,
    tenant text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (tenant, job_id, last_seq)
);
CREATE INDEX event_page_feed ON event_page (transaction, position);

CREATE TABLE worker (
    tenant text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    about bytea NOT NULL,
    PRIMARY KEY (tenant, worker_id)
);

CREATE TABLE function (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    registered_at bigint NOT NULL,
    about bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE tenant (
    tenant text COLLATE "C" NOT NULL PRIMARY KEY CHECK (tenant <> ''),
    retention_seconds bigint
);

-- Live rows change often: leave room in their pages, and clean up soon.
ALTER TABLE task SET (fillfactor = 80);
ALTER TABLE ready SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE timer SET (autovacuum_vacuum_scale_factor = 0.05);

-- Takes a statement back if it did not change as many jobs as it should have: somebody else was faster.
CREATE FUNCTION ostinato_expect(changed bigint, wanted bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF changed <> wanted THEN
        RAISE EXCEPTION 'ostinato: a job was changed by another transaction' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN changed;
END $$;

-- Moves that the state machine does not allow are refused here too, whoever writes.
CREATE FUNCTION ostinato_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ostinato: %', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER task_move BEFORE UPDATE OF state ON task FOR EACH ROW
WHEN (OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN NEW.state IN ('pending', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')
    WHEN 'pending' THEN NEW.state IN ('processing', 'skipped', 'cancelled')
    WHEN 'blocked' THEN NEW.state IN ('pending', 'processing', 'skipped', 'cancelled')
    WHEN 'waiting' THEN NEW.state IN ('blocked', 'pending', 'processing', 'completed', 'failed', 'skipped', 'cancelled')
    WHEN 'failed' THEN NEW.state IN ('blocked', 'pending', 'processing', 'skipped')
    WHEN 'skipped' THEN NEW.state IN ('blocked', 'pending', 'processing')
    WHEN 'cancelled' THEN NEW.state IN ('blocked', 'pending', 'processing', 'skipped')
    ELSE false END)
EXECUTE FUNCTION ostinato_refuse('this move of a task is not legal');

CREATE TRIGGER job_move BEFORE UPDATE OF state ON job FOR EACH ROW
WHEN (OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'running' THEN NEW.state IN ('completed', 'failed', 'cancelled', 'timed_out')
    WHEN 'failed' THEN NEW.state IN ('running', 'completed', 'cancelled', 'timed_out')
    WHEN 'cancelled' THEN NEW.state IN ('running', 'completed', 'failed', 'timed_out')
    WHEN 'timed_out' THEN NEW.state IN ('running', 'completed', 'failed', 'cancelled')
    ELSE false END)
EXECUTE FUNCTION ostinato_refuse('this move of a job is not legal');

-- Events say for ever what they said. Only how a page is encrypted may change: sealed bytes open in their own place and
-- under a key of their owner, or not at all, so nobody can put others in.
CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page FOR EACH ROW
WHEN (NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND NEW.transaction = OLD.transaction AND substr(NEW.body, 1, 1) = '\x01'::bytea))
EXECUTE FUNCTION ostinato_refuse('events are append-only');
