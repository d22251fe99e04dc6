-- What saved results are known by, for the audit; and how many there are. (In a table of its own: wider rows of an empty table
-- would have a planner choose other indexes.)
CREATE TABLE result_digest (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    number bigint NOT NULL,
    digest bigint NOT NULL,
    PRIMARY KEY (tenant, number)
);
INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
SELECT tenant, 'results', '', 0, '', count(*), 0 FROM result GROUP BY tenant;
SELECT ostinato_raise_wall();
