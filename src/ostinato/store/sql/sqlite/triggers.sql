-- The triggers that guard the tables.
-- Differs: where a database describes its triggers is its own affair.

-- name: list_triggers
-- All triggers: their names, whether they are on, and their text.
SELECT name, 1, sql || ';' FROM sqlite_master WHERE type = 'trigger' ORDER BY name;
