-- The clock of a database without a server whose clock is everybody's.

-- name: read_clock
-- Where the clock of the file stands.
SELECT boot, since, at, faster FROM clock;

-- name: set_clock
-- How it goes on from now on; nothing if somebody else has set it since it was read.
INSERT INTO clock (one, boot, since, at, faster) VALUES (1, :boot, :since, :at, :faster)
ON CONFLICT (one) DO UPDATE SET boot = :boot, since = :since, at = :at, faster = :faster
WHERE clock.boot <> :boot OR clock.since = :seen
RETURNING one;
