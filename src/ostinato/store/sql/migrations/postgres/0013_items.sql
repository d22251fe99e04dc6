-- Items that were given up before they were run are not held any more, and go when their time has come. What an item is
-- known by when it is entered again is written in letters, so that it can be encrypted like a payload.
DROP INDEX item_held;
CREATE INDEX item_held ON item (tenant, pipeline, entered_at, item_id) WHERE run = 0 AND open;
CREATE INDEX item_unrun ON item (tenant, status_at, item_id) WHERE run = 0 AND NOT open;
UPDATE item SET digest = convert_to(encode(digest, 'hex'), 'UTF8');

-- That an item went on without an optional step is no dead letter.
DELETE FROM dead_letter WHERE EXISTS (
    SELECT 1 FROM job j JOIN task t ON t.tenant = j.tenant AND t.job_id = j.job_id
    WHERE j.tenant = dead_letter.tenant AND j.job_id = dead_letter.job_id AND j.name LIKE 'pipeline:%'
        AND t.task_id = dead_letter.task_id AND t.optional);
