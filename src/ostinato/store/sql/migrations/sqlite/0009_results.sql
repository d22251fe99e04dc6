-- Saved results, and what they are found by: their fields, their words, and what they are about as a vector.

-- The number orders what was saved, and names a result in the tables below. Document and text are sealed where payloads are;
-- then nothing else of a result is kept unless it may be kept in clear.
CREATE TABLE result (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    result_id TEXT NOT NULL CHECK (result_id <> ''),
    job_id TEXT NOT NULL CHECK (job_id <> ''),
    domain TEXT NOT NULL CHECK (domain <> ''),
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    document BLOB NOT NULL,
    text BLOB NOT NULL
);
CREATE UNIQUE INDEX result_name ON result (tenant, result_id);
CREATE UNIQUE INDEX result_job ON result (tenant, job_id);
CREATE INDEX result_created ON result (tenant, created_at, number) WHERE number > 0;
CREATE INDEX result_domain ON result (tenant, domain, created_at, number) WHERE domain <> '';

CREATE TABLE result_field (
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, number, key)
) WITHOUT ROWID;
CREATE INDEX result_field_value ON result_field (tenant, key, value, created_at, number);

-- Differs: the words are an FTS5 index that keeps no text of its own. Its rows are numbers of results; the tenant is one more
-- word of each, so that a search reads only along its own results. Words come as `core/words.py` makes them: `ascii` only
-- takes them apart at the spaces.
CREATE VIRTUAL TABLE result_words USING fts5(tenant, words, content='', contentless_delete=1, tokenize='ascii');

-- Vectors are bytes from -127 to 127. Domain and time stand here too, so that a search reads nothing else. (With a rowid:
-- rows of this size do not fit into the nodes of a tree without.)
CREATE TABLE result_vector (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL CHECK (tenant <> ''),
    domain TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    model TEXT NOT NULL,
    embedding BLOB NOT NULL
);
CREATE INDEX result_vector_model ON result_vector (tenant, model, number);
