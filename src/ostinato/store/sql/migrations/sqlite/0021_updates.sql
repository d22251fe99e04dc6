-- An illegal move takes back the whole transaction instead of its statement alone. For a trigger that might take back a
-- statement SQLite copies every page that the statement changes, for each row.
DROP TRIGGER task_move;
CREATE TRIGGER task_move AFTER UPDATE OF state ON task
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state
    WHEN 'processing' THEN (
        NEW.state = 'completed' OR NEW.state = 'pending' OR NEW.state = 'waiting' OR NEW.state = 'failed'
        OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
    WHEN 'pending' THEN (NEW.state = 'processing' OR NEW.state = 'skipped' OR NEW.state = 'cancelled')
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

DROP TRIGGER job_move;
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
