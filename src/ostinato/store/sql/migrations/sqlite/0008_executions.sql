-- The execution index. Own executions are the rows of `job`; those that are reported from outside are here, with an index for each
-- way to look for them. A condition that is always true (`agent_name <> ''`) keeps an index for the queries that say so.

CREATE TABLE execution (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    execution_arn TEXT NOT NULL CHECK (execution_arn <> ''),
    state_machine_arn TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    execution_name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED')),
    start_at INTEGER NOT NULL,
    stop_at INTEGER,
    correlation_id TEXT,
    indexed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, execution_arn)
) WITHOUT ROWID;
CREATE INDEX execution_start ON execution (tenant, start_at, execution_arn) WHERE execution_arn <> '';
CREATE INDEX execution_agent ON execution (tenant, agent_name, start_at, execution_arn) WHERE agent_name <> '';
CREATE INDEX execution_status ON execution (tenant, status, start_at, execution_arn) WHERE status <> '';
CREATE INDEX execution_agent_status ON execution (tenant, agent_name, status, start_at, execution_arn)
WHERE tenant <> '';
CREATE INDEX execution_correlation ON execution (tenant, correlation_id, start_at, execution_arn)
WHERE correlation_id IS NOT NULL;
CREATE INDEX execution_stop ON execution (tenant, stop_at) WHERE stop_at IS NOT NULL;

-- The tags of outside executions: those of their definitions when they were reported.
CREATE TABLE execution_tag (
    tenant TEXT NOT NULL,
    execution_arn TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    start_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, execution_arn, key)
) WITHOUT ROWID;
CREATE INDEX execution_tag_key ON execution_tag (tenant, key, start_at, execution_arn) WHERE key <> '';
CREATE INDEX execution_tag_value ON execution_tag (tenant, key, value, start_at, execution_arn) WHERE execution_arn <> '';

-- What is known of definitions elsewhere: their tags decide whether their executions are indexed.
CREATE TABLE definition_tags (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    state_machine_arn TEXT NOT NULL CHECK (state_machine_arn <> ''),
    tags BLOB NOT NULL,
    tagged_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, state_machine_arn)
) WITHOUT ROWID;

-- The jobs of a name that went wrong, by how. Jobs that end well never enter it.
CREATE INDEX job_name_state ON job (tenant, name, state, created_at, job_id)
WHERE state = 'failed' OR state = 'cancelled' OR state = 'timed_out';
