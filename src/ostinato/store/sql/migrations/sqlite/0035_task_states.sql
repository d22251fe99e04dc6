-- How many of the active tasks of a job are at work, and how many wait: the others are pending.
ALTER TABLE job ADD COLUMN processing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
UPDATE job SET
    processing = (
        SELECT count(*) FROM task t WHERE t.tenant = job.tenant AND t.job_id = job.job_id AND t.state = 'processing'
    ),
    waiting = (SELECT count(*) FROM task t WHERE t.tenant = job.tenant AND t.job_id = job.job_id AND t.state = 'waiting')
WHERE active > 0;
