-- A task that is pending and has not begun is blocked again when something that it depends on is to run again.
DROP TRIGGER task_move;
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
