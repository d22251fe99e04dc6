-- What a tenant keeps for how long, and what is old enough to be removed.

-- name: set_retention
-- How long a tenant keeps finished jobs, and after that their keys.
INSERT INTO tenant (tenant, retention_seconds, key_seconds) VALUES (:tenant, :jobs, :keys)
ON CONFLICT (tenant) DO UPDATE SET retention_seconds = excluded.retention_seconds, key_seconds = excluded.key_seconds
RETURNING tenant;

-- name: read_retention
-- The same, if it has said so.
SELECT retention_seconds, key_seconds FROM tenant WHERE tenant = :tenant;

-- name: old_jobs
-- Jobs in a state that were entered before a time, oldest first, from a place on; how many tasks they have, and whether they can
-- be removed: they ended before it, have no period of their own, and are no run of an item that is open. What has ended before
-- it was also entered before it (unless a clock was set back: then it goes a little later). An index by when jobs end would be
-- written for each job and read by nothing else; without it, those that were entered before and ended since are looked at too.
-- (OFFSET keeps PostgreSQL from reading all open items of the tenant first.)
SELECT job_id, created_at, total, keep_seconds IS NULL AND finished_at IS NOT NULL AND finished_at < :before
    AND NOT EXISTS (
        SELECT 1 FROM item i WHERE i.tenant = :tenant AND i.job_id = job.job_id AND i.open LIMIT 1 OFFSET 0)
FROM job
WHERE tenant = :tenant AND state = :state AND state <> '' AND created_at < :before
    AND (created_at, job_id) > (:at, :job_id)
ORDER BY created_at, job_id
LIMIT :most;

-- name: next_period
-- The next longer one of the periods that jobs have of their own.
SELECT min(keep_seconds) FROM job WHERE tenant = :tenant AND keep_seconds IS NOT NULL AND keep_seconds > :after;

-- name: old_jobs_of_period
-- Jobs with such a period that ended before a time, oldest first, from a place on; and how many tasks they have.
SELECT job_id, finished_at, total, NOT EXISTS (
    SELECT 1 FROM item i WHERE i.tenant = :tenant AND i.job_id = job.job_id AND i.open)
FROM job
WHERE tenant = :tenant AND keep_seconds IS NOT NULL AND keep_seconds = :period AND finished_at < :before
    AND (finished_at, job_id) > (:at, :job_id)
ORDER BY finished_at, job_id
LIMIT :most;

-- name: prune_removed_key
-- Forget keys of jobs that were removed before a time.
DELETE FROM removed_key WHERE tenant = :tenant AND idempotency_key IN (
    SELECT x.idempotency_key FROM removed_key x
    WHERE x.tenant = :tenant AND x.idempotency_key <> '' AND x.removed_at <= :before
    ORDER BY x.removed_at, x.idempotency_key LIMIT :most)
RETURNING job_id;

-- name: prune_removed_event
-- Forget the ids of events that were removed before a time.
DELETE FROM removed_event WHERE tenant = :tenant AND (source, event_id) IN (
    SELECT x.source, x.event_id FROM removed_event x
    WHERE x.tenant = :tenant AND x.event_id <> '' AND x.removed_at <= :before
    ORDER BY x.removed_at, x.source, x.event_id LIMIT :most)
RETURNING event_id;

-- name: prune_outside_event
-- Remove what others told before a time.
DELETE FROM outside_event WHERE tenant = :tenant AND (source, event_id) IN (
    SELECT x.source, x.event_id FROM outside_event x
    WHERE x.tenant = :tenant AND x.received_at < :before
    ORDER BY x.received_at, x.source, x.event_id LIMIT :most)
RETURNING source, event_id;
