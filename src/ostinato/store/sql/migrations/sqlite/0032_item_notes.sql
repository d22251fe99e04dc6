-- The history of an item also says what has moved it nowhere: a step that was skipped since its condition is false, an item that
-- had failed and was rolled back. Such an entry leads from a status to itself, and `how` says what it is.

ALTER TABLE status_history ADD COLUMN how TEXT;
DROP TRIGGER item_moved;
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
DROP TRIGGER item_entered;
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
