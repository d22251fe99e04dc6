-- Differs: SQLite knows no roles and no rows that some may not see; the tenant in every statement is the only wall here. The
-- indexes are those of PostgreSQL, where the wall needs them, because the statements are.

DROP INDEX job_created;
CREATE INDEX job_created ON job (tenant, created_at, job_id) WHERE job_id <> '';
DROP INDEX edge_down;
CREATE INDEX edge_down ON edge ((CASE tenant WHEN '' THEN '' ELSE tenant END), job_id, down);
DROP INDEX dead_letter_failed;
CREATE INDEX dead_letter_failed ON dead_letter (tenant, failed_at, job_id, task_id) WHERE task_id <> '';
