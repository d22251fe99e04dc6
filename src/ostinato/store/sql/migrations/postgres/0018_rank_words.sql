-- How well a result matches is known before the newest are chosen: what is sorted for that are two numbers for each, and not all
-- of its words, which did not fit into the memory of a sort and were written to files.
DO $create$ BEGIN EXECUTE format($made$
    CREATE OR REPLACE FUNCTION ostinato_find_words(
        of_tenant text, wanted text, of_domain text, from_at bigint, until_at bigint, keys text[], vals text[], most bigint
    ) RETURNS TABLE (number bigint, score real)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = %I, pg_temp AS $$
        WITH asked AS MATERIALIZED (
            SELECT string_agg('''' || word || '''', ' | ')::tsquery AS any_word
            FROM unnest(string_to_array(wanted, ' ')) AS word
        ),
        caller AS MATERIALIZED (
            SELECT coalesce(nullif(current_setting('role'), 'none'), session_user) AS name
        )
        SELECT f.number, f.score
        FROM caller CROSS JOIN asked CROSS JOIN LATERAL (
            SELECT w.number, ts_rank(w.words, asked.any_word, 1) AS score
            FROM (
                SELECT * FROM result_words
                WHERE words @@ (('''' || ostinato_tenant_word(of_tenant) || '''')::tsquery && asked.any_word)
                OFFSET 0  -- by the index of words, whatever other indexes seem to promise
            ) w
            WHERE w.tenant = of_tenant
                AND (of_domain IS NULL OR w.domain = of_domain)
                AND w.created_at >= from_at AND w.created_at < until_at
                AND (cardinality(keys) = 0 OR w.number IN (
                    SELECT h.number
                    FROM unnest(keys, vals) AS k (key, value)
                    CROSS JOIN LATERAL (
                        SELECT x.number FROM result_field x
                        WHERE x.tenant = of_tenant AND x.key = k.key AND x.value = k.value OFFSET 0
                    ) h
                    GROUP BY h.number HAVING count(*) = cardinality(keys)))
            ORDER BY w.number DESC
            LIMIT most
        ) f
        WHERE CASE caller.name
            WHEN 'ostinato_api' THEN of_tenant = current_setting('ostinato.tenant', true)
            ELSE has_table_privilege(caller.name, 'result_words', 'SELECT') END
    $$
$made$, current_schema()); END $create$;
