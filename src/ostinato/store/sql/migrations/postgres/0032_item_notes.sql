-- The history of an item also says what has moved it nowhere: a step that was skipped since its condition is false, an item that
-- had failed and was rolled back. Such an entry leads from a status to itself, and `how` says what it is.

ALTER TABLE status_history ADD COLUMN how text COLLATE "C";
CREATE OR REPLACE FUNCTION ostinato_item_moved() RETURNS trigger LANGUAGE plpgsql AS $$
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

DROP TRIGGER item_moved ON item;
CREATE TRIGGER item_moved AFTER INSERT OR UPDATE OF status, version, via ON item FOR EACH ROW
EXECUTE FUNCTION ostinato_item_moved();
