-- An event says for ever what it said. Only how its data is encrypted may change: sealed bytes open in their own place
-- and under a key of their owner, or not at all, so nobody can put others in.

DROP TRIGGER event_immutable;
CREATE TRIGGER event_immutable BEFORE UPDATE ON event
WHEN NOT (
    NEW.position = OLD.position AND NEW.tenant = OLD.tenant AND NEW.job_id = OLD.job_id AND NEW.seq = OLD.seq
    AND NEW.type = OLD.type AND NEW.task_id IS OLD.task_id AND NEW.attempt IS OLD.attempt AND NEW.at = OLD.at
    AND substr(NEW.data, 1, 1) = x'01')
BEGIN
    SELECT RAISE(ABORT, 'ostinato: events are append-only');
END;
