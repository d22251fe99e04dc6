-- Retention is a setting of the tenant: how long finished jobs are kept, and after that their idempotency keys. NULL is for ever.
-- (`tenant.retention_seconds` is there since the beginning.)
ALTER TABLE tenant ADD COLUMN key_seconds bigint;

-- A job may have a period of its own, as the jobs of gates do.
ALTER TABLE job ADD COLUMN keep_seconds bigint;
CREATE INDEX job_keep ON job (tenant, keep_seconds, finished_at, job_id) WHERE keep_seconds IS NOT NULL;

-- What is left of removed jobs that had an idempotency key, and of removed events of others: enough to know a repetition.
CREATE TABLE removed_key (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    idempotency_key text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    request_hash bytea,
    removed_at bigint NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
);
CREATE INDEX removed_key_at ON removed_key (tenant, removed_at, idempotency_key) WHERE idempotency_key <> '';
CREATE TABLE removed_event (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    source text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    removed_at bigint NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
);
CREATE INDEX removed_event_at ON removed_event (tenant, removed_at, source, event_id) WHERE event_id <> '';

-- Executions elsewhere are kept from the moment at which they were last reported: also those whose end is not known.
DROP INDEX execution_stop;
CREATE INDEX execution_indexed ON execution (tenant, indexed_at, execution_arn) WHERE execution_arn <> '';
SELECT ostinato_raise_wall();
