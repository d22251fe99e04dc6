-- Saved results: reading them, and listing their numbers newest first. One block for each index to go along.

-- name: read_result
-- One result by its id.
SELECT number, result_id, job_id, domain, kind, created_at, document, text FROM result
WHERE tenant = :tenant AND result_id = :result_id;

-- name: find_results
-- All results.
SELECT created_at, number FROM result
WHERE tenant = :tenant AND number > 0
    AND (created_at, number) < (:before_at, :before_number) AND created_at >= :from_at
ORDER BY created_at DESC, number DESC
LIMIT :most;

-- name: find_results_by_domain
-- Results of a domain.
SELECT created_at, number FROM result
WHERE tenant = :tenant AND domain = :domain AND domain <> ''
    AND (created_at, number) < (:before_at, :before_number) AND created_at >= :from_at
ORDER BY created_at DESC, number DESC
LIMIT :most;

-- name: find_old_results
-- The oldest results, of before a time.
SELECT number FROM result
WHERE tenant = :tenant AND number > 0 AND created_at < :before
ORDER BY created_at, number
LIMIT :most;

-- name: find_result_number
-- The number of one result.
SELECT number FROM result WHERE tenant = :tenant AND result_id = :result_id;
