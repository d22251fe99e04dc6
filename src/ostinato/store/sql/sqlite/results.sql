-- Saved results: writing, searching and removing them.
-- Differs: SQLite takes a set as one JSON text, keeps words in FTS5, and compares vectors with sqlite-vec.

-- name: load_results_of_jobs
-- What was saved for jobs.
SELECT r.job_id, r.number, r.result_id, r.created_at
FROM json_each(:job_ids) k
CROSS JOIN result r ON r.tenant = :tenant AND r.job_id = k.value;

-- name: read_results
-- Results by number, in no order.
SELECT r.number, r.result_id, r.job_id, r.domain, r.kind, r.created_at, r.document, r.text
FROM json_each(:numbers) k
CROSS JOIN result r ON r.number = k.value AND r.tenant = :tenant;

-- name: insert_result_fields
-- Let results be found by their fields.
INSERT INTO result_field (tenant, number, key, value, created_at)
SELECT :tenant, value ->> 0, value ->> 1, value ->> 2, :created_at FROM json_each(:rows) WHERE true
RETURNING number;

-- name: insert_result_words
-- Let results be found by their words.
INSERT INTO result_words (rowid, tenant, words)
SELECT value ->> 0, hex(:tenant), value ->> 2 FROM json_each(:rows);

-- name: insert_result_vectors
-- Let results be found by what they are about.
INSERT INTO result_vector (number, tenant, domain, created_at, model, embedding)
SELECT value ->> 0, :tenant, value ->> 1, :created_at, :model, vec_int8(value ->> 2) FROM json_each(:rows) WHERE true
RETURNING number;

-- name: find_results_by_field
-- Results that have a field of this value, and the others that are asked for.
SELECT f.created_at, f.number FROM result_field f
WHERE f.tenant = :tenant AND f.key = :key AND f.value = :value
    AND (f.created_at, f.number) < (:before_at, :before_number) AND f.created_at >= :from_at
    AND (:domain IS NULL OR EXISTS (
        SELECT 1 FROM result r WHERE r.number = f.number AND r.tenant = f.tenant AND r.domain = :domain))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:fields) k
        WHERE NOT EXISTS (
            SELECT 1 FROM result_field x
            WHERE x.tenant = f.tenant AND x.number = f.number AND x.key = k.value ->> 0 AND x.value = k.value ->> 1))
ORDER BY f.created_at DESC, f.number DESC
LIMIT :most;

-- name: search_result_words
-- The best of the newest results that have any of the words, best first.
SELECT m.number, m.score
FROM (
    SELECT result_words.rowid AS number, -bm25(result_words, 0.0, 1.0) AS score
    FROM result_words CROSS JOIN result r ON r.number = result_words.rowid
    WHERE result_words MATCH
            'tenant : "' || hex(:tenant) || '" AND words : ("' || replace(:words, ' ', '" OR "') || '")'
        AND r.tenant = :tenant
        AND (:domain IS NULL OR r.domain = :domain)
        AND r.created_at >= :from_at AND r.created_at < :until_at
        AND (:many = 0 OR r.number IN (
            SELECT x.number
            FROM json_each(:fields) k
            CROSS JOIN result_field x ON x.tenant = :tenant AND x.key = k.value ->> 0 AND x.value = k.value ->> 1
            GROUP BY x.number HAVING count(*) = :many))
    ORDER BY result_words.rowid DESC
    LIMIT :ranked
) m
ORDER BY m.score DESC, m.number DESC
LIMIT :most;

-- name: search_result_vectors
-- The most alike of the newest results, best first.
SELECT m.number, m.score
FROM (
    SELECT v.number, 1 - vec_distance_cosine(vec_int8(v.embedding), vec_int8(:vector)) AS score
    FROM result_vector v
    WHERE v.tenant = :tenant AND v.model = :model
        AND (:domain IS NULL OR v.domain = :domain)
        AND v.created_at >= :from_at AND v.created_at < :until_at
        AND (:many = 0 OR v.number IN (
            SELECT x.number
            FROM json_each(:fields) k
            CROSS JOIN result_field x ON x.tenant = :tenant AND x.key = k.value ->> 0 AND x.value = k.value ->> 1
            GROUP BY x.number HAVING count(*) = :many))
    ORDER BY v.number DESC
    LIMIT :compared
) m
WHERE m.score >= :least
ORDER BY m.score DESC, m.number DESC
LIMIT :most;

-- name: delete_result_digests
-- Remove what belongs to results.
DELETE FROM result_digest WHERE tenant = :tenant AND number IN (SELECT value FROM json_each(:numbers));

-- name: delete_result_fields
-- Remove what belongs to results.
DELETE FROM result_field WHERE tenant = :tenant AND number IN (SELECT value FROM json_each(:numbers));

-- name: delete_result_words
-- Remove what belongs to results. The tenant of a number is known only as long as the result is there.
DELETE FROM result_words WHERE rowid IN (
    SELECT r.number FROM json_each(:numbers) k CROSS JOIN result r ON r.number = k.value AND r.tenant = :tenant);

-- name: delete_result_vectors
-- Remove what belongs to results.
DELETE FROM result_vector WHERE +tenant = :tenant AND number IN (SELECT value FROM json_each(:numbers));

-- name: delete_results
-- Remove results.
DELETE FROM result WHERE +tenant = :tenant AND number IN (SELECT value FROM json_each(:numbers)) RETURNING number;

-- name: audit_result_vector
-- What a result is about, as it is stored.
SELECT model, embedding FROM result_vector WHERE tenant = :tenant AND number = :number;
