-- The trace that a job belongs to goes with it: each attempt, wherever and whenever it runs, is a part of that trace.

ALTER TABLE job ADD COLUMN trace_parent TEXT;
