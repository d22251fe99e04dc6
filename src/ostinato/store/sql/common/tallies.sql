-- What is counted, summed over those who count. (`key || ''` leaves only the index by buckets: of a topic, the few that
-- are asked for are read, not all that there ever were.)

-- name: read_tallies
-- What was counted under keys in a range, by bucket and key.
SELECT key, bucket, sum(count), sum(amount) FROM tally
WHERE tenant = :tenant AND topic = :topic AND topic <> '' AND bucket >= :since AND bucket < :until
    AND key || '' >= :low AND key || '' < :high
GROUP BY bucket, key ORDER BY bucket, key;

-- name: sum_tallies_by_key
-- The same, by key.
SELECT key || '', sum(count), sum(amount) FROM tally
WHERE tenant = :tenant AND topic = :topic AND topic <> '' AND bucket >= :since AND bucket < :until
    AND key || '' >= :low AND key || '' < :high
GROUP BY key || '' ORDER BY key || '';

-- name: sum_tallies_by_bucket
-- The same, by bucket.
SELECT bucket, sum(count), sum(amount) FROM tally
WHERE tenant = :tenant AND topic = :topic AND topic <> '' AND bucket >= :since AND bucket < :until
    AND key || '' >= :low AND key || '' < :high
GROUP BY bucket ORDER BY bucket;

-- name: take_tallies
-- Take out rows of processes that are gone.
DELETE FROM tally WHERE tenant = :tenant AND (topic, key, bucket, writer) IN (
    SELECT t.topic, t.key, t.bucket, t.writer FROM tally t
    WHERE t.tenant = :tenant AND t.writer <> '' AND t.writer < :before
    ORDER BY t.writer LIMIT :most)
RETURNING topic, key, bucket, count, amount;

-- name: prune_tally
-- Remove what is older than a topic is kept.
DELETE FROM tally WHERE tenant = :tenant AND (topic, key, bucket, writer) IN (
    SELECT t.topic, t.key, t.bucket, t.writer FROM tally t
    WHERE t.tenant = :tenant AND t.topic = :topic AND t.topic <> '' AND t.bucket < :before
    ORDER BY t.bucket LIMIT :most)
RETURNING bucket;
