-- Signals that nobody has taken, of which a task that begins to wait gets the first: those that were taken are kept, and may be
-- thousands.
CREATE INDEX signal_untaken ON signal (tenant, job_id, name, signal_id) WHERE NOT taken;
