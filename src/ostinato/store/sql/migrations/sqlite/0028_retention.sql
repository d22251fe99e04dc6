-- Retention is a setting of the tenant: how long finished jobs are kept, and after that their idempotency keys. NULL is for ever.
-- (`tenant.retention_seconds` is there since the beginning.)
ALTER TABLE tenant ADD COLUMN key_seconds INTEGER;

-- A job may have a period of its own, as the jobs of gates do.
ALTER TABLE job ADD COLUMN keep_seconds INTEGER;
CREATE INDEX job_keep ON job (tenant, keep_seconds, finished_at, job_id) WHERE keep_seconds IS NOT NULL;

-- What is left of removed jobs that had an idempotency key, and of removed events of others: enough to know a repetition.
CREATE TABLE removed_key (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    idempotency_key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    request_hash BLOB,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX removed_key_at ON removed_key (tenant, removed_at, idempotency_key) WHERE idempotency_key <> '';
CREATE TABLE removed_event (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
) WITHOUT ROWID;
CREATE INDEX removed_event_at ON removed_event (tenant, removed_at, source, event_id) WHERE event_id <> '';

-- Executions elsewhere are kept from the moment at which they were last reported: also those whose end is not known.
DROP INDEX execution_stop;
CREATE INDEX execution_indexed ON execution (tenant, indexed_at, execution_arn) WHERE execution_arn <> '';
