-- The keys that open the server.

-- name: insert_key
-- A new key; what is stored is a hash, so the key itself cannot be read back.
INSERT INTO api_key (tenant, key_id, name, secret_hash, scopes, created_at, expires_at)
VALUES (:tenant, :key_id, :name, :secret_hash, :scopes, :now, :expires_at)
RETURNING key_id;

-- name: list_keys
-- The keys of a tenant, newest first, those that no longer work included.
SELECT tenant, key_id, name, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
FROM api_key WHERE tenant = :tenant ORDER BY created_at DESC, key_id;

-- name: find_key
-- One key, of whichever tenant: the key is what says whose request it is.
SELECT tenant, key_id, name, secret_hash, scopes, created_at, expires_at, last_used_at, revoked_at
FROM api_key WHERE key_id = :key_id;

-- name: any_key
-- Whether anybody has ever made a key; one that was revoked counts.
SELECT key_id FROM api_key LIMIT 1;

-- name: revoke_key
-- From now on this key opens nothing; a second time changes nothing.
UPDATE api_key SET revoked_at = COALESCE(revoked_at, :now) WHERE tenant = :tenant AND key_id = :key_id
RETURNING revoked_at;

-- name: touch_key
-- A key was used, unless that was noted lately.
UPDATE api_key SET last_used_at = :now
WHERE tenant = :tenant AND key_id = :key_id AND (last_used_at IS NULL OR last_used_at < :before)
RETURNING key_id;
