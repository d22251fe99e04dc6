-- An event says for ever what it said. Only how its data is encrypted may change: sealed bytes open in their own place
-- and under a key of their owner, or not at all, so nobody can put others in.

DROP TRIGGER event_immutable ON event;
CREATE TRIGGER event_immutable BEFORE UPDATE ON event FOR EACH ROW
WHEN (NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id AND NEW.seq = OLD.seq
    AND NEW.type = OLD.type AND NEW.task_id IS NOT DISTINCT FROM OLD.task_id
    AND NEW.attempt IS NOT DISTINCT FROM OLD.attempt AND NEW.at = OLD.at AND NEW.transaction = OLD.transaction
    AND substr(NEW.data, 1, 1) = '\x01'::bytea))
EXECUTE FUNCTION ostinato_refuse('events are append-only');
