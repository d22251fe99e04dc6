-- The log of who did what.

-- name: last_audit_entry
-- Where the chain of a tenant ends.
SELECT seq, hash FROM audit_log WHERE tenant = :tenant ORDER BY seq DESC LIMIT 1;

-- name: append_audit_entry
-- Add an entry to the end of the chain.
INSERT INTO audit_log (tenant, seq, at, actor, action, target, request_id, details, previous_hash, hash, refuses)
VALUES (:tenant, :seq, :at, :actor, :action, :target, :request_id, :details, :previous_hash, :hash, :refuses)
RETURNING seq;

-- name: read_audit_chain
-- Entries in order, from a place on.
SELECT seq, at, actor, action, target, request_id, details, previous_hash, hash, refuses FROM audit_log
WHERE tenant = :tenant AND seq > :after
ORDER BY seq
LIMIT :most;

-- name: list_audit_entries
-- Entries, newest first, from a place on, by any of the filters, and whether they were refused.
SELECT
    seq, at, actor, action, target, request_id, details, previous_hash, hash, refuses,
    COALESCE(
        refuses, (SELECT r.seq FROM audit_log r WHERE r.tenant = :tenant AND r.refuses = audit_log.seq LIMIT 1)
    ) IS NOT NULL AS refused
FROM audit_log
WHERE tenant = :tenant AND seq < :before
    AND (CAST(:actor AS TEXT) IS NULL OR actor = :actor)
    AND (CAST(:action AS TEXT) IS NULL OR action = :action)
    AND (CAST(:target AS TEXT) IS NULL OR target = :target)
ORDER BY seq DESC
LIMIT :most;
