-- Items of pipelines, as they are read.

-- name: read_item
-- One item, with what was given for it.
SELECT {item} FROM item WHERE tenant = :tenant AND item_id = :item_id;

-- name: find_items
-- Items of a pipeline, newest first.
SELECT entered_at, item_id FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND item_id <> '' AND (entered_at, item_id) < (:at, :item_id)
ORDER BY entered_at DESC, item_id DESC LIMIT :most;

-- name: find_items_by_status
-- Items in one status, in which they are longest first.
SELECT status_at, item_id FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND status = :status AND item_id <> ''
    AND (status_at, item_id) > (:at, :item_id)
ORDER BY status_at, item_id LIMIT :most;

-- name: find_items_held
-- Items that were entered, never run, and not given up, longest first.
SELECT entered_at, item_id FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND run = 0 AND open AND (entered_at, item_id) > (:at, :item_id)
ORDER BY entered_at, item_id LIMIT :most;

-- name: find_items_stuck
-- Items that were run and are not over, in their status since before a time, longest first; but for those in reviews,
-- of which the codes are given as |300|310|.
SELECT status_at, item_id FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND open AND run > 0
    AND (status_at, item_id) > (:at, :item_id) AND status_at < :before
    AND CAST(:reviews AS TEXT) NOT LIKE '%|' || CAST(status AS TEXT) || '|%'
ORDER BY status_at, item_id LIMIT :most;

-- name: count_items_stuck
-- How many of these there are.
SELECT count(*) FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND open AND run > 0 AND status_at < :before
    AND CAST(:reviews AS TEXT) NOT LIKE '%|' || CAST(status AS TEXT) || '|%';

-- name: find_items_retrying
-- Items whose next attempt is due at a time, the next one first.
SELECT retry_at, item_id FROM item
WHERE tenant = :tenant AND pipeline = :pipeline AND retry_at IS NOT NULL AND (retry_at, item_id) > (:at, :item_id)
ORDER BY retry_at, item_id LIMIT :most;

-- name: prune_unrun_item
-- Remove items that were never run and were over before a time: no run of theirs takes them along.
DELETE FROM item WHERE tenant = :tenant AND item_id IN (
    SELECT x.item_id FROM item x
    WHERE x.tenant = :tenant AND x.run = 0 AND NOT x.open AND x.status_at < :before
    ORDER BY x.status_at LIMIT :most)
RETURNING pipeline, status;

-- name: list_history
-- The moves of an item, in order.
SELECT number, from_code, to_code, at, version, run, step, attempt, moved_by, reason, how
FROM status_history
WHERE tenant = :tenant AND item_id = :item_id AND number > :after
ORDER BY number LIMIT :most;

-- name: audit_item_moves
-- Items whose history does not lead from nowhere, move by move, to where they are.
SELECT i.item_id, i.status, h.number, h.from_code, h.to_code
FROM item i JOIN status_history h ON h.tenant = i.tenant AND h.item_id = i.item_id
WHERE i.tenant = :tenant AND (
    h.from_code <> coalesce((
        SELECT b.to_code FROM status_history b
        WHERE b.tenant = h.tenant AND b.item_id = h.item_id AND b.number = h.number - 1), 0)
    OR (h.to_code <> i.status AND NOT EXISTS (
        SELECT 1 FROM status_history a
        WHERE a.tenant = h.tenant AND a.item_id = h.item_id AND a.number = h.number + 1)))
ORDER BY i.item_id, h.number LIMIT 100;

-- name: audit_legal_moves
-- What the database takes for legal, by pipeline and version.
SELECT pipeline, version, from_code, to_code FROM state_transition WHERE tenant = :tenant ORDER BY pipeline, version;

-- name: audit_item_counts
-- Statuses in which there are not as many items as were counted.
SELECT c.key, sum(c.items), sum(c.counted) FROM (
    SELECT i.pipeline || '/' || i.status AS key, 1 AS items, 0 AS counted FROM item i WHERE i.tenant = :tenant
    UNION ALL
    SELECT t.key, 0, t.count FROM tally t WHERE t.tenant = :tenant AND t.topic = 'items'
) c
GROUP BY c.key HAVING sum(c.items) <> sum(c.counted) ORDER BY c.key LIMIT 100;
