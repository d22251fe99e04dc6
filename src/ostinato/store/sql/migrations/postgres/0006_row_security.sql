-- The second wall between tenants: what the server reads for a tenant it reads as a role that sees the rows of one tenant,
-- named in `ostinato.tenant`, and without a name none. The engine works for all tenants, as whoever it connects as: the
-- wall is not for it.

-- Conditions that might tell of rows that are hidden are checked last, and `||` is not known to be discreet: no index on
-- (tenant || '') can be used behind the wall. A condition that is always true keeps these indexes for the queries that say so;
-- for edges, where the primary key would still look as good, a CASE does, which is discreet.
DROP INDEX job_created;
CREATE INDEX job_created ON job (tenant, created_at, job_id) WHERE job_id <> '';
DROP INDEX edge_down;
CREATE INDEX edge_down ON edge ((CASE tenant WHEN '' THEN '' ELSE tenant END), job_id, down);
DROP INDEX dead_letter_failed;
CREATE INDEX dead_letter_failed ON dead_letter (tenant, failed_at, job_id, task_id) WHERE task_id <> '';

-- Puts up the wall, on every table that has a tenant; false if the role is not there and may not be made by us. Whoever may
-- make roles can call this later, and so must a migration that adds a table.
CREATE FUNCTION ostinato_raise_wall() RETURNS boolean LANGUAGE plpgsql AS $$
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
SELECT ostinato_raise_wall();
