-- Who may talk to the server. A key is found by its id alone: only then is it known whose it is.

CREATE TABLE api_key (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    key_id text COLLATE "C" NOT NULL CHECK (key_id <> ''),
    name text COLLATE "C" NOT NULL,
    secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
    scopes text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    PRIMARY KEY (tenant, key_id)
);
CREATE UNIQUE INDEX api_key_by_id ON api_key (key_id);
