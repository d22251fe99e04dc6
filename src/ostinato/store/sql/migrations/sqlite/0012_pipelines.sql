-- Pipelines: items that move through statuses, and the legal moves, which the database itself enforces.

-- What each version of a pipeline has for statuses, and which moves between them are legal. From 0 an item is entered.
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
CREATE TABLE state_transition (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    pipeline TEXT NOT NULL,
    version INTEGER NOT NULL,
    from_code INTEGER NOT NULL,
    to_code INTEGER NOT NULL,
    PRIMARY KEY (tenant, pipeline, version, from_code, to_code)
) WITHOUT ROWID;

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
CREATE UNIQUE INDEX item_job ON item (tenant, job_id) WHERE job_id IS NOT NULL;
CREATE INDEX item_entered ON item (tenant, pipeline, entered_at, item_id);
CREATE INDEX item_status ON item (tenant, pipeline, status, status_at, item_id);
CREATE INDEX item_open ON item (tenant, pipeline, status_at, item_id) WHERE open;
CREATE INDEX item_held ON item (tenant, pipeline, entered_at, item_id) WHERE run = 0;
CREATE INDEX item_retry ON item (tenant, pipeline, retry_at, item_id) WHERE retry_at IS NOT NULL;

-- Every move of every item, in order.
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
    reason TEXT,
    PRIMARY KEY (tenant, item_id, number)
) WITHOUT ROWID;

-- Illegal moves are refused whoever makes them, and legal ones are written down. The engine says in `via` which moves have
-- led to the new status, each from where the one before it led; for anybody else there is one move. (The message is that
-- of a function which is asked for what does not exist: RAISE says what its author knew beforehand, and older programs
-- that read this file could not read a trigger in which it says more.)
CREATE TRIGGER item_moved AFTER UPDATE OF status, version ON item
WHEN OLD.status <> NEW.status OR OLD.version <> NEW.version
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
    WHERE OLD.status <> NEW.status AND NOT EXISTS (
        SELECT 1 FROM state_transition t
        WHERE t.tenant = NEW.tenant AND t.pipeline = NEW.pipeline AND t.version = NEW.version
            AND t.from_code = CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END
            AND t.to_code = m.value ->> 'to');
    INSERT INTO status_history (
        tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason
    )
    SELECT NEW.tenant, NEW.item_id, 1 + m.key + coalesce((
            SELECT max(h.number) FROM status_history h WHERE h.tenant = NEW.tenant AND h.item_id = NEW.item_id), 0),
        CASE m.key WHEN 0 THEN OLD.status ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END,
        m.value ->> 'to', m.value ->> 'at', NEW.version, NEW.run, m.value ->> 'step',
        m.value ->> 'attempt', m.value ->> 'by', m.value ->> 'why'
    FROM json_each(CASE
        WHEN NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', OLD.status, 'to', NEW.status, 'by', 'sql')) END) m
    WHERE OLD.status <> NEW.status;
    INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
    SELECT NEW.tenant, 'items', NEW.pipeline || '/' || c.value, 0, '', CASE c.key WHEN 0 THEN -1 ELSE 1 END, 0
    FROM json_each(json_array(OLD.status, NEW.status)) c
    WHERE OLD.status <> NEW.status
        AND NOT coalesce(NEW.via IS NOT OLD.via AND NEW.via ->> '$[#-1].to' = NEW.status, 0)
    ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = count + excluded.count;
END;
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
        tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason
    )
    SELECT NEW.tenant, NEW.item_id, 1 + m.key,
        CASE m.key WHEN 0 THEN 0 ELSE NEW.via ->> ('$[' || (m.key - 1) || '].to') END,
        m.value ->> 'to', m.value ->> 'at', NEW.version, NEW.run, m.value ->> 'step',
        m.value ->> 'attempt', m.value ->> 'by', m.value ->> 'why'
    FROM json_each(CASE
        WHEN NEW.via ->> '$[#-1].to' = NEW.status THEN NEW.via
        ELSE json_array(json_object('from', 0, 'to', NEW.status, 'by', 'sql')) END) m;
    INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
    SELECT NEW.tenant, 'items', NEW.pipeline || '/' || NEW.status, 0, '', 1, 0
    WHERE NOT coalesce(NEW.via ->> '$[#-1].to' = NEW.status, 0)
    ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER item_stays BEFORE UPDATE OF tenant, item_id, pipeline ON item
WHEN OLD.tenant <> NEW.tenant OR OLD.item_id <> NEW.item_id OR OLD.pipeline <> NEW.pipeline
BEGIN
    SELECT RAISE(ABORT, 'ostinato: an item stays in its pipeline, under its id');
END;
CREATE TRIGGER item_gone AFTER DELETE ON item
BEGIN
    DELETE FROM status_history WHERE tenant = OLD.tenant AND item_id = OLD.item_id;
END;
CREATE TRIGGER status_history_stays BEFORE DELETE ON status_history
WHEN EXISTS (SELECT 1 FROM item i WHERE i.tenant = OLD.tenant AND i.item_id = OLD.item_id)
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the history of an item is append-only');
END;
CREATE TRIGGER status_history_immutable BEFORE UPDATE ON status_history
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the history of an item is append-only');
END;
