-- Saved results, and what they are found by: their fields, their words, and what they are about as a vector.

-- The number orders what was saved, and names a result in the tables below. Document and text are sealed where payloads are;
-- then nothing else of a result is kept unless it may be kept in clear.
CREATE TABLE result (
    number bigint GENERATED ALWAYS AS IDENTITY,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    result_id text COLLATE "C" NOT NULL CHECK (result_id <> ''),
    job_id text COLLATE "C" NOT NULL CHECK (job_id <> ''),
    domain text COLLATE "C" NOT NULL CHECK (domain <> ''),
    kind text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    document bytea NOT NULL,
    text bytea NOT NULL,
    PRIMARY KEY (tenant, number)
);
CREATE UNIQUE INDEX result_name ON result (tenant, result_id);
CREATE UNIQUE INDEX result_job ON result (tenant, job_id);
CREATE INDEX result_created ON result (tenant, created_at, number) WHERE number > 0;
CREATE INDEX result_domain ON result (tenant, domain, created_at, number) WHERE domain <> '';

CREATE TABLE result_field (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    number bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, number, key)
);
CREATE INDEX result_field_value ON result_field (tenant, key, value, created_at, number);

-- Differs: the words are a tsvector. The tenant is one more word of each, which no text can have, so that a search reads only
-- along its own results. Domain and time stand here too, so that a search reads nothing else.
CREATE TABLE result_words (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    number bigint NOT NULL,
    domain text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (tenant, number)
);
CREATE INDEX result_words_words ON result_words USING gin (words) WITH (fastupdate = off);

CREATE TABLE result_vector (
    number bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    domain text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    model text COLLATE "C" NOT NULL,
    embedding real[] NOT NULL,
    PRIMARY KEY (tenant, model, number)
);
CREATE INDEX result_vector_number ON result_vector (tenant, number);

-- The word that stands for a tenant.
CREATE FUNCTION ostinato_tenant_word(tenant text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '@' || encode(convert_to(tenant, 'UTF8'), 'hex')
$$;

-- The newest results that have any of the words, and how well they match. `@@` might tell of rows that are hidden, so that
-- behind the wall no index could be used for it. That is why this looks as the owner of the tables does, and keeps up the
-- wall itself: whoever is behind it finds what is of the tenant it may see.
DO $create$ BEGIN EXECUTE format($made$
    CREATE FUNCTION ostinato_find_words(
        of_tenant text, wanted text, of_domain text, from_at bigint, until_at bigint, keys text[], vals text[], most bigint
    ) RETURNS TABLE (number bigint, score real)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = %I, pg_temp AS $$
        WITH asked AS MATERIALIZED (
            SELECT string_agg('''' || word || '''', ' | ')::tsquery AS any_word
            FROM unnest(string_to_array(wanted, ' ')) AS word
        )
        SELECT f.number, ts_rank(f.words, asked.any_word, 1)
        FROM asked CROSS JOIN LATERAL (
            SELECT w.number, w.words
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
        WHERE CASE
            WHEN current_setting('role') = 'ostinato_api' THEN of_tenant = current_setting('ostinato.tenant', true)
            ELSE has_table_privilege(session_user, 'result_words', 'SELECT') END
    $$
$made$, current_schema()); END $create$;

-- Vectors are numbers from -127 to 127. Where there is no pgvector they are compared number by number, which is exact and slow.
CREATE FUNCTION ostinato_vector(numbers text) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
    SELECT translate(numbers, '[]', '{}')::real[]
$$;
CREATE FUNCTION ostinato_likeness(one real[], other real[]) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT sum(x * y) / nullif(sqrt(sum(x * x)) * sqrt(sum(y * y)), 0) FROM unnest(one, other) AS n (x, y)
$$;

-- Lets pgvector compare, if it is there or may be made by us; false if not. Whoever may make extensions can call this later.
CREATE FUNCTION ostinato_use_pgvector() RETURNS boolean LANGUAGE plpgsql AS $$
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
END $$;
SELECT ostinato_use_pgvector();

SELECT ostinato_raise_wall();
