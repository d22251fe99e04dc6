-- One writer at a time on the chain of a tenant.
-- Differs: a writing transaction of SQLite is alone already.

-- name: lock_audit_log
-- Let only one transaction at a time append for this tenant.
SELECT :tenant;
