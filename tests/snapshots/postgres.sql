CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

CREATE FUNCTION public.ostinato_check_job_move() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (CASE OLD.state
        WHEN 'running' THEN NEW.state IN ('failed', 'cancelled', 'timed_out')
        WHEN 'failed' THEN NEW.state IN ('running', 'cancelled', 'timed_out')
        WHEN 'cancelled' THEN NEW.state IN ('running', 'failed', 'timed_out')
        WHEN 'timed_out' THEN NEW.state IN ('running', 'failed', 'cancelled')
        ELSE false END)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ostinato: this move of a job is not legal' USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION public.ostinato_check_task_move() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (CASE OLD.state
        WHEN 'processing' THEN NEW.state IN ('pending', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')
        WHEN 'pending' THEN NEW.state IN ('blocked', 'processing', 'skipped', 'cancelled')
        WHEN 'blocked' THEN NEW.state IN ('pending', 'processing', 'waiting', 'skipped', 'cancelled')
        WHEN 'waiting' THEN
            NEW.state IN ('blocked', 'pending', 'processing', 'completed', 'failed', 'skipped', 'cancelled')
        WHEN 'failed' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
        WHEN 'skipped' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting')
        WHEN 'cancelled' THEN NEW.state IN ('blocked', 'pending', 'processing', 'waiting', 'skipped')
        ELSE false END)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'ostinato: this move of a task is not legal' USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION public.ostinato_expect(changed bigint, wanted bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF changed <> wanted THEN
        RAISE EXCEPTION 'ostinato: a job was changed by another transaction' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN changed;
END $$;

CREATE FUNCTION public.ostinato_find_words(of_tenant text, wanted text, of_domain text, from_at bigint, until_at bigint, keys text[], vals text[], most bigint) RETURNS TABLE(number bigint, score real)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
        WITH asked AS MATERIALIZED (
            SELECT string_agg('''' || word || '''', ' | ')::tsquery AS any_word
            FROM unnest(string_to_array(wanted, ' ')) AS word
        ),
        caller AS MATERIALIZED (
            SELECT coalesce(nullif(current_setting('role'), 'none'), session_user) AS name
        )
        SELECT f.number, f.score
        FROM caller CROSS JOIN asked CROSS JOIN LATERAL (
            SELECT w.number, ts_rank(w.words, asked.any_word, 1) AS score
            FROM (
                SELECT * FROM result_words
                WHERE words @@ (('''' || ostinato_tenant_word(of_tenant) || '''')::tsquery && asked.any_word)
                OFFSET 0  -- by the index of words, whatever other indexes seem to promise
            ) w
            WHERE w.tenant = of_tenant
                AND (of_domain IS NULL OR w.domain = of_domain)
                AND w.created_at >= from_at AND w.created_at < until_at
                AND (cardinality(keys) = 0 OR w.number IN (
                    SELECT h.number
                    FROM unnest(keys, vals) AS k (key, value)
                    CROSS JOIN LATERAL (
                        SELECT x.number FROM result_field x
                        WHERE x.tenant = of_tenant AND x.key = k.key AND x.value = k.value OFFSET 0
                    ) h
                    GROUP BY h.number HAVING count(*) = cardinality(keys)))
            ORDER BY w.number DESC
            LIMIT most
        ) f
        WHERE CASE caller.name
            WHEN 'ostinato_api' THEN of_tenant = current_setting('ostinato.tenant', true)
            ELSE has_table_privilege(caller.name, 'result_words', 'SELECT') END
    $$;

CREATE FUNCTION public.ostinato_history_stays() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM item i WHERE i.tenant = OLD.tenant AND i.item_id = OLD.item_id) THEN
        RAISE EXCEPTION 'ostinato: the history of an item is append-only' USING ERRCODE = 'check_violation';
    END IF;
    RETURN OLD;
END $$;

CREATE FUNCTION public.ostinato_item_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM status_history WHERE tenant = OLD.tenant AND item_id = OLD.item_id;
    RETURN NULL;
END $$;

CREATE FUNCTION public.ostinato_item_moved() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    before bigint := 0;
    moves jsonb := NEW.via::jsonb;
    move jsonb;
    last bigint := 0;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD.status;
        IF OLD.status = NEW.status AND OLD.version = NEW.version AND NEW.via IS NOT DISTINCT FROM OLD.via THEN
            RETURN NULL;
        END IF;
        IF NOT EXISTS (
            SELECT FROM pipeline_status s
            WHERE s.tenant = NEW.tenant AND s.pipeline = NEW.pipeline AND s.version = NEW.version AND s.code = NEW.status
        ) THEN
            RAISE EXCEPTION 'ostinato: item % cannot go from % to %: version % of pipeline % has no such status',
                NEW.item_id, OLD.status, NEW.status, NEW.version, NEW.pipeline USING ERRCODE = 'check_violation';
        END IF;
        IF OLD.status = NEW.status AND (NEW.via IS NOT DISTINCT FROM OLD.via
            OR (moves -> -1 ->> 'to')::bigint IS DISTINCT FROM NEW.status) THEN
            RETURN NULL;
        END IF;
        SELECT coalesce(max(h.number), 0) INTO last FROM status_history h
        WHERE h.tenant = NEW.tenant AND h.item_id = NEW.item_id;
    END IF;
    IF (moves -> -1 ->> 'to')::bigint IS DISTINCT FROM NEW.status OR (TG_OP = 'UPDATE' AND NEW.via = OLD.via) THEN
        moves := jsonb_build_array(jsonb_build_object(
            'to', NEW.status, 'by', 'sql', 'at', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint));
        INSERT INTO tally AS t (tenant, topic, key, bucket, writer, count, amount)
        SELECT NEW.tenant, 'items', NEW.pipeline || '/' || c.code, 0, '', c.change, 0
        FROM (VALUES (before, -1), (NEW.status, 1)) AS c (code, change)
        WHERE c.code <> 0
        ORDER BY c.code
        ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = t.count + excluded.count;
    END IF;
    FOR move IN SELECT jsonb_array_elements(moves) LOOP
        last := last + 1;
        IF before <> (move ->> 'to')::bigint AND NOT EXISTS (
            SELECT FROM state_transition t
            WHERE t.tenant = NEW.tenant AND t.pipeline = NEW.pipeline AND t.version = NEW.version
                AND t.from_code = before AND t.to_code = (move ->> 'to')::bigint
        ) THEN
            RAISE EXCEPTION 'ostinato: item % cannot go from % to %: pipeline % does not allow this move',
                NEW.item_id, before, move ->> 'to', NEW.pipeline USING ERRCODE = 'check_violation';
        END IF;
        INSERT INTO status_history (
            tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason, how
        ) VALUES (
            NEW.tenant, NEW.item_id, last, before, (move ->> 'to')::bigint, (move ->> 'at')::bigint,
            NEW.version, NEW.run, move ->> 'step', (move ->> 'attempt')::bigint, move ->> 'by', move ->> 'why',
            move ->> 'how'
        );
        before := (move ->> 'to')::bigint;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION public.ostinato_likeness(one public.vector, other public.vector) RETURNS double precision
    LANGUAGE sql IMMUTABLE
    AS $$SELECT 1 - (one OPERATOR(public.<=>) other)$$;

CREATE FUNCTION public.ostinato_raise_wall() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    walled text;
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ostinato_api') THEN
            CREATE ROLE ostinato_api NOLOGIN;
        END IF;
    EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
        NULL;  -- not allowed, or somebody else made it at this very moment
    END;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ostinato_api') THEN
        RETURN false;
    END IF;
    BEGIN
        GRANT ostinato_api TO CURRENT_USER;
    EXCEPTION WHEN insufficient_privilege OR unique_violation OR internal_error THEN
        NULL;  -- a superuser needs no grant; for others the server finds out that it may not use the role, and says so
    END;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO ostinato_api', current_schema());
    FOR walled IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
            AND a.attname = 'tenant' AND NOT a.attisdropped
        ORDER BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', walled);
        EXECUTE format('DROP POLICY IF EXISTS ostinato_tenant ON %I', walled);
        EXECUTE format('CREATE POLICY ostinato_tenant ON %I TO ostinato_api '
            'USING (tenant = current_setting(''ostinato.tenant'', true))', walled);
        -- Engines need not own the tables.
        EXECUTE format('DROP POLICY IF EXISTS ostinato_engine ON %I', walled);
        EXECUTE format('CREATE POLICY ostinato_engine ON %I USING (current_user <> ''ostinato_api'')', walled);
        IF walled <> 'api_key' THEN  -- keys are looked up before it is known whose they are, and their hashes are no reading
            EXECUTE format('GRANT SELECT ON %I TO ostinato_api', walled);
        END IF;
    END LOOP;
    RETURN true;
END $$;

CREATE FUNCTION public.ostinato_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'ostinato: %', TG_ARGV[0] USING ERRCODE = 'check_violation';
END $$;

CREATE FUNCTION public.ostinato_tenant_word(tenant text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT '@' || encode(convert_to(tenant, 'UTF8'), 'hex')
$$;

CREATE FUNCTION public.ostinato_use_pgvector() RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
DECLARE
    place name;
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL) THEN
        BEGIN
            CREATE EXTENSION IF NOT EXISTS vector;
        EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
            NULL;  -- not allowed, or somebody else made it at this very moment
        END;
    END IF;
    SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector';
    IF place IS NULL THEN
        RETURN false;
    END IF;
    IF EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = 'result_vector'::regclass AND attname = 'embedding'
            AND atttypid = 'real[]'::regtype
    ) THEN
        DROP FUNCTION ostinato_vector(text);
        DROP FUNCTION ostinato_likeness(real[], real[]);
        EXECUTE format('ALTER TABLE result_vector ALTER embedding TYPE %1$I.vector USING embedding::%1$I.vector', place);
        EXECUTE format('CREATE FUNCTION ostinato_vector(numbers text) RETURNS %1$I.vector LANGUAGE sql IMMUTABLE AS '
            '''SELECT numbers::%1$I.vector''', place);
        EXECUTE format('CREATE FUNCTION ostinato_likeness(one %1$I.vector, other %1$I.vector) RETURNS double precision '
            'LANGUAGE sql IMMUTABLE AS ''SELECT 1 - (one OPERATOR(%1$I.<=>) other)''', place);
    END IF;
    RETURN true;
END $_$;

CREATE FUNCTION public.ostinato_vector(numbers text) RETURNS public.vector
    LANGUAGE sql IMMUTABLE
    AS $$SELECT numbers::public.vector$$;

CREATE TABLE public.api_key (
    tenant text NOT NULL COLLATE pg_catalog."C",
    key_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    scopes text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    CONSTRAINT api_key_key_id_check CHECK ((key_id <> ''::text)),
    CONSTRAINT api_key_secret_hash_check CHECK ((length(secret_hash) = 32)),
    CONSTRAINT api_key_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.approval (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    document bytea NOT NULL,
    payload bytea,
    asked text COLLATE pg_catalog."C",
    not_submitter boolean NOT NULL,
    submitted_by text COLLATE pg_catalog."C",
    version bigint NOT NULL,
    requested_at bigint NOT NULL,
    due_at bigint,
    escalated_at bigint,
    decided_at bigint,
    CONSTRAINT approval_state_check CHECK ((state <> ''::text)),
    CONSTRAINT approval_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.audit_log (
    tenant text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL COLLATE pg_catalog."C",
    request_id text COLLATE pg_catalog."C",
    details bytea NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    refuses bigint,
    CONSTRAINT audit_log_action_check CHECK ((action <> ''::text)),
    CONSTRAINT audit_log_actor_check CHECK ((actor <> ''::text)),
    CONSTRAINT audit_log_seq_check CHECK ((seq >= 1)),
    CONSTRAINT audit_log_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.blob (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE public.clock (
    one bigint NOT NULL,
    boot text NOT NULL,
    since bigint NOT NULL,
    at bigint NOT NULL,
    faster bigint NOT NULL,
    CONSTRAINT clock_one_check CHECK ((one = 1))
);

CREATE TABLE public.dead_letter (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    failed_at bigint NOT NULL,
    error_type text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.definition (
    tenant text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    document bytea,
    created_at bigint NOT NULL,
    created_by text COLLATE pg_catalog."C",
    CONSTRAINT definition_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT definition_name_check CHECK ((name <> ''::text)),
    CONSTRAINT definition_tenant_check CHECK ((tenant <> ''::text)),
    CONSTRAINT definition_version_check CHECK ((version >= 1))
);

CREATE TABLE public.definition_tags (
    tenant text NOT NULL COLLATE pg_catalog."C",
    state_machine_arn text NOT NULL COLLATE pg_catalog."C",
    tags bytea NOT NULL,
    tagged_at bigint NOT NULL,
    CONSTRAINT definition_tags_state_machine_arn_check CHECK ((state_machine_arn <> ''::text)),
    CONSTRAINT definition_tags_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.edge (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    up text NOT NULL COLLATE pg_catalog."C",
    down text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.event_page (
    "position" bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    transaction xid8 DEFAULT pg_current_xact_id() NOT NULL
);

ALTER TABLE public.event_page ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.event_page_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.execution (
    tenant text NOT NULL COLLATE pg_catalog."C",
    execution_arn text NOT NULL COLLATE pg_catalog."C",
    state_machine_arn text NOT NULL COLLATE pg_catalog."C",
    agent_name text NOT NULL COLLATE pg_catalog."C",
    execution_name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    start_at bigint NOT NULL,
    stop_at bigint,
    correlation_id text COLLATE pg_catalog."C",
    indexed_at bigint NOT NULL,
    CONSTRAINT execution_execution_arn_check CHECK ((execution_arn <> ''::text)),
    CONSTRAINT execution_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'TIMED_OUT'::text, 'ABORTED'::text]))),
    CONSTRAINT execution_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.execution_tag (
    tenant text NOT NULL COLLATE pg_catalog."C",
    execution_arn text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    start_at bigint NOT NULL
);

CREATE TABLE public.feed_secret (
    secret bytea NOT NULL
);

CREATE TABLE public.function (
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    registered_at bigint NOT NULL,
    about bytea NOT NULL
);

CREATE TABLE public.gate_key (
    tenant text NOT NULL COLLATE pg_catalog."C",
    gate text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT gate_key_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.item (
    tenant text NOT NULL COLLATE pg_catalog."C",
    item_id text NOT NULL COLLATE pg_catalog."C",
    pipeline text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    status bigint NOT NULL,
    open boolean NOT NULL,
    job_id text COLLATE pg_catalog."C",
    run bigint NOT NULL,
    steps bytea NOT NULL,
    step text COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    retry_at bigint,
    failures bigint NOT NULL,
    error_type text COLLATE pg_catalog."C",
    entered_at bigint NOT NULL,
    status_at bigint NOT NULL,
    submitted_by text COLLATE pg_catalog."C",
    reviewed_by text COLLATE pg_catalog."C",
    reviewed_at bigint,
    digest bytea NOT NULL,
    via text COLLATE pg_catalog."C",
    payload bytea NOT NULL,
    CONSTRAINT item_item_id_check CHECK ((item_id <> ''::text)),
    CONSTRAINT item_run_check CHECK ((run >= 0)),
    CONSTRAINT item_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.job (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    priority bigint NOT NULL,
    request_id text COLLATE pg_catalog."C",
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    idempotency_key text COLLATE pg_catalog."C",
    request_hash bytea,
    tags bytea NOT NULL,
    cascades boolean NOT NULL,
    deadline_at bigint,
    created_at bigint NOT NULL,
    finished_at bigint,
    failure_detected_at bigint,
    last_seq bigint NOT NULL,
    total bigint NOT NULL,
    blocked bigint NOT NULL,
    active bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    tolerated bigint NOT NULL,
    skipped bigint NOT NULL,
    cancelled bigint NOT NULL,
    trace_parent text COLLATE pg_catalog."C",
    max_parallel bigint,
    turns bigint DEFAULT 0 NOT NULL,
    budget bigint,
    spent bigint DEFAULT 0 NOT NULL,
    submitted_by text COLLATE pg_catalog."C",
    keep_seconds bigint,
    processing bigint DEFAULT 0 NOT NULL,
    waiting bigint DEFAULT 0 NOT NULL,
    CONSTRAINT job_check CHECK (((tenant <> ''::text) AND (job_id <> ''::text) AND (state = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text])) AND (LEAST(blocked, active, completed, failed, tolerated, skipped, cancelled) >= 0)))
)
WITH (fillfactor='50');

CREATE TABLE public.job_tag (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);

CREATE TABLE public.lease (
    tenant text NOT NULL COLLATE pg_catalog."C",
    worker text NOT NULL COLLATE pg_catalog."C",
    token text NOT NULL COLLATE pg_catalog."C",
    tasks bytea NOT NULL
);

CREATE TABLE public.ostinato_schema (
    version integer NOT NULL
);

CREATE TABLE public.outside_event (
    tenant text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    received_at bigint NOT NULL,
    data bytea NOT NULL,
    CONSTRAINT outside_event_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.pipeline_status (
    tenant text NOT NULL COLLATE pg_catalog."C",
    pipeline text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    code bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    phase text COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    CONSTRAINT pipeline_status_code_check CHECK ((code > 0)),
    CONSTRAINT pipeline_status_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.ready (
    tenant text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    rank bigint NOT NULL,
    ready_at bigint NOT NULL,
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');

CREATE TABLE public.removed_event (
    tenant text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    removed_at bigint NOT NULL,
    CONSTRAINT removed_event_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.removed_key (
    tenant text NOT NULL COLLATE pg_catalog."C",
    idempotency_key text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    request_hash bytea,
    removed_at bigint NOT NULL,
    CONSTRAINT removed_key_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.result (
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    result_id text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    domain text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    document bytea NOT NULL,
    text bytea NOT NULL,
    CONSTRAINT result_domain_check CHECK ((domain <> ''::text)),
    CONSTRAINT result_job_id_check CHECK ((job_id <> ''::text)),
    CONSTRAINT result_result_id_check CHECK ((result_id <> ''::text)),
    CONSTRAINT result_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.result_digest (
    tenant text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    digest bigint NOT NULL,
    CONSTRAINT result_digest_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.result_field (
    tenant text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    CONSTRAINT result_field_tenant_check CHECK ((tenant <> ''::text))
);

ALTER TABLE public.result ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.result_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.result_vector (
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    domain text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    model text NOT NULL COLLATE pg_catalog."C",
    embedding public.vector NOT NULL,
    CONSTRAINT result_vector_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.result_words (
    tenant text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    domain text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    words tsvector NOT NULL,
    CONSTRAINT result_words_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.signal (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    signal_id text NOT NULL COLLATE pg_catalog."C",
    payload bytea NOT NULL,
    taken boolean NOT NULL,
    seq bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.state_transition (
    tenant text NOT NULL COLLATE pg_catalog."C",
    pipeline text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    from_code bigint NOT NULL,
    to_code bigint NOT NULL,
    CONSTRAINT state_transition_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.status_history (
    tenant text NOT NULL COLLATE pg_catalog."C",
    item_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    from_code bigint NOT NULL,
    to_code bigint NOT NULL,
    at bigint,
    version bigint NOT NULL,
    run bigint NOT NULL,
    step text COLLATE pg_catalog."C",
    attempt bigint,
    moved_by text COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    how text COLLATE pg_catalog."C"
);

CREATE TABLE public.step (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    output bytea NOT NULL,
    recorded_at bigint NOT NULL
);

CREATE TABLE public.tally (
    tenant text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    bucket bigint NOT NULL,
    writer text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT tally_tenant_check CHECK ((tenant <> ''::text)),
    CONSTRAINT tally_topic_check CHECK ((topic <> ''::text))
)
WITH (fillfactor='50');

CREATE TABLE public.task (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    priority bigint NOT NULL,
    policy text NOT NULL COLLATE pg_catalog."C",
    optional boolean NOT NULL,
    dependencies bigint NOT NULL,
    options bytea,
    input bytea NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    attempt_base bigint NOT NULL,
    crashes bigint NOT NULL,
    open_dependencies bigint NOT NULL,
    resuming boolean NOT NULL,
    skipped_by_dependency boolean NOT NULL,
    output bytea,
    error bytea,
    started_at bigint,
    finished_at bigint,
    ready_at bigint,
    worker text COLLATE pg_catalog."C",
    token text COLLATE pg_catalog."C",
    max_attempts bigint NOT NULL,
    timeout_at bigint,
    CONSTRAINT task_check CHECK (((task_id <> ''::text) AND (open_dependencies >= 0) AND (policy = ANY (ARRAY['block'::text, 'skip'::text, 'run'::text])) AND (state = ANY (ARRAY['blocked'::text, 'pending'::text, 'processing'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text]))))
)
WITH (fillfactor='50');

CREATE TABLE public.tenant (
    tenant text NOT NULL COLLATE pg_catalog."C",
    retention_seconds bigint,
    budget_day bigint,
    budget_month bigint,
    key_seconds bigint,
    CONSTRAINT tenant_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.timer (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    due_at bigint,
    CONSTRAINT timer_kind_check CHECK ((kind = ANY (ARRAY['retry'::text, 'sleep'::text, 'wait'::text, 'delay'::text, 'turn'::text, 'external'::text, 'approval'::text, 'deadline'::text, 'budget'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.usage (
    tenant text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    calls bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost bigint NOT NULL,
    last_id text COLLATE pg_catalog."C",
    CONSTRAINT usage_tenant_check CHECK ((tenant <> ''::text))
);

CREATE TABLE public.worker (
    tenant text NOT NULL COLLATE pg_catalog."C",
    worker_id text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    about bytea NOT NULL,
    machine text
);

ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (tenant, key_id);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_pkey PRIMARY KEY (tenant, job_id, task_id, key);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (tenant, seq);

ALTER TABLE ONLY public.blob
    ADD CONSTRAINT blob_pkey PRIMARY KEY (tenant, job_id, digest);

ALTER TABLE ONLY public.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (one);

ALTER TABLE ONLY public.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (tenant, job_id, task_id);

ALTER TABLE ONLY public.definition
    ADD CONSTRAINT definition_pkey PRIMARY KEY (tenant, kind, name, version);

ALTER TABLE ONLY public.definition_tags
    ADD CONSTRAINT definition_tags_pkey PRIMARY KEY (tenant, state_machine_arn);

ALTER TABLE ONLY public.edge
    ADD CONSTRAINT edge_pkey PRIMARY KEY (tenant, job_id, up, down);

ALTER TABLE ONLY public.event_page
    ADD CONSTRAINT event_page_pkey PRIMARY KEY (tenant, job_id, last_seq);

ALTER TABLE ONLY public.execution
    ADD CONSTRAINT execution_pkey PRIMARY KEY (tenant, execution_arn);

ALTER TABLE ONLY public.execution_tag
    ADD CONSTRAINT execution_tag_pkey PRIMARY KEY (tenant, execution_arn, key);

ALTER TABLE ONLY public.function
    ADD CONSTRAINT function_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY public.gate_key
    ADD CONSTRAINT gate_key_pkey PRIMARY KEY (tenant, gate, key);

ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (tenant, item_id);

ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (tenant, job_id);

ALTER TABLE ONLY public.job_tag
    ADD CONSTRAINT job_tag_pkey PRIMARY KEY (tenant, job_id, key);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (tenant, worker, token);

ALTER TABLE ONLY public.ostinato_schema
    ADD CONSTRAINT ostinato_schema_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.outside_event
    ADD CONSTRAINT outside_event_pkey PRIMARY KEY (tenant, source, event_id);

ALTER TABLE ONLY public.pipeline_status
    ADD CONSTRAINT pipeline_status_pkey PRIMARY KEY (tenant, pipeline, version, code);

ALTER TABLE ONLY public.ready
    ADD CONSTRAINT ready_pkey PRIMARY KEY (tenant, queue, name, rank, ready_at, job_id, task_id);

ALTER TABLE ONLY public.removed_event
    ADD CONSTRAINT removed_event_pkey PRIMARY KEY (tenant, source, event_id);

ALTER TABLE ONLY public.removed_key
    ADD CONSTRAINT removed_key_pkey PRIMARY KEY (tenant, idempotency_key);

ALTER TABLE ONLY public.result_digest
    ADD CONSTRAINT result_digest_pkey PRIMARY KEY (tenant, number);

ALTER TABLE ONLY public.result_field
    ADD CONSTRAINT result_field_pkey PRIMARY KEY (tenant, number, key);

ALTER TABLE ONLY public.result
    ADD CONSTRAINT result_pkey PRIMARY KEY (tenant, number);

ALTER TABLE ONLY public.result_vector
    ADD CONSTRAINT result_vector_pkey PRIMARY KEY (tenant, model, number);

ALTER TABLE ONLY public.result_words
    ADD CONSTRAINT result_words_pkey PRIMARY KEY (tenant, number);

ALTER TABLE ONLY public.signal
    ADD CONSTRAINT signal_pkey PRIMARY KEY (tenant, job_id, name, signal_id);

ALTER TABLE ONLY public.state_transition
    ADD CONSTRAINT state_transition_pkey PRIMARY KEY (tenant, pipeline, version, from_code, to_code);

ALTER TABLE ONLY public.status_history
    ADD CONSTRAINT status_history_pkey PRIMARY KEY (tenant, item_id, number);

ALTER TABLE ONLY public.step
    ADD CONSTRAINT step_pkey PRIMARY KEY (tenant, job_id, task_id, key);

ALTER TABLE ONLY public.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (tenant, topic, key, bucket, writer);

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (tenant, job_id, task_id);

ALTER TABLE ONLY public.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (tenant);

ALTER TABLE ONLY public.timer
    ADD CONSTRAINT timer_pkey PRIMARY KEY (tenant, job_id, task_id);

ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (tenant, job_id, task_id, attempt);

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (tenant, worker_id);

CREATE UNIQUE INDEX api_key_by_id ON public.api_key USING btree (key_id);

CREATE INDEX approval_requested ON public.approval USING btree (tenant, requested_at, job_id, task_id, key) WHERE (job_id <> ''::text);

CREATE INDEX approval_waiting ON public.approval USING btree (tenant, requested_at, job_id, task_id, key) WHERE (state = 'waiting'::text);

CREATE INDEX audit_log_refuses ON public.audit_log USING btree (tenant, refuses) WHERE (refuses IS NOT NULL);

CREATE INDEX dead_letter_error ON public.dead_letter USING btree (tenant, error_type, failed_at, job_id, task_id) WHERE (error_type <> ''::text);

CREATE INDEX dead_letter_failed ON public.dead_letter USING btree (tenant, failed_at, job_id, task_id) WHERE (task_id <> ''::text);

CREATE INDEX dead_letter_name ON public.dead_letter USING btree (tenant, name, failed_at, job_id, task_id) WHERE (name <> ''::text);

CREATE INDEX definition_created ON public.definition USING btree (tenant, created_at);

CREATE INDEX edge_down ON public.edge USING btree ((
CASE tenant
    WHEN ''::text THEN ''::text
    ELSE tenant
END), job_id, down);

CREATE INDEX event_page_feed ON public.event_page USING btree (tenant, transaction, "position");

CREATE INDEX execution_agent ON public.execution USING btree (tenant, agent_name, start_at, execution_arn) WHERE (agent_name <> ''::text);

CREATE INDEX execution_agent_status ON public.execution USING btree (tenant, agent_name, status, start_at, execution_arn) WHERE (tenant <> ''::text);

CREATE INDEX execution_correlation ON public.execution USING btree (tenant, correlation_id, start_at, execution_arn) WHERE (correlation_id IS NOT NULL);

CREATE INDEX execution_indexed ON public.execution USING btree (tenant, indexed_at, execution_arn) WHERE (execution_arn <> ''::text);

CREATE INDEX execution_start ON public.execution USING btree (tenant, start_at, execution_arn) WHERE (execution_arn <> ''::text);

CREATE INDEX execution_status ON public.execution USING btree (tenant, status, start_at, execution_arn) WHERE (status <> ''::text);

CREATE INDEX execution_tag_key ON public.execution_tag USING btree (tenant, key, start_at, execution_arn) WHERE (key <> ''::text);

CREATE INDEX execution_tag_value ON public.execution_tag USING btree (tenant, key, value, start_at, execution_arn) WHERE (execution_arn <> ''::text);

CREATE UNIQUE INDEX gate_key_job ON public.gate_key USING btree (tenant, job_id);

CREATE INDEX item_entered ON public.item USING btree (tenant, pipeline, entered_at, item_id) WHERE (item_id <> ''::text);

CREATE INDEX item_held ON public.item USING btree (tenant, pipeline, entered_at, item_id) WHERE ((run = 0) AND open);

CREATE UNIQUE INDEX item_job ON public.item USING btree (tenant, job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX item_retry ON public.item USING btree (tenant, pipeline, retry_at, item_id) WHERE (retry_at IS NOT NULL);

CREATE INDEX item_status ON public.item USING btree (tenant, pipeline, status, status_at, item_id) WHERE (item_id <> ''::text);

CREATE INDEX item_stuck ON public.item USING btree (tenant, pipeline, status_at, item_id, status) WHERE (open AND (run > 0));

CREATE INDEX item_unrun ON public.item USING btree (tenant, status_at, item_id) WHERE ((run = 0) AND (NOT open));

CREATE INDEX job_correlation ON public.job USING btree (tenant, correlation_id, created_at, job_id) WHERE (correlation_id <> job_id);

CREATE INDEX job_created ON public.job USING btree (tenant, created_at, job_id) WHERE (job_id <> ''::text);

CREATE UNIQUE INDEX job_idempotency ON public.job USING btree (tenant, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX job_keep ON public.job USING btree (tenant, keep_seconds, finished_at, job_id) WHERE (keep_seconds IS NOT NULL);

CREATE INDEX job_name ON public.job USING btree (tenant, name, created_at, job_id) WHERE (name <> ''::text);

CREATE INDEX job_name_state ON public.job USING btree (tenant, name, state, created_at, job_id) WHERE ((state = 'failed'::text) OR (state = 'cancelled'::text) OR (state = 'timed_out'::text));

CREATE INDEX job_request ON public.job USING btree (tenant, request_id, created_at, job_id) WHERE (request_id IS NOT NULL);

CREATE INDEX job_state ON public.job USING btree (tenant, state, created_at, job_id) WHERE (state <> ''::text);

CREATE INDEX job_tag_key ON public.job_tag USING btree (tenant, key, created_at, job_id) WHERE (key <> ''::text);

CREATE INDEX job_tag_value ON public.job_tag USING btree (tenant, key, value, created_at, job_id) WHERE (job_id <> ''::text);

CREATE INDEX outside_event_received ON public.outside_event USING btree (tenant, received_at, source, event_id);

CREATE INDEX ready_system ON public.ready USING btree (tenant) WHERE (queue = 'ostinato.system'::text);

CREATE INDEX removed_event_at ON public.removed_event USING btree (tenant, removed_at, source, event_id) WHERE (event_id <> ''::text);

CREATE INDEX removed_key_at ON public.removed_key USING btree (tenant, removed_at, idempotency_key) WHERE (idempotency_key <> ''::text);

CREATE INDEX result_created ON public.result USING btree (tenant, created_at, number) WHERE (number > 0);

CREATE INDEX result_domain ON public.result USING btree (tenant, domain, created_at, number) WHERE (domain <> ''::text);

CREATE INDEX result_field_value ON public.result_field USING btree (tenant, key, value, created_at, number);

CREATE UNIQUE INDEX result_job ON public.result USING btree (tenant, job_id);

CREATE UNIQUE INDEX result_name ON public.result USING btree (tenant, result_id);

CREATE INDEX result_vector_number ON public.result_vector USING btree (tenant, number);

CREATE INDEX result_words_words ON public.result_words USING gin (words) WITH (fastupdate=off);

CREATE INDEX signal_untaken ON public.signal USING btree (tenant, job_id, name, seq, signal_id) WHERE (NOT taken);

CREATE INDEX tally_bucket ON public.tally USING btree (tenant, topic, bucket, key) WHERE (topic <> ''::text);

CREATE INDEX tally_writer ON public.tally USING btree (tenant, writer) WHERE (writer <> ''::text);

CREATE INDEX timer_budget ON public.timer USING btree (tenant, job_id, name) WHERE (kind = 'budget'::text);

CREATE INDEX timer_due ON public.timer USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX timer_turn ON public.timer USING btree (tenant, job_id, name) WHERE (kind = 'turn'::text);

CREATE INDEX timer_wait ON public.timer USING btree (tenant, job_id, name) WHERE (kind = 'wait'::text);

CREATE INDEX worker_machine ON public.worker USING btree (machine);

CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.ostinato_refuse('the audit log is append-only');

CREATE TRIGGER audit_log_unchanged BEFORE DELETE OR UPDATE ON public.audit_log FOR EACH ROW EXECUTE FUNCTION public.ostinato_refuse('the audit log is append-only');

CREATE TRIGGER event_page_immutable BEFORE UPDATE ON public.event_page FOR EACH ROW WHEN ((NOT ((new."position" = old."position") AND (new.tenant = old.tenant) AND (new.job_id = old.job_id) AND (new.first_seq = old.first_seq) AND (new.last_seq = old.last_seq) AND (new.at = old.at) AND (((new.transaction = old.transaction) AND (substr(new.body, 1, 1) = '\x01'::bytea)) OR ((new.transaction = '0'::xid8) AND (new.body = old.body)))))) EXECUTE FUNCTION public.ostinato_refuse('events are append-only');

CREATE TRIGGER item_gone AFTER DELETE ON public.item FOR EACH ROW EXECUTE FUNCTION public.ostinato_item_gone();

CREATE TRIGGER item_moved AFTER INSERT OR UPDATE OF status, version, via ON public.item FOR EACH ROW EXECUTE FUNCTION public.ostinato_item_moved();

CREATE TRIGGER item_stays BEFORE UPDATE OF tenant, item_id, pipeline ON public.item FOR EACH ROW WHEN (((old.tenant <> new.tenant) OR (old.item_id <> new.item_id) OR (old.pipeline <> new.pipeline))) EXECUTE FUNCTION public.ostinato_refuse('an item stays in its pipeline, under its id');

CREATE TRIGGER job_move BEFORE UPDATE OF state ON public.job FOR EACH ROW WHEN (((old.state <> new.state) AND (new.state <> 'completed'::text))) EXECUTE FUNCTION public.ostinato_check_job_move();

CREATE TRIGGER pipeline_status_immutable BEFORE DELETE OR UPDATE ON public.pipeline_status FOR EACH ROW EXECUTE FUNCTION public.ostinato_refuse('a version of a pipeline does not change');

CREATE TRIGGER pipeline_status_kept BEFORE TRUNCATE ON public.pipeline_status FOR EACH STATEMENT EXECUTE FUNCTION public.ostinato_refuse('a version of a pipeline does not change');

CREATE TRIGGER state_transition_immutable BEFORE DELETE OR UPDATE ON public.state_transition FOR EACH ROW EXECUTE FUNCTION public.ostinato_refuse('a version of a pipeline does not change');

CREATE TRIGGER state_transition_kept BEFORE TRUNCATE ON public.state_transition FOR EACH STATEMENT EXECUTE FUNCTION public.ostinato_refuse('a version of a pipeline does not change');

CREATE TRIGGER status_history_immutable BEFORE UPDATE ON public.status_history FOR EACH ROW EXECUTE FUNCTION public.ostinato_refuse('the history of an item is append-only');

CREATE TRIGGER status_history_kept BEFORE TRUNCATE ON public.status_history FOR EACH STATEMENT EXECUTE FUNCTION public.ostinato_refuse('the history of an item is append-only');

CREATE TRIGGER status_history_stays BEFORE DELETE ON public.status_history FOR EACH ROW EXECUTE FUNCTION public.ostinato_history_stays();

CREATE TRIGGER task_move BEFORE UPDATE OF state ON public.task FOR EACH ROW WHEN (((old.state <> new.state) AND ((new.state <> ALL (ARRAY['processing'::text, 'completed'::text])) OR (old.state = 'completed'::text) OR ((new.state = 'completed'::text) AND (old.state <> 'processing'::text))))) EXECUTE FUNCTION public.ostinato_check_task_move();

ALTER TABLE public.api_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.approval ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.audit_log ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.blob ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.dead_letter ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.definition ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.definition_tags ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.edge ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.event_page ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.execution ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.execution_tag ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.function ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.gate_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.item ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.job ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.job_tag ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.lease ENABLE ROW LEVEL SECURITY;

CREATE POLICY ostinato_engine ON public.api_key USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.approval USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.audit_log USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.blob USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.dead_letter USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.definition USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.definition_tags USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.edge USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.event_page USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.execution USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.execution_tag USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.function USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.gate_key USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.item USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.job USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.job_tag USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.lease USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.outside_event USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.pipeline_status USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.ready USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.removed_event USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.removed_key USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.result USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.result_digest USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.result_field USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.result_vector USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.result_words USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.signal USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.state_transition USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.status_history USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.step USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.tally USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.task USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.tenant USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.timer USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.usage USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_engine ON public.worker USING ((CURRENT_USER <> 'ostinato_api'::name));

CREATE POLICY ostinato_tenant ON public.api_key TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.approval TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.audit_log TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.blob TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.dead_letter TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.definition TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.definition_tags TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.edge TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.event_page TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.execution TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.execution_tag TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.function TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.gate_key TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.item TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.job TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.job_tag TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.lease TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.outside_event TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.pipeline_status TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.ready TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.removed_event TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.removed_key TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.result TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.result_digest TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.result_field TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.result_vector TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.result_words TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.signal TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.state_transition TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.status_history TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.step TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.tally TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.task TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.tenant TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.timer TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.usage TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

CREATE POLICY ostinato_tenant ON public.worker TO ostinato_api USING ((tenant = current_setting('ostinato.tenant'::text, true)));

ALTER TABLE public.outside_event ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.pipeline_status ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.ready ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.removed_event ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.removed_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_digest ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_field ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_vector ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.result_words ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.signal ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.state_transition ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.status_history ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.step ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.tally ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.task ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.tenant ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.timer ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.usage ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.worker ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA public TO ostinato_api;

GRANT SELECT ON TABLE public.approval TO ostinato_api;

GRANT SELECT ON TABLE public.audit_log TO ostinato_api;

GRANT SELECT ON TABLE public.blob TO ostinato_api;

GRANT SELECT ON TABLE public.dead_letter TO ostinato_api;

GRANT SELECT ON TABLE public.definition TO ostinato_api;

GRANT SELECT ON TABLE public.definition_tags TO ostinato_api;

GRANT SELECT ON TABLE public.edge TO ostinato_api;

GRANT SELECT ON TABLE public.event_page TO ostinato_api;

GRANT SELECT ON TABLE public.execution TO ostinato_api;

GRANT SELECT ON TABLE public.execution_tag TO ostinato_api;

GRANT SELECT ON TABLE public.function TO ostinato_api;

GRANT SELECT ON TABLE public.gate_key TO ostinato_api;

GRANT SELECT ON TABLE public.item TO ostinato_api;

GRANT SELECT ON TABLE public.job TO ostinato_api;

GRANT SELECT ON TABLE public.job_tag TO ostinato_api;

GRANT SELECT ON TABLE public.lease TO ostinato_api;

GRANT SELECT ON TABLE public.outside_event TO ostinato_api;

GRANT SELECT ON TABLE public.pipeline_status TO ostinato_api;

GRANT SELECT ON TABLE public.ready TO ostinato_api;

GRANT SELECT ON TABLE public.removed_event TO ostinato_api;

GRANT SELECT ON TABLE public.removed_key TO ostinato_api;

GRANT SELECT ON TABLE public.result TO ostinato_api;

GRANT SELECT ON TABLE public.result_digest TO ostinato_api;

GRANT SELECT ON TABLE public.result_field TO ostinato_api;

GRANT SELECT ON TABLE public.result_vector TO ostinato_api;

GRANT SELECT ON TABLE public.result_words TO ostinato_api;

GRANT SELECT ON TABLE public.signal TO ostinato_api;

GRANT SELECT ON TABLE public.state_transition TO ostinato_api;

GRANT SELECT ON TABLE public.status_history TO ostinato_api;

GRANT SELECT ON TABLE public.step TO ostinato_api;

GRANT SELECT ON TABLE public.tally TO ostinato_api;

GRANT SELECT ON TABLE public.task TO ostinato_api;

GRANT SELECT ON TABLE public.tenant TO ostinato_api;

GRANT SELECT ON TABLE public.timer TO ostinato_api;

GRANT SELECT ON TABLE public.usage TO ostinato_api;

GRANT SELECT ON TABLE public.worker TO ostinato_api;
