-- Encrypting stored payloads with another key. What is encrypted starts with a mark and the id of its key, `head`.

-- name: rotate_task
-- Tasks with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, task_id, input, output, error FROM task
WHERE tenant = :tenant AND (job_id, task_id) > (:after_job, :after_task)
    AND (substr(input, 1, 17) <> :head OR substr(output, 1, 17) <> :head OR substr(error, 1, 17) <> :head)
ORDER BY job_id, task_id
LIMIT :most;

-- name: rotate_step
-- Steps whose result the newest key has not encrypted, from a place on.
SELECT job_id, task_id, key, output FROM step
WHERE tenant = :tenant AND (job_id, task_id, key) > (:after_job, :after_task, :after_key)
    AND substr(output, 1, 17) <> :head
ORDER BY job_id, task_id, key
LIMIT :most;

-- name: rotate_signal
-- Signals whose payload the newest key has not encrypted, from a place on.
SELECT job_id, name, signal_id, payload FROM signal
WHERE tenant = :tenant AND (job_id, name, signal_id) > (:after_job, :after_name, :after_signal)
    AND substr(payload, 1, 17) <> :head
ORDER BY job_id, name, signal_id
LIMIT :most;

-- name: rotate_blob
-- Large payloads that the newest key has not encrypted, from a place on.
SELECT job_id, digest, data FROM blob
WHERE tenant = :tenant AND (job_id, digest) > (:after_job, :after_digest) AND substr(data, 1, 17) <> :head
ORDER BY job_id, digest
LIMIT :most;

-- name: rotate_event_page
-- Pages of events that the newest key has not encrypted, from a place on.
SELECT job_id, first_seq, body FROM event_page
WHERE tenant = :tenant AND (job_id, last_seq) > (:after_job, :after_seq) AND substr(body, 1, 17) <> :head
ORDER BY job_id, last_seq
LIMIT :most;

-- name: rotate_approval
-- Approvals with a payload that the newest key has not encrypted, from a place on.
SELECT job_id, task_id, key, document, payload FROM approval
WHERE tenant = :tenant AND (job_id, task_id, key) > (:after_job, :after_task, :after_key)
    AND (substr(document, 1, 17) <> :head OR substr(payload, 1, 17) <> :head)
ORDER BY job_id, task_id, key
LIMIT :most;

-- name: rotate_outside_event
-- Events of others that the newest key has not encrypted, from a place on.
SELECT source, event_id, data FROM outside_event
WHERE tenant = :tenant AND (source, event_id) > (:after_source, :after_event) AND substr(data, 1, 17) <> :head
ORDER BY source, event_id
LIMIT :most;

-- name: rotate_item
-- Items of pipelines that the newest key has not encrypted, from a place on.
SELECT item_id, payload, digest FROM item
WHERE tenant = :tenant AND item_id > :after_item AND (substr(payload, 1, 17) <> :head OR substr(digest, 1, 17) <> :head)
ORDER BY item_id
LIMIT :most;

-- name: rotate_result
-- Saved results that the newest key has not encrypted, from a place on.
SELECT job_id, document, text FROM result
WHERE tenant = :tenant AND job_id > :after_job AND (substr(document, 1, 17) <> :head OR substr(text, 1, 17) <> :head)
ORDER BY job_id
LIMIT :most;

-- name: reseal_task
-- Replace the payloads of a task, if they still are as they were read.
UPDATE task SET input = :new_input, output = :new_output, error = :new_error
WHERE tenant = :tenant AND job_id = :job AND task_id = :task AND input = :old_input
    AND output IS NOT DISTINCT FROM :old_output AND error IS NOT DISTINCT FROM :old_error
RETURNING task_id;

-- name: reseal_step
-- Replace the result of a step.
UPDATE step SET output = :new_output
WHERE tenant = :tenant AND job_id = :job AND task_id = :task AND key = :key AND output = :old_output
RETURNING task_id;

-- name: reseal_signal
-- Replace the payload of a signal.
UPDATE signal SET payload = :new_payload
WHERE tenant = :tenant AND job_id = :job AND name = :name AND signal_id = :signal AND payload = :old_payload
RETURNING signal_id;

-- name: reseal_blob
-- Replace a large payload.
UPDATE blob SET data = :new_data
WHERE tenant = :tenant AND job_id = :job AND digest = :digest AND data = :old_data
RETURNING job_id;

-- name: reseal_event_page
-- Replace a page of events. (It is found by its last event, which is in its key.)
UPDATE event_page SET body = :new_body
WHERE tenant = :tenant AND job_id = :job AND first_seq = :seq AND body = :old_body AND last_seq = (
    SELECT min(x.last_seq) FROM event_page x WHERE x.tenant = :tenant AND x.job_id = :job AND x.last_seq >= :seq
)
RETURNING first_seq;

-- name: reseal_approval
-- Replace what is kept of an approval, if it still is as it was read.
UPDATE approval SET document = :new_document, payload = :new_payload
WHERE tenant = :tenant AND job_id = :job AND task_id = :task AND key = :key AND document = :old_document
    AND payload IS NOT DISTINCT FROM :old_payload
RETURNING task_id;

-- name: reseal_outside_event
-- Replace an event of others.
UPDATE outside_event SET data = :new_data
WHERE tenant = :tenant AND source = :source AND event_id = :event AND data = :old_data
RETURNING event_id;

-- name: reseal_item
-- Replace the payload of an item, and what it is known by.
UPDATE item SET payload = :new_payload, digest = :new_digest
WHERE tenant = :tenant AND item_id = :item AND payload = :old_payload AND digest = :old_digest
RETURNING item_id;

-- name: reseal_result
-- Replace the payloads of a saved result.
UPDATE result SET document = :new_document, text = :new_text
WHERE tenant = :tenant AND job_id = :job AND document = :old_document AND text = :old_text
RETURNING job_id;

-- name: count_sealed
-- How many payloads each key has encrypted, by kind; without a key those that nobody has.
SELECT kind, CASE WHEN substr(payload, 1, 1) = :mark THEN substr(payload, 2, 16) END AS key_id, count(*)
FROM (
    SELECT 'input' AS kind, input AS payload FROM task WHERE tenant = :tenant
    UNION ALL SELECT 'output', output FROM task WHERE tenant = :tenant AND output IS NOT NULL
    UNION ALL SELECT 'error', error FROM task WHERE tenant = :tenant AND error IS NOT NULL
    UNION ALL SELECT 'step', output FROM step WHERE tenant = :tenant
    UNION ALL SELECT 'signal', payload FROM signal WHERE tenant = :tenant
    UNION ALL SELECT 'blob', data FROM blob WHERE tenant = :tenant
    UNION ALL SELECT 'events', body FROM event_page WHERE tenant = :tenant
    UNION ALL SELECT 'approval', document FROM approval WHERE tenant = :tenant
    UNION ALL SELECT 'approval_payload', payload FROM approval WHERE tenant = :tenant AND payload IS NOT NULL
    UNION ALL SELECT 'item', payload FROM item WHERE tenant = :tenant
    UNION ALL SELECT 'item_digest', digest FROM item WHERE tenant = :tenant
    UNION ALL SELECT 'outside', data FROM outside_event WHERE tenant = :tenant
    UNION ALL SELECT 'result', document FROM result WHERE tenant = :tenant
    UNION ALL SELECT 'result_text', text FROM result WHERE tenant = :tenant
) AS p
GROUP BY 1, 2
ORDER BY 1, 2;
