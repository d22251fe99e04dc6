-- Where the clock of the file stands: `at` is the time, in microseconds since the epoch, at `since` microseconds after the
-- start of the machine that `boot` names; it runs by so many millionths faster than time.
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    at INTEGER NOT NULL,
    faster INTEGER NOT NULL
) STRICT;
