-- Workers, functions, due timers, and leases of the dead.

-- name: due_timers
-- Timers whose time has come, of all tenants, oldest first.
SELECT tenant, {timer} FROM timer
WHERE due_at IS NOT NULL AND due_at <= :now
ORDER BY due_at
LIMIT :most;

-- name: next_due
-- When the next timer is due.
SELECT min(due_at) FROM timer WHERE due_at IS NOT NULL;

-- name: register_worker
-- A worker starts.
INSERT INTO worker (tenant, worker_id, started_at, expires_at, about, machine)
VALUES (:tenant, :worker_id, :now, :expires_at, :about, :machine)
ON CONFLICT (tenant, worker_id) DO UPDATE SET
    expires_at = excluded.expires_at, about = excluded.about, machine = excluded.machine
RETURNING worker_id;

-- name: beat
-- A worker is alive; no row comes back if it was already declared dead.
UPDATE worker SET expires_at = :expires_at WHERE tenant = :tenant AND worker_id = :worker_id
RETURNING worker_id;

-- name: list_workers
-- The workers of a tenant.
SELECT worker_id, started_at, expires_at, about FROM worker WHERE tenant = :tenant ORDER BY started_at;

-- name: live_workers
-- Some of the workers of a tenant that are alive.
SELECT worker_id FROM worker WHERE tenant = :tenant AND expires_at > :now LIMIT :most;

-- name: read_worker
-- What a worker has said of itself, unless it was declared dead.
SELECT about FROM worker WHERE tenant = :tenant AND worker_id = :worker_id;

-- name: workers_of_machine
-- Workers on one machine that have been heard of lately, of all tenants.
SELECT tenant, worker_id, expires_at, about FROM worker WHERE machine = :machine AND expires_at >= :now LIMIT :most;

-- name: silent_workers
-- Workers that have not been heard of for a while, but are not dead yet, of all tenants.
SELECT tenant, worker_id, expires_at, about FROM worker WHERE expires_at BETWEEN :now AND :until LIMIT :most;

-- name: declare_dead
-- A worker has ended for sure; no row comes back if it has been heard of since.
UPDATE worker SET expires_at = :ended WHERE tenant = :tenant AND worker_id = :worker_id AND expires_at = :seen
RETURNING worker_id;

-- name: dead_workers
-- Workers that have not been heard of for too long.
SELECT tenant, worker_id FROM worker WHERE expires_at < :now LIMIT :most;

-- name: leases_of_worker
-- The claims of a worker.
SELECT token, tasks FROM lease WHERE tenant = :tenant AND worker = :worker_id;

-- name: leases_of_dead_worker
-- The same of one that has not been heard of for too long, and has not started anew since.
SELECT l.token, l.tasks FROM worker r JOIN lease l ON l.tenant = r.tenant AND l.worker = r.worker_id
WHERE r.tenant = :tenant AND r.worker_id = :worker_id AND r.expires_at < :now;

-- name: all_leases
-- Every claim, and whether its worker is known.
SELECT l.tenant, l.worker, l.token, l.tasks, r.worker_id IS NOT NULL
FROM lease l LEFT JOIN worker r ON r.tenant = l.tenant AND r.worker_id = l.worker;

-- name: forget_worker
-- A worker has ended, and nothing is leased to it any more.
DELETE FROM worker WHERE tenant = :tenant AND worker_id = :worker_id
    AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.tenant = :tenant AND l.worker = :worker_id)
RETURNING worker_id;

-- name: forget_dead_worker
-- The same for one that has not been heard of for too long, and has not started anew since.
DELETE FROM worker WHERE tenant = :tenant AND worker_id = :worker_id AND expires_at < :now
    AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.tenant = :tenant AND l.worker = :worker_id)
RETURNING worker_id;

-- name: register_function
-- A worker can run this function.
INSERT INTO function (tenant, name, registered_at, about) VALUES (:tenant, :name, :now, :about)
ON CONFLICT (tenant, name) DO UPDATE SET registered_at = excluded.registered_at, about = excluded.about
RETURNING name;

-- name: list_functions
-- What the workers of a tenant can run, or could.
SELECT name, registered_at, about FROM function WHERE tenant = :tenant ORDER BY name;
