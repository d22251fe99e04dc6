-- Items that were given up before they were run are not held any more, and go when their time has come. What an item is
-- known by when it is entered again is written in letters, so that it can be encrypted like a payload.
DROP INDEX item_held;
CREATE INDEX item_held ON item (tenant, pipeline, entered_at, item_id) WHERE run = 0 AND open;
CREATE INDEX item_unrun ON item (tenant, status_at, item_id) WHERE run = 0 AND NOT open;
UPDATE item SET digest = CAST(lower(hex(digest)) AS BLOB);
