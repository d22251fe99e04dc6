-- Jobs that are to be pruned are found by their state: one index less to write for each job.
DROP INDEX job_finished;
