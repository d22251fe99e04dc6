-- On which machine a worker runs, for those that can tell there whether its process is alive.
ALTER TABLE worker ADD COLUMN machine TEXT;
CREATE INDEX worker_machine ON worker (machine);
