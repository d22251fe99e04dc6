CREATE TABLE api_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    key_id TEXT NOT NULL CHECK (key_id <> ''),
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL CHECK (length(secret_hash) = 32),
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (tenant, key_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX api_key_by_id ON api_key (key_id);

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

CREATE INDEX approval_requested ON approval (tenant, requested_at, job_id, task_id, key) WHERE job_id <> '';

CREATE INDEX approval_waiting ON approval (tenant, requested_at, job_id, task_id, key) WHERE state = 'waiting';

CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the audit log is append-only');
END;

CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the audit log is append-only');
END;

CREATE TABLE audit_log (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    at INTEGER NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    action TEXT NOT NULL CHECK (action <> ''),
    target TEXT NOT NULL,
    request_id TEXT,
    details BLOB NOT NULL,
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL, refuses INTEGER,
    PRIMARY KEY (tenant, seq)
) WITHOUT ROWID;

CREATE INDEX audit_log_refuses ON audit_log (tenant, refuses) WHERE refuses IS NOT NULL;

CREATE TABLE blob (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (tenant, job_id, digest)
);

CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    at INTEGER NOT NULL,
    faster INTEGER NOT NULL
) STRICT;

CREATE TABLE dead_letter (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    name TEXT NOT NULL,
    failed_at INTEGER NOT NULL, error_type TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, job_id, task_id)
) WITHOUT ROWID;

CREATE INDEX dead_letter_error ON dead_letter (tenant, error_type, failed_at, job_id, task_id) WHERE error_type <> '';

CREATE INDEX dead_letter_failed ON dead_letter (tenant, failed_at, job_id, task_id) WHERE task_id <> '';

CREATE INDEX dead_letter_name ON dead_letter (tenant, name, failed_at, job_id, task_id) WHERE name <> '';

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

CREATE TABLE definition_tags (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    state_machine_arn TEXT NOT NULL CHECK (state_machine_arn <> ''),
    tags BLOB NOT NULL,
    tagged_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, state_machine_arn)
) WITHOUT ROWID;

CREATE TABLE edge (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    up TEXT NOT NULL,
    down TEXT NOT NULL,
    PRIMARY KEY (tenant, job_id, up, down)
) WITHOUT ROWID;

CREATE INDEX edge_down ON edge ((CASE tenant WHEN '' THEN '' ELSE tenant END), job_id, down);

CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page
WHEN NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND substr(NEW.body, 1, 1) = x'01')
BEGIN
    SELECT RAISE(ABORT, 'ostinato: events are append-only');
END;

CREATE TRIGGER event_page_place AFTER DELETE ON event_page
WHEN NOT EXISTS (SELECT 1 FROM event_page WHERE position > OLD.position)
BEGIN
    INSERT OR REPLACE INTO event_page (position, tenant, job_id, first_seq, last_seq, at, body)
    VALUES (OLD.position, '', '', 0, 0, 0, x'');
END;

CREATE TABLE "event_page" (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX event_page_feed ON event_page (tenant);

CREATE UNIQUE INDEX event_page_stream ON event_page (tenant, job_id, last_seq);

CREATE TABLE execution (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    execution_arn TEXT NOT NULL CHECK (execution_arn <> ''),
    state_machine_arn TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    execution_name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED')),
    start_at INTEGER NOT NULL,
    stop_at INTEGER,
    correlation_id TEXT,
    indexed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, execution_arn)
) WITHOUT ROWID;

CREATE INDEX execution_agent ON execution (tenant, agent_name, start_at, execution_arn) WHERE agent_name <> '';

CREATE INDEX execution_agent_status ON execution (tenant, agent_name, status, start_at, execution_arn)
WHERE tenant <> '';

CREATE INDEX execution_correlation ON execution (tenant, correlation_id, start_at, execution_arn)
WHERE correlation_id IS NOT NULL;

CREATE INDEX execution_indexed ON execution (tenant, indexed_at, execution_arn) WHERE execution_arn <> '';

CREATE INDEX execution_start ON execution (tenant, start_at, execution_arn) WHERE execution_arn <> '';

CREATE INDEX execution_status ON execution (tenant, status, start_at, execution_arn) WHERE status <> '';

CREATE TABLE execution_tag (
    tenant TEXT NOT NULL,
    execution_arn TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    start_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, execution_arn, key)
) WITHOUT ROWID;

CREATE INDEX execution_tag_key ON execution_tag (tenant, key, start_at, execution_arn) WHERE key <> '';

CREATE INDEX execution_tag_value ON execution_tag (tenant, key, value, start_at, execution_arn) WHERE execution_arn <> '';

CREATE TABLE feed_secret (secret BLOB NOT NULL);

CREATE TABLE function (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    about BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE gate_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    gate TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (tenant, gate, key)
) WITHOUT ROWID;

CREATE UNIQUE INDEX gate_key_job ON gate_key (tenant, job_id);

CREATE TRIGGER item_entered AFTER INSERT ON item
BEGIN
    SELECT json_extract('{}', 'ostinato: item ' || NEW.item_id || ' cannot go from ' ||
        (CASE m.key WHEN 0 THEN 0 ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END) || ' to '
        || (m.value ->> 'to') || ': pipeline ' || NEW.pipeline || ' does not allow this move')
    FROM json_each(CASE
        WHEN NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', 0, 'to', NEW.status)) END) m
    WHERE NOT EXISTS (
        SELECT 1 FROM state_transition t
        WHERE t.tenant = NEW.tenant AND t.pipeline = NEW.pipeline AND t.version = NEW.version
            AND t.from_code = CASE m.key WHEN 0 THEN 0 ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END
            AND t.to_code = m.value ->> 'to');
    INSERT INTO status_history (
        tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason, how
    )
    SELECT NEW.tenant, NEW.item_id, 1 + m.key,
        CASE m.key WHEN 0 THEN 0 ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END,
        m.value ->> 'to', m.value ->> 'at', NEW.version, NEW.run, m.value ->> 'step',
        m.value ->> 'attempt', m.value ->> 'by', m.value ->> 'why', m.value ->> 'how'
    FROM json_each(CASE
        WHEN NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', 0, 'to', NEW.status, 'by', 'sql', 'at',
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))) END) m;
    INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
    SELECT NEW.tenant, 'items', NEW.pipeline || '/' || NEW.status, 0, '', 1, 0
    WHERE NOT coalesce(NEW.via ->> '$[#-1].to' = NEW.status, 0)
    ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER item_gone AFTER DELETE ON item
BEGIN
    DELETE FROM status_history WHERE tenant = OLD.tenant AND item_id = OLD.item_id;
END;

CREATE TRIGGER item_moved AFTER UPDATE OF status, version, via ON item
WHEN OLD.status <> NEW.status OR OLD.version <> NEW.version OR NEW.via IS NOT OLD.via
BEGIN
    SELECT json_extract('{}', 'ostinato: item ' || NEW.item_id || ' cannot go from ' || OLD.status || ' to '
        || NEW.status || ': version ' || NEW.version || ' of pipeline ' || NEW.pipeline || ' has no such status')
    WHERE NOT EXISTS (
        SELECT 1 FROM pipeline_status s
        WHERE s.tenant = NEW.tenant AND s.pipeline = NEW.pipeline AND s.version = NEW.version AND s.code = NEW.status);
    SELECT json_extract('{}', 'ostinato: item ' || NEW.item_id || ' cannot go from ' ||
        (CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END) || ' to '
        || (m.value ->> 'to') || ': pipeline ' || NEW.pipeline || ' does not allow this move')
    FROM json_each(CASE
        WHEN NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', OLD.status, 'to', NEW.status)) END) m
    WHERE m.value ->> 'to' <>
            CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END
        AND NOT EXISTS (
        SELECT 1 FROM state_transition t
        WHERE t.tenant = NEW.tenant AND t.pipeline = NEW.pipeline AND t.version = NEW.version
            AND t.from_code = CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END
            AND t.to_code = m.value ->> 'to');
    INSERT INTO status_history (
        tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason, how
    )
    SELECT NEW.tenant, NEW.item_id, 1 + m.key + coalesce((
            SELECT max(h.number) FROM status_history h WHERE h.tenant = NEW.tenant AND h.item_id = NEW.item_id), 0),
        CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END,
        m.value ->> 'to', m.value ->> 'at', NEW.version, NEW.run, m.value ->> 'step',
        m.value ->> 'attempt', m.value ->> 'by', m.value ->> 'why', m.value ->> 'how'
    FROM json_each(CASE
        WHEN NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', OLD.status, 'to', NEW.status, 'by', 'sql', 'at',
            CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))) END) m
    WHERE OLD.status <> NEW.status OR (NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status);
    INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
    SELECT NEW.tenant, 'items', NEW.pipeline || '/' || c.value, 0, '', CASE c.key WHEN 0 THEN -1 ELSE 1 END, 0
    FROM json_each(json_array(OLD.status, NEW.status)) c
    WHERE OLD.status <> NEW.status
        AND NOT coalesce(NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status, 0)
    ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER item_once BEFORE INSERT ON item
WHEN EXISTS (SELECT 1 FROM item i WHERE i.tenant = NEW.tenant AND i.item_id = NEW.item_id)
BEGIN
    SELECT json_extract('{}', 'ostinato: item ' || NEW.item_id || ' cannot go from ' || i.status || ' to '
        || NEW.status || ': it is there already, and is moved by UPDATE')
    FROM item i WHERE i.tenant = NEW.tenant AND i.item_id = NEW.item_id;
END;

CREATE TRIGGER item_stays BEFORE UPDATE OF tenant, item_id, pipeline ON item
WHEN OLD.tenant <> NEW.tenant OR OLD.item_id <> NEW.item_id OR OLD.pipeline <> NEW.pipeline
BEGIN
    SELECT RAISE(ABORT, 'ostinato: an item stays in its pipeline, under its id');
END;

CREATE TABLE item (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    item_id TEXT NOT NULL CHECK (item_id <> ''),
    pipeline TEXT NOT NULL,
    version INTEGER NOT NULL,
    status INTEGER NOT NULL,
    open INTEGER NOT NULL,
    job_id TEXT,
    run INTEGER NOT NULL CHECK (run >= 0),
    steps BLOB NOT NULL,
    step TEXT,
    attempt INTEGER NOT NULL,
    retry_at INTEGER,
    failures INTEGER NOT NULL,
    error_type TEXT,
    entered_at INTEGER NOT NULL,
    status_at INTEGER NOT NULL,
    submitted_by TEXT,
    reviewed_by TEXT,
    reviewed_at INTEGER,
    digest BLOB NOT NULL,
    via TEXT,
    payload BLOB NOT NULL,
    PRIMARY KEY (tenant, item_id)
) WITHOUT ROWID;

CREATE INDEX item_entered ON item (tenant, pipeline, entered_at, item_id);

CREATE INDEX item_held ON item (tenant, pipeline, entered_at, item_id) WHERE run = 0 AND open;

CREATE UNIQUE INDEX item_job ON item (tenant, job_id) WHERE job_id IS NOT NULL;

CREATE INDEX item_retry ON item (tenant, pipeline, retry_at, item_id) WHERE retry_at IS NOT NULL;

CREATE INDEX item_status ON item (tenant, pipeline, status, status_at, item_id);

CREATE INDEX item_stuck ON item (tenant, pipeline, status_at, item_id, status) WHERE open AND run > 0;

CREATE INDEX item_unrun ON item (tenant, status_at, item_id) WHERE run = 0 AND NOT open;

CREATE TRIGGER job_move AFTER UPDATE OF state ON job
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
    SELECT RAISE(ROLLBACK, 'ostinato: this move of a job is not legal');
END;

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
    cancelled INTEGER NOT NULL CHECK (cancelled >= 0), trace_parent TEXT, max_parallel INTEGER, turns INTEGER NOT NULL DEFAULT 0, budget INTEGER, spent INTEGER NOT NULL DEFAULT 0, submitted_by TEXT, keep_seconds INTEGER, processing INTEGER NOT NULL DEFAULT 0, waiting INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, job_id)
) WITHOUT ROWID;

CREATE INDEX job_correlation ON job (tenant, correlation_id, created_at, job_id)
WHERE correlation_id <> job_id;

CREATE INDEX job_created ON job (tenant, created_at, job_id) WHERE job_id <> '';

CREATE UNIQUE INDEX job_idempotency ON job (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX job_keep ON job (tenant, keep_seconds, finished_at, job_id) WHERE keep_seconds IS NOT NULL;

CREATE INDEX job_name ON job (tenant, name, created_at, job_id) WHERE name <> '';

CREATE INDEX job_name_state ON job (tenant, name, state, created_at, job_id)
WHERE state = 'failed' OR state = 'cancelled' OR state = 'timed_out';

CREATE INDEX job_request ON job (tenant, request_id, created_at, job_id) WHERE request_id IS NOT NULL;

CREATE INDEX job_state ON job (tenant, state, created_at, job_id) WHERE state <> '';

CREATE TABLE job_tag (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, key)
) WITHOUT ROWID;

CREATE INDEX job_tag_key ON job_tag (tenant, key, created_at, job_id) WHERE key <> '';

CREATE INDEX job_tag_value ON job_tag (tenant, key, value, created_at, job_id) WHERE job_id <> '';

CREATE TABLE lease (
    tenant TEXT NOT NULL,
    worker TEXT NOT NULL,
    token TEXT NOT NULL,
    tasks BLOB NOT NULL,
    PRIMARY KEY (tenant, worker, token)
) WITHOUT ROWID;

CREATE TABLE outside_event (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
) WITHOUT ROWID;

CREATE INDEX outside_event_received ON outside_event (tenant, received_at, source, event_id);

CREATE TRIGGER pipeline_status_immutable BEFORE UPDATE ON pipeline_status
BEGIN
    SELECT RAISE(ABORT, 'ostinato: a version of a pipeline does not change');
END;

CREATE TRIGGER pipeline_status_stays BEFORE DELETE ON pipeline_status
BEGIN
    SELECT RAISE(ABORT, 'ostinato: a version of a pipeline does not change');
END;

CREATE TABLE pipeline_status (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    pipeline TEXT NOT NULL,
    version INTEGER NOT NULL,
    code INTEGER NOT NULL CHECK (code > 0),
    name TEXT NOT NULL,
    phase TEXT,
    position INTEGER NOT NULL,
    PRIMARY KEY (tenant, pipeline, version, code)
) WITHOUT ROWID;

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

CREATE INDEX ready_system ON ready (tenant) WHERE queue = 'ostinato.system';

CREATE TABLE removed_event (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
) WITHOUT ROWID;

CREATE INDEX removed_event_at ON removed_event (tenant, removed_at, source, event_id) WHERE event_id <> '';

CREATE TABLE removed_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    idempotency_key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    request_hash BLOB,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
) WITHOUT ROWID;

CREATE INDEX removed_key_at ON removed_key (tenant, removed_at, idempotency_key) WHERE idempotency_key <> '';

CREATE TABLE result (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    result_id TEXT NOT NULL CHECK (result_id <> ''),
    job_id TEXT NOT NULL CHECK (job_id <> ''),
    domain TEXT NOT NULL CHECK (domain <> ''),
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    document BLOB NOT NULL,
    text BLOB NOT NULL
);

CREATE INDEX result_created ON result (tenant, created_at, number) WHERE number > 0;

CREATE INDEX result_domain ON result (tenant, domain, created_at, number) WHERE domain <> '';

CREATE UNIQUE INDEX result_job ON result (tenant, job_id);

CREATE UNIQUE INDEX result_name ON result (tenant, result_id);

CREATE TABLE result_digest (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    number INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (tenant, number)
) WITHOUT ROWID;

CREATE TABLE result_field (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, number, key)
) WITHOUT ROWID;

CREATE INDEX result_field_value ON result_field (tenant, key, value, created_at, number);

CREATE TABLE result_vector (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    domain TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    model TEXT NOT NULL,
    embedding BLOB NOT NULL
);

CREATE INDEX result_vector_model ON result_vector (tenant, model, number);

CREATE VIRTUAL TABLE result_words USING fts5(tenant, words, content='', contentless_delete=1, tokenize='ascii');

CREATE TABLE 'result_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'result_words_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'result_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

CREATE TABLE 'result_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE signal (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    name TEXT NOT NULL,
    signal_id TEXT NOT NULL,
    payload BLOB NOT NULL,
    taken INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, job_id, name, signal_id)
) WITHOUT ROWID;

CREATE INDEX signal_untaken ON signal (tenant, job_id, name, seq, signal_id) WHERE NOT taken;

CREATE TABLE sqlite_sequence(name,seq);

CREATE TRIGGER state_transition_immutable BEFORE UPDATE ON state_transition
BEGIN
    SELECT RAISE(ABORT, 'ostinato: a version of a pipeline does not change');
END;

CREATE TRIGGER state_transition_stays BEFORE DELETE ON state_transition
BEGIN
    SELECT RAISE(ABORT, 'ostinato: a version of a pipeline does not change');
END;

CREATE TABLE state_transition (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    pipeline TEXT NOT NULL,
    version INTEGER NOT NULL,
    from_code INTEGER NOT NULL,
    to_code INTEGER NOT NULL,
    PRIMARY KEY (tenant, pipeline, version, from_code, to_code)
) WITHOUT ROWID;

CREATE TRIGGER status_history_immutable BEFORE UPDATE ON status_history
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the history of an item is append-only');
END;

CREATE TRIGGER status_history_once BEFORE INSERT ON status_history
WHEN EXISTS (
    SELECT 1 FROM status_history h
    WHERE h.tenant = NEW.tenant AND h.item_id = NEW.item_id AND h.number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the history of an item is append-only');
END;

CREATE TRIGGER status_history_stays BEFORE DELETE ON status_history
WHEN EXISTS (SELECT 1 FROM item i WHERE i.tenant = OLD.tenant AND i.item_id = OLD.item_id)
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the history of an item is append-only');
END;

CREATE TABLE status_history (
    tenant TEXT NOT NULL,
    item_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    from_code INTEGER NOT NULL,
    to_code INTEGER NOT NULL,
    at INTEGER,
    version INTEGER NOT NULL,
    run INTEGER NOT NULL,
    step TEXT,
    attempt INTEGER,
    moved_by TEXT,
    reason TEXT, how TEXT,
    PRIMARY KEY (tenant, item_id, number)
) WITHOUT ROWID;

CREATE TABLE step (
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    key TEXT NOT NULL,
    output BLOB NOT NULL,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, task_id, key)
) WITHOUT ROWID;

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

CREATE TRIGGER task_move AFTER UPDATE OF state ON task
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN (
        NEW.state = 'completed' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'failed'
        OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'pending' THEN (
        NEW.state = 'processing' OR NEW.state = 'blocked' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
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
    SELECT RAISE(ROLLBACK, 'ostinato: this move of a task is not legal');
END;

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

CREATE TABLE tenant (
    tenant TEXT NOT NULL PRIMARY KEY CHECK (tenant <> ''),
    retention_seconds INTEGER
, budget_day INTEGER, budget_month INTEGER, key_seconds INTEGER) WITHOUT ROWID;

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

CREATE INDEX timer_budget ON timer (tenant, job_id, name) WHERE kind = 'budget';

CREATE INDEX timer_due ON timer (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX timer_turn ON timer (tenant, job_id, name) WHERE kind = 'turn';

CREATE INDEX timer_wait ON timer (tenant, job_id, name) WHERE kind = 'wait';

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

CREATE TABLE worker (
    tenant TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    about BLOB NOT NULL, machine TEXT,
    PRIMARY KEY (tenant, worker_id)
) WITHOUT ROWID;

CREATE INDEX worker_machine ON worker (machine);
