-- Encrypting stored payloads with another key: what is generated for every table with payloads, where it differs. A page is
-- found by its last event, which is in its key, and known by its first.

-- name: rotate_event_page
-- Pages of events that the newest key has not encrypted, from a place on.
SELECT job_id, first_seq, body FROM event_page
WHERE tenant = :tenant AND (job_id, last_seq) > (:after_job_id, :after_first_seq) AND substr(body, 1, 17) <> :head
ORDER BY job_id, last_seq
LIMIT :most;

-- name: reseal_event_page
-- Replace a page of events. (It is found by its last event, which is in its key.)
UPDATE event_page SET body = :new_body
WHERE tenant = :tenant AND job_id = :job_id AND first_seq = :first_seq AND body = :old_body AND last_seq = (
    SELECT min(x.last_seq) FROM event_page x WHERE x.tenant = :tenant AND x.job_id = :job_id AND x.last_seq >= :first_seq
)
RETURNING first_seq;
