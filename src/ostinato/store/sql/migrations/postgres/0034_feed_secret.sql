-- What makes the cursors of feeds unreadable: places in the feed are those of all tenants.
CREATE TABLE feed_secret (secret bytea NOT NULL);
INSERT INTO feed_secret
SELECT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');
