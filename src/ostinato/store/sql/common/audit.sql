-- What the audit compares with the tasks of a job.

-- name: audit_ready
-- Which tasks of a job are queued, and since when.
SELECT task_id, ready_at FROM ready WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_timers
-- What tasks of a job wait for.
SELECT {timer} FROM timer WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_dead_letters
-- Which tasks of a job failed for good.
SELECT task_id FROM dead_letter WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_approvals
-- What people were asked in a job.
SELECT {approval}
FROM approval WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_steps
-- Which steps of a job are recorded, with results that may be references to blobs.
SELECT task_id, key, CASE WHEN length(output) <= :most THEN output END FROM step
WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_signals
-- Which signals a job has got and which were taken, with payloads that may be references to blobs.
SELECT name, signal_id, CASE WHEN length(payload) <= :most THEN payload END, taken, seq FROM signal
WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_tags
-- By which tags a job is found.
SELECT key, value FROM job_tag WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_blobs
-- Which large payloads of a job are there.
SELECT digest FROM blob WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_leases
-- What the workers of a tenant hold.
SELECT token, tasks FROM lease WHERE tenant = :tenant;

-- name: audit_gate_keys
-- The keys of gates that a job stands for.
SELECT gate, key FROM gate_key WHERE tenant = :tenant AND job_id = :job_id;

-- name: audit_reviewed
-- The item whose newest run a job is, with who reviewed it, and the moves that were made at that moment.
SELECT i.item_id, i.reviewed_by, i.reviewed_at, h.moved_by
FROM item i LEFT JOIN status_history h ON h.tenant = i.tenant AND h.item_id = i.item_id AND h.at = i.reviewed_at
WHERE i.tenant = :tenant AND i.job_id = :job_id;

-- name: audit_lost_items
-- Items that are not there and of which a run or a history is.
SELECT t.value FROM job_tag t JOIN job j ON j.tenant = t.tenant AND j.job_id = t.job_id
WHERE t.tenant = :tenant AND t.key = 'item' AND j.name LIKE 'pipeline:%'
    AND NOT EXISTS (SELECT 1 FROM item i WHERE i.tenant = t.tenant AND i.item_id = t.value)
UNION
SELECT h.item_id FROM status_history h
WHERE h.tenant = :tenant
    AND NOT EXISTS (SELECT 1 FROM item i WHERE i.tenant = h.tenant AND i.item_id = h.item_id)
ORDER BY 1 LIMIT :most;

-- name: audit_items
-- Items with what was given for them and whether that is encrypted, from a place on.
SELECT item_id, digest, payload, substr(payload, 1, 1) = :mark FROM item
WHERE tenant = :tenant AND item_id > :after ORDER BY item_id LIMIT :most;

-- name: audit_ids_of_item
-- The jobs that items name as their newest runs, in order, and whether they are there.
SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)
FROM (
    SELECT DISTINCT x.job_id FROM item x
    WHERE x.tenant = :tenant AND x.job_id > :after AND x.job_id IS NOT NULL ORDER BY x.job_id LIMIT :most
) d
ORDER BY d.job_id;

-- name: audit_ids_of_ready
-- Jobs that have something in the queue and are not there themselves. (The queue is in the order of claims: all of it is
-- read once.)
SELECT DISTINCT x.job_id, false FROM ready x
WHERE x.tenant = :tenant AND x.job_id > :after
    AND NOT EXISTS (SELECT 1 FROM job j WHERE j.tenant = x.tenant AND j.job_id = x.job_id)
ORDER BY x.job_id LIMIT :most;

-- name: audit_results
-- Saved results with what they are known by, from a place on.
SELECT r.number, r.result_id, r.job_id, r.domain, r.kind, r.created_at, r.document, r.text, d.digest
FROM result r LEFT JOIN result_digest d ON d.tenant = r.tenant AND d.number = r.number
WHERE r.tenant = :tenant AND r.number > 0 AND (r.created_at, r.number) > (:at, :number)
ORDER BY r.created_at, r.number LIMIT :most;

-- name: audit_result_fields
-- The fields by which a result is found.
SELECT key, value FROM result_field WHERE tenant = :tenant AND number = :number;

-- name: audit_result_count
-- How many results there are, and how many are counted.
SELECT (SELECT count(*) FROM result r WHERE r.tenant = :tenant), coalesce(sum(t.count), 0)
FROM tally t WHERE t.tenant = :tenant AND t.topic = 'results';
