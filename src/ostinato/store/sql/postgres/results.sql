-- Saved results: writing, searching and removing them.
-- Differs: PostgreSQL takes a set as arrays, keeps words in a tsvector, and compares vectors with pgvector if that is there.

-- name: load_results_of_jobs
-- What was saved for jobs.
SELECT job_id, number, result_id, created_at FROM result
WHERE tenant = :tenant AND job_id = ANY(:job_ids::text[]);

-- name: read_results
-- Results by number, in no order.
SELECT number, result_id, job_id, domain, kind, created_at, document, text FROM result
WHERE tenant = :tenant AND number = ANY(:numbers::int8[]);

-- name: insert_result_fields
-- Let results be found by their fields.
INSERT INTO result_field (tenant, number, key, value, created_at)
SELECT :tenant, r.number, r.key, r.value, :created_at::int8
FROM unnest(:rows.0::int8[], :rows.1::text[], :rows.2::text[]) AS r (number, key, value)
RETURNING number;

-- name: insert_result_words
-- Let results be found by their words. Words are letters and digits: they need no quoting beyond the quotes.
INSERT INTO result_words (tenant, number, domain, created_at, words)
SELECT :tenant::text, r.number, r.domain, :created_at::int8, (
    SELECT concat_ws(' ', '''' || ostinato_tenant_word(:tenant::text) || '''',
        string_agg('''' || w.word || ''':' || least(w.place, 16383), ' '))
    FROM unnest(string_to_array(r.words, ' ')) WITH ORDINALITY AS w (word, place)
)::tsvector
FROM unnest(:rows.0::int8[], :rows.1::text[], :rows.2::text[]) AS r (number, domain, words)
RETURNING number;

-- name: insert_result_vectors
-- Let results be found by what they are about.
INSERT INTO result_vector (number, tenant, domain, created_at, model, embedding)
SELECT r.number, :tenant, r.domain, :created_at::int8, :model::text, ostinato_vector(r.embedding)
FROM unnest(:rows.0::int8[], :rows.1::text[], :rows.2::text[]) AS r (number, domain, embedding)
RETURNING number;

-- name: find_results_by_field
-- Results that have a field of this value, and the others that are asked for.
SELECT f.created_at, f.number FROM result_field f
WHERE f.tenant = :tenant AND f.key = :key AND f.value = :value
    AND (f.created_at, f.number) < (:before_at, :before_number) AND f.created_at >= :from_at
    AND (:domain::text IS NULL OR EXISTS (
        SELECT 1 FROM result r WHERE r.tenant = f.tenant AND r.number = f.number AND r.domain = :domain LIMIT 1 OFFSET 0))
    AND NOT EXISTS (
        SELECT 1 FROM unnest(:fields.0::text[], :fields.1::text[]) AS k (key, value)
        WHERE NOT EXISTS (
            SELECT 1 FROM result_field x
            WHERE x.tenant = f.tenant AND x.number = f.number AND x.key = k.key AND x.value = k.value LIMIT 1 OFFSET 0)
        LIMIT 1 OFFSET 0)
ORDER BY f.created_at DESC, f.number DESC
LIMIT :most;

-- name: search_result_words
-- The best of the newest results that have any of the words, best first.
SELECT number, score
FROM ostinato_find_words(
    :tenant, :words, :domain, :from_at, :until_at, :fields.0::text[], :fields.1::text[], :ranked)
ORDER BY score DESC, number DESC
LIMIT :most;

-- name: search_result_vectors
-- The most alike of the newest results, best first.
WITH asked AS MATERIALIZED (SELECT ostinato_vector(:vector) AS vector)
SELECT m.number, m.score
FROM (
    SELECT v.number, ostinato_likeness(v.embedding, asked.vector) AS score
    FROM asked CROSS JOIN LATERAL (
        SELECT x.tenant, x.number, x.embedding FROM result_vector x
        WHERE x.tenant = :tenant AND x.model = :model
            AND (:domain::text IS NULL OR x.domain = :domain)
            AND x.created_at >= :from_at AND x.created_at < :until_at
            AND (:many::int8 = 0 OR x.number IN (
                SELECT h.number
                FROM unnest(:fields.0::text[], :fields.1::text[]) AS k (key, value)
                CROSS JOIN LATERAL (
                    SELECT f.number FROM result_field f
                    WHERE f.tenant = :tenant AND f.key = k.key AND f.value = k.value OFFSET 0
                ) h
                GROUP BY h.number HAVING count(*) = :many::int8))
        ORDER BY x.number DESC
        LIMIT :compared
    ) v
    OFFSET 0
) m
WHERE m.score >= :least
ORDER BY m.score DESC, m.number DESC
LIMIT :most;

-- name: delete_result_digests
-- Remove what belongs to results.
DELETE FROM result_digest WHERE tenant = :tenant AND number = ANY(:numbers::int8[]);

-- name: delete_result_fields
-- Remove what belongs to results.
DELETE FROM result_field WHERE tenant = :tenant AND number = ANY(:numbers::int8[]);

-- name: delete_result_words
-- Remove what belongs to results.
DELETE FROM result_words WHERE tenant = :tenant AND number = ANY(:numbers::int8[]);

-- name: delete_result_vectors
-- Remove what belongs to results.
DELETE FROM result_vector WHERE tenant = :tenant AND number = ANY(:numbers::int8[]);

-- name: delete_results
-- Remove results.
DELETE FROM result WHERE tenant = :tenant AND number = ANY(:numbers::int8[]) RETURNING number;

-- name: audit_result_vector
-- What a result is about, as it is stored.
SELECT model, translate(embedding::text, '{}', '[]') FROM result_vector
WHERE tenant = :tenant AND number = :number;
