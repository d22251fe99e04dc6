-- Signals are taken in the order in which they came: their ids, which senders may choose, say nothing of it. A task that begins
-- to wait gets the first of those that nobody has taken; those that were taken are kept, and may be thousands.
ALTER TABLE signal ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX signal_untaken ON signal (tenant, job_id, name, seq, signal_id) WHERE NOT taken;
