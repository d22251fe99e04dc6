-- What tenants have described: gates, rules.

-- name: list_definitions
-- All definitions of a kind as they are now.
SELECT d.name, d.version, d.document, d.created_at, d.created_by FROM definition d
WHERE d.tenant = :tenant AND d.kind = :kind AND d.document IS NOT NULL AND d.version = (
    SELECT max(x.version) FROM definition x WHERE x.tenant = d.tenant AND x.kind = d.kind AND x.name = d.name)
ORDER BY d.name;

-- name: definitions_stamp
-- How many changes there were. (Not when the last one was: a change may be committed after one that was begun later.)
SELECT count(*) FROM definition WHERE tenant = :tenant;

-- name: read_definition
-- One definition as it is now, or as it was taken away.
SELECT name, version, document, created_at, created_by FROM definition
WHERE tenant = :tenant AND kind = :kind AND name = :name
ORDER BY version DESC LIMIT 1;

-- name: read_definition_version
-- One definition as it was in one version.
SELECT name, version, document, created_at, created_by FROM definition
WHERE tenant = :tenant AND kind = :kind AND name = :name AND version = :version;

-- name: list_versions
-- Every version of one definition, newest first.
SELECT name, version, document, created_at, created_by FROM definition
WHERE tenant = :tenant AND kind = :kind AND name = :name
ORDER BY version DESC LIMIT :most;

-- name: insert_definition
-- A new version.
INSERT INTO definition (tenant, kind, name, version, document, created_at, created_by)
VALUES (:tenant, :kind, :name, :version, :document, :now, :created_by)
RETURNING version;
