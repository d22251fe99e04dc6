-- What makes the cursors of feeds unreadable: places in the feed are those of all tenants.
CREATE TABLE feed_secret (secret BLOB NOT NULL);
INSERT INTO feed_secret VALUES (randomblob(32));
