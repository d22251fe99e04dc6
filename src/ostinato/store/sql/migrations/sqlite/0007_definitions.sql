-- Events that came from outside, as they came.

CREATE TABLE outside_event (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (tenant, source, event_id)
) WITHOUT ROWID;
