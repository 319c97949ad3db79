-- The tables have the same names and columns in both stores; they know keys, versions and bytes, and no meaning.
-- Times are microseconds since 1970. A kind is the number of countersign_core::store::Kind.

-- The store's clock. Tests replace this function to set the time.
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

-- A new record starts with a version above all that an earlier one of the same key had: a number of this sequence, shifted
-- by 16 bits. It advances too when a version grows into the next number.
CREATE SEQUENCE record_incarnation;

-- Written once, read by id. The content is ciphertext or signed text, which does not compress.
CREATE TABLE payload (
    id      bytea PRIMARY KEY,
    tenant  text COLLATE "C" NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE payload ALTER COLUMN content SET STORAGE EXTERNAL;

-- Large payloads that were written before their commit. They are invisible until it removes them from this table.
CREATE TABLE payload_pending (
    id bytea PRIMARY KEY,
    at bigint NOT NULL
);

CREATE INDEX payload_pending_by_at ON payload_pending (at);

-- The newest number of each mailbox. It outlives the deliveries, so that no number is assigned twice.
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

CREATE INDEX delivery_by_subject ON delivery (tenant, subject_id, subject_kind);

-- What one reader did with a delivery that others still see.
CREATE TABLE mark (
    tenant       text COLLATE "C" NOT NULL,
    mailbox      text COLLATE "C" NOT NULL,
    number       bigint NOT NULL,
    reader       text COLLATE "C" NOT NULL,
    hidden       boolean NOT NULL,
    acknowledged boolean NOT NULL,
    PRIMARY KEY (tenant, mailbox, number, reader)
);

-- When the sweeper has to process a record; a claim moves it. A table of its own, so that a change of the record does not
-- touch an index.
CREATE TABLE due (
    tenant text COLLATE "C" NOT NULL,
    kind   smallint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);

-- By minute, then by tenant: the tenants that have something due are found without reading all that is due.
CREATE INDEX due_by_minute ON due ((at / 60000000), tenant, at);

-- Only added to, and deleted when it is old: a partition for each month, which is dropped as a whole. A month and not a
-- day: a read of one tenant's log goes through the index of each partition, and each that is dropped locks the table for an
-- instant.
CREATE SEQUENCE audit_seq;
CREATE TABLE audit (
    seq          bigint NOT NULL DEFAULT nextval('audit_seq'),
    tenant       text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    subject_kind smallint NOT NULL,
    subject_id   text NOT NULL,
    event        bytea NOT NULL
) PARTITION BY RANGE (at);

-- A tenant's log in order.
CREATE INDEX audit_by_tenant ON audit (tenant, at, seq);

-- What has no month of its own, so that no commit fails for want of one.
CREATE TABLE audit_default PARTITION OF audit DEFAULT;
CREATE INDEX audit_default_by_at ON audit_default (at);
