-- Positions of pages without AUTOINCREMENT: it writes to a table of its own with every page, one more page of the file for
-- every commit. A position is one more than the greatest there is; so that none is given twice, the last page leaves a mark
-- when it is deleted: an empty page of nobody.
-- Differs: PostgreSQL draws its positions from a sequence.

CREATE TABLE event_page_new (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);
INSERT INTO event_page_new SELECT position, tenant, job_id, first_seq, last_seq, at, body FROM event_page;
INSERT OR IGNORE INTO event_page_new
SELECT seq, '', '', 0, 0, 0, CAST('[]' AS BLOB) FROM sqlite_sequence WHERE name = 'event_page' AND seq > 0;
DROP TABLE event_page;
ALTER TABLE event_page_new RENAME TO event_page;
CREATE UNIQUE INDEX event_page_stream ON event_page (tenant, job_id, last_seq);

CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page
WHEN NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND substr(NEW.body, 1, 1) = x'01')
BEGIN
    SELECT RAISE(ABORT, 'ostinato: events are append-only');
END;

CREATE TRIGGER event_page_mark AFTER DELETE ON event_page
WHEN OLD.position > COALESCE((SELECT max(position) FROM event_page), 0)
BEGIN
    INSERT OR REPLACE INTO event_page (position, tenant, job_id, first_seq, last_seq, at, body)
    VALUES (OLD.position, '', '', 0, 0, OLD.at, CAST('[]' AS BLOB));
END;
