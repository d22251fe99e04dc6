-- One writer at a time on the chain of a tenant.
-- Differs: PostgreSQL lets two transactions read the same end of the chain, unless one waits for the other.

-- name: lock_audit_log
-- Let only one transaction at a time append for this tenant.
SELECT pg_advisory_xact_lock(1869771882, hashtext(:tenant::text));
