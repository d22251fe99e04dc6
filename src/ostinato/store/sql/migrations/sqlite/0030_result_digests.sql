-- What saved results are known by, for the audit; and how many there are. (In a table of its own: wider rows of an empty table
-- would have a planner choose other indexes.)
CREATE TABLE result_digest (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    number INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (tenant, number)
) WITHOUT ROWID;
INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
SELECT tenant, 'results', '', 0, '', count(*), 0 FROM result GROUP BY tenant;
