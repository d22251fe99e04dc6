-- Events that came from outside, as they came.

CREATE TABLE outside_event (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    source text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    received_at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
);
SELECT ostinato_raise_wall();
