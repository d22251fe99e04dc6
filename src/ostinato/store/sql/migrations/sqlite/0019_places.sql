-- A page's place in the feed is one more than that of the last page. With AUTOINCREMENT SQLite writes down the highest
-- place ever given in a table of its own: a page of the file for each commit, or an eighth of what a commit of a single
-- task writes. Instead, when the last page goes, its place stays taken by an empty one of nobody's.
CREATE TABLE page_with_place (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    job_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
);
INSERT INTO page_with_place SELECT position, tenant, job_id, first_seq, last_seq, at, body FROM event_page;
INSERT INTO page_with_place SELECT seq, '', '', 0, 0, 0, x'' FROM sqlite_sequence
WHERE name = 'event_page' AND NOT EXISTS (SELECT 1 FROM event_page WHERE position = seq);
DROP TABLE event_page;
ALTER TABLE page_with_place RENAME TO event_page;
CREATE UNIQUE INDEX event_page_stream ON event_page (tenant, job_id, last_seq);

CREATE TRIGGER event_page_place AFTER DELETE ON event_page
WHEN NOT EXISTS (SELECT 1 FROM event_page WHERE position > OLD.position)
BEGIN
    INSERT OR REPLACE INTO event_page (position, tenant, job_id, first_seq, last_seq, at, body)
    VALUES (OLD.position, '', '', 0, 0, 0, x'');
END;

-- As before: events say for ever what they said, and only how a page is encrypted may change.
CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page
WHEN NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND substr(NEW.body, 1, 1) = x'01')
BEGIN
    SELECT RAISE(ABORT, 'ostinato: events are append-only');
END;
