-- For databases whose processes have no server in common, whose clock is everybody's: here nobody writes it.
CREATE TABLE clock (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    boot TEXT NOT NULL,
    since BIGINT NOT NULL,
    at BIGINT NOT NULL,
    faster BIGINT NOT NULL
);
