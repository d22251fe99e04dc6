-- Who may talk to the server. A key is found by its id alone: only then is it known whose it is.

CREATE TABLE api_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    key_id TEXT NOT NULL CHECK (key_id <> ''),
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL CHECK (length(secret_hash) = 32),
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (tenant, key_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX api_key_by_id ON api_key (key_id);
