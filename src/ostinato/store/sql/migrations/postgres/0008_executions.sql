-- The execution index. Own executions are the rows of `job`; those that are reported from outside are here, with an index for each
-- way to look for them. A condition that is always true (`agent_name <> ''`) keeps an index for the queries that say so.

CREATE TABLE execution (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    execution_arn text COLLATE "C" NOT NULL CHECK (execution_arn <> ''),
    state_machine_arn text COLLATE "C" NOT NULL,
    agent_name text COLLATE "C" NOT NULL,
    execution_name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED')),
    start_at bigint NOT NULL,
    stop_at bigint,
    correlation_id text COLLATE "C",
    indexed_at bigint NOT NULL,
    PRIMARY KEY (tenant, execution_arn)
);
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
    tenant text COLLATE "C" NOT NULL,
    execution_arn text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    start_at bigint NOT NULL,
    PRIMARY KEY (tenant, execution_arn, key)
);
CREATE INDEX execution_tag_key ON execution_tag (tenant, key, start_at, execution_arn) WHERE key <> '';
CREATE INDEX execution_tag_value ON execution_tag (tenant, key, value, start_at, execution_arn) WHERE execution_arn <> '';

-- What is known of definitions elsewhere: their tags decide whether their executions are indexed.
CREATE TABLE definition_tags (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    state_machine_arn text COLLATE "C" NOT NULL CHECK (state_machine_arn <> ''),
    tags bytea NOT NULL,
    tagged_at bigint NOT NULL,
    PRIMARY KEY (tenant, state_machine_arn)
);

-- The jobs of a name that went wrong, by how. Jobs that end well never enter it.
CREATE INDEX job_name_state ON job (tenant, name, state, created_at, job_id)
WHERE state = 'failed' OR state = 'cancelled' OR state = 'timed_out';

