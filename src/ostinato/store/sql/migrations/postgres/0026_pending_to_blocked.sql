-- A task that is pending and has not begun is blocked again when something that it depends on is to run again.
CREATE OR REPLACE FUNCTION ostinato_check_task_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE OLD.state
        WHEN 'processing' THEN NEW.state IN ('pending', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')
        WHEN 'pending' THEN NEW.state IN ('blocked', 'processing', 'skipped', 'cancelled')
        WHEN 'blocked' THEN NEW.state IN ('pending', 'processing', 'waiting', 'skipped', 'cancelled')
        WHEN 'waiting' THEN
            NEW.state IN ('blocked', 'pending', 'processing', 'completed', 'failed', 'skipped', 'cancelled')
        WHEN 'failed' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
        WHEN 'skipped' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting')
        WHEN 'cancelled' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
        ELSE false END)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ostinato: this move of a task is not legal' USING ERRCODE = 'check_violation';
END $$;
