-- What was refused: an entry of its own, which names the one that it refuses. Entries of before refuse nothing.
ALTER TABLE audit_log ADD COLUMN refuses INTEGER;
CREATE INDEX audit_log_refuses ON audit_log (tenant, refuses) WHERE refuses IS NOT NULL;
