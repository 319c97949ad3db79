-- Everything that the gateway keeps. Meaning is in the code; these tables know keys, versions and bytes.

-- The store's clock, in microseconds since 1970. Tests replace this function to move time.
CREATE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Narrow rows that change often. No index but the key, so that updates stay within their page.
CREATE TABLE record (
    tenant  text COLLATE "C" NOT NULL,
    kind    smallint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) WITH (fillfactor = 80);

-- Bodies: written once, read by id. They are ciphertext or signed text, so compressing them is wasted work.
CREATE TABLE payload (
    id      bytea PRIMARY KEY,
    tenant  text COLLATE "C" NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE payload ALTER COLUMN content SET STORAGE EXTERNAL;

-- Large bodies are written before the commit that needs them; until then they are listed here.
CREATE TABLE payload_pending (
    id bytea PRIMARY KEY,
    at bigint NOT NULL
);

-- Each mailbox counts its deliveries.
CREATE TABLE mailbox (
    tenant  text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    counter bigint NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);

CREATE TABLE delivery (
    tenant       text COLLATE "C" NOT NULL,
    mailbox      text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    msg_id       text NOT NULL,
    msg_type     text NOT NULL,
    subject_kind smallint NOT NULL,
    subject_id   text COLLATE "C" NOT NULL,
    payload      bytea,
    at           bigint NOT NULL,
    until        bigint NOT NULL,
    PRIMARY KEY (tenant, mailbox, number)
);
CREATE INDEX delivery_subject ON delivery (tenant, subject_id, subject_kind);

-- What one reader has done with a delivery that others still see.
CREATE TABLE mark (
    tenant       text COLLATE "C" NOT NULL,
    mailbox      text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    reader       text COLLATE "C" NOT NULL,
    hidden       boolean NOT NULL,
    acknowledged boolean NOT NULL,
    PRIMARY KEY (tenant, mailbox, number, reader)
);

-- When to look at a record again. Apart from the record, so that moving a record does not touch an index.
CREATE TABLE due (
    at     bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    kind   smallint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (at, tenant, kind, id)
);

CREATE TABLE audit (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    subject_kind smallint NOT NULL,
    subject_id   text NOT NULL,
    event        bytea NOT NULL
);
