-- That a playbook came to an answer without one of its agents is no dead letter.
DELETE FROM dead_letter WHERE EXISTS (
    SELECT 1 FROM job j JOIN task t ON t.tenant = j.tenant AND t.job_id = j.job_id
    WHERE j.tenant = dead_letter.tenant AND j.job_id = dead_letter.job_id AND j.name LIKE 'playbook:%'
        AND t.task_id = dead_letter.task_id AND t.optional);
