-- The triggers that guard the tables.
-- Differs: where a database describes its triggers is its own affair.

-- name: list_triggers
-- All triggers: their names, whether they are on, and the text of what they call.
SELECT t.tgname::text, t.tgenabled IN ('O', 'A'), p.prosrc
FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid AND c.relnamespace = current_schema()::regnamespace
JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal
ORDER BY t.tgname;
