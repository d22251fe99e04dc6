-- The run model: jobs of tasks, what is ready or running, what waits, what happened.
-- Checks are written with OR: SQLite would build a table for each IN, for each row.
-- Every key starts with the tenant. Times are microseconds since the epoch. Payloads are opaque bytes.
-- Indexes on (tenant || '') serve only queries that say so: on an empty table a planner finds all indexes equally good, and
-- would keep such a plan while the table grows.

CREATE TABLE job (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    job_id TEXT NOT NULL CHECK (job_id <> ''),
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state = 'running' OR state = 'completed' OR state = 'timed_out' OR state = 'failed'
        OR state = 'cancelled'),
    priority INTEGER NOT NULL,
    request_id TEXT,
    correlation_id TEXT NOT NULL,
    idempotency_key TEXT,
    request_hash BLOB,
    tags BLOB NOT NULL,
    cascades INTEGER NOT NULL,
    deadline_at INTEGER,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    failure_detected_at INTEGER,
    last_seq INTEGER NOT NULL,
    total INTEGER NOT NULL,
    blocked INTEGER NOT NULL CHECK (blocked >= 0),
    active INTEGER NOT NULL CHECK (active >= 0),
    completed INTEGER NOT NULL CHECK (completed >= 0),
    failed INTEGER NOT NULL CHECK (failed >= 0),
    tolerated INTEGER NOT NULL CHECK (tolerated >= 0),
    skipped INTEGER NOT NULL CHECK (skipped >= 0),
    cancelled INTEGER NOT NULL CHECK (cancelled >= 0),
    PRIMARY KEY (tenant, job_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX job_idempotency ON job (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_created ON job ((tenant || ''), created_at, job_id);
CREATE INDEX job_finished ON job ((tenant || ''), finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE task (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL CHECK (task_id <> ''),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    policy TEXT NOT NULL CHECK (policy = 'block' OR policy = 'skip' OR policy = 'run'),
    optional INTEGER NOT NULL,
    dependencies INTEGER NOT NULL,
    options BLOB,
    input BLOB NOT NULL,
    state TEXT NOT NULL CHECK (
        state = 'completed' OR state = 'processing' OR state = 'pending' OR state = 'blocked'
        OR state = 'waiting' OR state = 'failed' OR state = 'skipped' OR state = 'cancelled'),
    attempt INTEGER NOT NULL,
    attempt_base INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    open_dependencies INTEGER NOT NULL CHECK (open_dependencies >= 0),
    resuming INTEGER NOT NULL,
    skipped_by_dependency INTEGER NOT NULL,
    output BLOB,
    error BLOB,
    started_at INTEGER,
    finished_at INTEGER,
    ready_at INTEGER,
    worker TEXT,
    token TEXT,
    max_attempts INTEGER NOT NULL,
    timeout_at INTEGER,
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;

CREATE TABLE edge (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    up TEXT NOT NULL,
    down TEXT NOT NULL,
    PRIMARY KEY (tenant, job_id, up, down)
) WITHOUT ROWID;
CREATE INDEX edge_down ON edge ((tenant || ''), job_id, down);

-- The queue: one row for each pending task, in the order in which they are to be claimed.
CREATE TABLE ready (
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    rank INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (tenant, queue, name, rank, ready_at, job_id, task_id)
) WITHOUT ROWID;

-- What workers hold: one row for each claim, however many tasks it got. It goes when the last of them is reported.
CREATE TABLE lease (
    tenant TEXT NOT NULL,
    worker TEXT NOT NULL,
    token TEXT NOT NULL,
    tasks BLOB NOT NULL,
    PRIMARY KEY (tenant, worker, token)
) WITHOUT ROWID;

CREATE TABLE timer (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'retry' OR kind = 'sleep' OR kind = 'wait' OR kind = 'deadline'),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;
CREATE INDEX timer_due ON timer (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX timer_wait ON timer (tenant, job_id, name) WHERE kind = 'wait';

CREATE TABLE step (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    key TEXT NOT NULL,
    output BLOB NOT NULL,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, task_id, key)
) WITHOUT ROWID;

CREATE TABLE signal (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    name TEXT NOT NULL,
    signal_id TEXT NOT NULL,
    payload BLOB NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, name, signal_id)
) WITHOUT ROWID;

CREATE TABLE dead_letter (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    name TEXT NOT NULL,
    failed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;
CREATE INDEX dead_letter_failed ON dead_letter ((tenant || ''), failed_at, job_id, task_id);

CREATE TABLE blob (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (tenant, job_id, digest)
);

-- What happened, page by page: the events that one transaction told of one job.
-- `position` is the order of commits: there is one writer at a time.
CREATE TABLE event_page (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE UNIQUE INDEX event_page_stream ON event_page (tenant, job_id, last_seq);

CREATE TABLE worker (
    tenant TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    about BLOB NOT NULL,
    PRIMARY KEY (tenant, worker_id)
) WITHOUT ROWID;

CREATE TABLE function (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    about BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE tenant (
    tenant TEXT NOT NULL PRIMARY KEY CHECK (tenant <> ''),
    retention_seconds INTEGER
) WITHOUT ROWID;

-- Moves that the state machine does not allow are refused here too, whoever writes.
CREATE TRIGGER task_move BEFORE UPDATE OF state ON task
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN (
        NEW.state = 'completed' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'failed'
        OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'pending' THEN (NEW.state = 'processing' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'blocked' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'waiting' THEN (
        NEW.state = 'completed' OR NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'failed'
        OR NEW.state = 'blocked' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'failed' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'blocked' OR NEW.state = 'skipped')
    WHEN 'skipped' THEN (NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'blocked')
    WHEN 'cancelled' THEN (
        NEW.state = 'processing' OR NEW.state = 'pending' OR NEW.state = 'blocked' OR NEW.state = 'skipped')
    ELSE 0 END
BEGIN
    SELECT RAISE(ABORT, 'ostinato: this move of a task is not legal');
END;

CREATE TRIGGER job_move BEFORE UPDATE OF state ON job
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'running' THEN (
        NEW.state = 'completed' OR NEW.state = 'failed' OR NEW.state = 'cancelled' OR NEW.state = 'timed_out')
    WHEN 'failed' THEN (
        NEW.state = 'completed' OR NEW.state = 'running' OR NEW.state = 'cancelled' OR NEW.state = 'timed_out')
    WHEN 'cancelled' THEN (
        NEW.state = 'completed' OR NEW.state = 'running' OR NEW.state = 'failed' OR NEW.state = 'timed_out')
    WHEN 'timed_out' THEN (
        NEW.state = 'completed' OR NEW.state = 'running' OR NEW.state = 'failed' OR NEW.state = 'cancelled')
    ELSE 0 END
BEGIN
    SELECT RAISE(ABORT, 'ostinato: this move of a job is not legal');
END;

-- Events say for ever what they said. Only how a page is encrypted may change: sealed bytes open in their own place and
-- under a key of their owner, or not at all, so nobody can put others in.
CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page
WHEN NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND substr(NEW.body, 1, 1) = x'01')
BEGIN
    SELECT RAISE(ABORT, 'ostinato: events are append-only');
END;
