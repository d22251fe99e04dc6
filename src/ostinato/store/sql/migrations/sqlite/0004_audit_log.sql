-- Who did what: one chain of entries for each tenant. Each holds the hash of the one before, so that none can be changed,
-- taken out or moved without breaking the chain behind it.

CREATE TABLE audit_log (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    at INTEGER NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    action TEXT NOT NULL CHECK (action <> ''),
    target TEXT NOT NULL,
    request_id TEXT,
    details BLOB NOT NULL,
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) WITHOUT ROWID;

CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the audit log is append-only');
END;
CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'ostinato: the audit log is append-only');
END;
