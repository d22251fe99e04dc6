-- Items that are stuck are found among those that were run: the others are held back, and wait for somebody.

DROP INDEX item_open;
CREATE INDEX item_stuck ON item (tenant, pipeline, status_at, item_id, status) WHERE open AND run > 0;
