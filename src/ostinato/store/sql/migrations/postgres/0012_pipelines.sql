-- Pipelines: items that move through statuses, and the legal moves, which the database itself enforces.

-- What each version of a pipeline has for statuses, and which moves between them are legal. From 0 an item is entered.
CREATE TABLE pipeline_status (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    pipeline text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    code bigint NOT NULL CHECK (code > 0),
    name text COLLATE "C" NOT NULL,
    phase text COLLATE "C",
    position bigint NOT NULL,
    PRIMARY KEY (tenant, pipeline, version, code)
);
CREATE TABLE state_transition (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    pipeline text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    from_code bigint NOT NULL,
    to_code bigint NOT NULL,
    PRIMARY KEY (tenant, pipeline, version, from_code, to_code)
);

CREATE TABLE item (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    item_id text COLLATE "C" NOT NULL CHECK (item_id <> ''),
    pipeline text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    status bigint NOT NULL,
    open boolean NOT NULL,
    job_id text COLLATE "C",
    run bigint NOT NULL CHECK (run >= 0),
    steps bytea NOT NULL,
    step text COLLATE "C",
    attempt bigint NOT NULL,
    retry_at bigint,
    failures bigint NOT NULL,
    error_type text COLLATE "C",
    entered_at bigint NOT NULL,
    status_at bigint NOT NULL,
    submitted_by text COLLATE "C",
    reviewed_by text COLLATE "C",
    reviewed_at bigint,
    digest bytea NOT NULL,
    via text COLLATE "C",
    payload bytea NOT NULL,
    PRIMARY KEY (tenant, item_id)
);
CREATE UNIQUE INDEX item_job ON item (tenant, job_id) WHERE job_id IS NOT NULL;
CREATE INDEX item_entered ON item (tenant, pipeline, entered_at, item_id) WHERE item_id <> '';
CREATE INDEX item_status ON item (tenant, pipeline, status, status_at, item_id) WHERE item_id <> '';
CREATE INDEX item_open ON item (tenant, pipeline, status_at, item_id) WHERE open;
CREATE INDEX item_held ON item (tenant, pipeline, entered_at, item_id) WHERE run = 0;
CREATE INDEX item_retry ON item (tenant, pipeline, retry_at, item_id) WHERE retry_at IS NOT NULL;

-- Every move of every item, in order.
CREATE TABLE status_history (
    tenant text COLLATE "C" NOT NULL,
    item_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    from_code bigint NOT NULL,
    to_code bigint NOT NULL,
    at bigint,
    version bigint NOT NULL,
    run bigint NOT NULL,
    step text COLLATE "C",
    attempt bigint,
    moved_by text COLLATE "C",
    reason text COLLATE "C",
    PRIMARY KEY (tenant, item_id, number)
);

-- Illegal moves are refused whoever makes them, and legal ones are written down. The engine says in `via` which moves have
-- led to the new status, each from where the one before it led; for anybody else there is one move.
CREATE FUNCTION ostinato_item_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before bigint := 0;
    moves jsonb := NEW.via::jsonb;
    move jsonb;
    last bigint := 0;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD.status;
        IF OLD.status = NEW.status AND OLD.version = NEW.version THEN
            RETURN NULL;
        END IF;
        IF NOT EXISTS (
            SELECT FROM pipeline_status s
            WHERE s.tenant = NEW.tenant AND s.pipeline = NEW.pipeline AND s.version = NEW.version AND s.code = NEW.status
        ) THEN
            RAISE EXCEPTION 'ostinato: item % cannot go from % to %: version % of pipeline % has no such status',
                NEW.item_id, OLD.status, NEW.status, NEW.version, NEW.pipeline USING ERRCODE = 'check_violation';
        END IF;
        IF OLD.status = NEW.status THEN
            RETURN NULL;
        END IF;
        SELECT coalesce(max(h.number), 0) INTO last FROM status_history h
        WHERE h.tenant = NEW.tenant AND h.item_id = NEW.item_id;
    END IF;
    IF (moves -> -1 ->> 'to')::bigint IS DISTINCT FROM NEW.status OR (TG_OP = 'UPDATE' AND NEW.via = OLD.via) THEN
        moves := jsonb_build_array(jsonb_build_object('to', NEW.status, 'by', 'sql'));
        INSERT INTO tally AS t (tenant, topic, key, bucket, writer, count, amount)
        SELECT NEW.tenant, 'items', NEW.pipeline || '/' || c.code, 0, '', c.change, 0
        FROM (VALUES (before, -1), (NEW.status, 1)) AS c (code, change)
        WHERE c.code <> 0
        ORDER BY c.code
        ON CONFLICT (tenant, topic, key, bucket, writer) DO UPDATE SET count = t.count + excluded.count;
    END IF;
    FOR move IN SELECT jsonb_array_elements(moves) LOOP
        last := last + 1;
        IF NOT EXISTS (
            SELECT FROM state_transition t
            WHERE t.tenant = NEW.tenant AND t.pipeline = NEW.pipeline AND t.version = NEW.version
                AND t.from_code = before AND t.to_code = (move ->> 'to')::bigint
        ) THEN
            RAISE EXCEPTION 'ostinato: item % cannot go from % to %: pipeline % does not allow this move',
                NEW.item_id, before, move ->> 'to', NEW.pipeline USING ERRCODE = 'check_violation';
        END IF;
        INSERT INTO status_history (
            tenant, item_id, number, from_code, to_code, at, version, run, step, attempt, moved_by, reason
        ) VALUES (
            NEW.tenant, NEW.item_id, last, before, (move ->> 'to')::bigint, (move ->> 'at')::bigint,
            NEW.version, NEW.run, move ->> 'step', (move ->> 'attempt')::bigint, move ->> 'by', move ->> 'why'
        );
        before := (move ->> 'to')::bigint;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER item_moved AFTER INSERT OR UPDATE OF status, version ON item FOR EACH ROW
EXECUTE FUNCTION ostinato_item_moved();

CREATE TRIGGER item_stays BEFORE UPDATE OF tenant, item_id, pipeline ON item FOR EACH ROW
WHEN (OLD.tenant <> NEW.tenant OR OLD.item_id <> NEW.item_id OR OLD.pipeline <> NEW.pipeline)
EXECUTE FUNCTION ostinato_refuse('an item stays in its pipeline, under its id');

CREATE FUNCTION ostinato_item_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM status_history WHERE tenant = OLD.tenant AND item_id = OLD.item_id;
    RETURN NULL;
END $$;
CREATE TRIGGER item_gone AFTER DELETE ON item FOR EACH ROW EXECUTE FUNCTION ostinato_item_gone();
CREATE FUNCTION ostinato_history_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM item i WHERE i.tenant = OLD.tenant AND i.item_id = OLD.item_id) THEN
        RAISE EXCEPTION 'ostinato: the history of an item is append-only' USING ERRCODE = 'check_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER status_history_stays BEFORE DELETE ON status_history FOR EACH ROW
EXECUTE FUNCTION ostinato_history_stays();
CREATE TRIGGER status_history_immutable BEFORE UPDATE ON status_history FOR EACH ROW
EXECUTE FUNCTION ostinato_refuse('the history of an item is append-only');

SELECT ostinato_raise_wall();
