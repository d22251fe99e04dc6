-- Who did what: one chain of entries for each tenant. Each holds the hash of the one before, so that none can be changed,
-- taken out or moved without breaking the chain behind it.

CREATE TABLE audit_log (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    seq bigint NOT NULL CHECK (seq >= 1),
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL CHECK (actor <> ''),
    action text COLLATE "C" NOT NULL CHECK (action <> ''),
    target text COLLATE "C" NOT NULL,
    request_id text COLLATE "C",
    details bytea NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE TRIGGER audit_log_unchanged BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW
EXECUTE FUNCTION ostinato_refuse('the audit log is append-only');
CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT
EXECUTE FUNCTION ostinato_refuse('the audit log is append-only');
