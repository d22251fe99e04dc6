-- Transactions are counted by each server for itself: pages that were restored from the dump of another one may be put before
-- all others, unchanged in everything else.
DROP TRIGGER event_page_immutable ON event_page;
CREATE TRIGGER event_page_immutable BEFORE UPDATE ON event_page FOR EACH ROW
WHEN (NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id
    AND NEW.first_seq = OLD.first_seq AND NEW.last_seq = OLD.last_seq AND NEW.at = OLD.at
    AND (NEW.transaction = OLD.transaction AND substr(NEW.body, 1, 1) = '\x01'::bytea
         OR NEW.transaction = '0'::xid8 AND NEW.body = OLD.body)))
EXECUTE FUNCTION ostinato_refuse('events are append-only');
