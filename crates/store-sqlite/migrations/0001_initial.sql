-- The tables have the same names and columns in both stores; they know keys, versions and bytes, and no meaning.
-- Times are microseconds since 1970. A kind is the number of countersign_core::store::Kind.

-- Narrow rows that change often. Payloads have a table of their own, because an update rewrites a row with all of its
-- overflow pages.
CREATE TABLE record (
    tenant  TEXT    NOT NULL,
    kind    INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    content BLOB    NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) STRICT, WITHOUT ROWID;

-- The highest version that a deleted record had. A new record starts above it, so that it never has a version that an earlier
-- one of the same key had. One row.
CREATE TABLE deleted_version (
    highest INTEGER NOT NULL
) STRICT;
INSERT INTO deleted_version VALUES (0);

-- Written once, read by id. With a rowid: without one, large rows would leave few keys on a page of the tree.
CREATE TABLE payload (
    id      BLOB NOT NULL PRIMARY KEY,
    tenant  TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- The newest number of each mailbox. It outlives the deliveries, so that no number is assigned twice.
CREATE TABLE mailbox (
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    counter INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
    tenant       TEXT    NOT NULL,
    mailbox      TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    msg_id       TEXT    NOT NULL,
    msg_type     TEXT    NOT NULL,
    subject_kind INTEGER NOT NULL,
    subject_id   TEXT    NOT NULL,
    payload      BLOB,
    at           INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    PRIMARY KEY (tenant, mailbox, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_by_subject ON delivery (tenant, subject_id, subject_kind);

-- What one reader did with a delivery that others still see. Zero is false, one is true.
CREATE TABLE mark (
    tenant       TEXT    NOT NULL,
    mailbox      TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    reader       TEXT    NOT NULL,
    hidden       INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL,
    PRIMARY KEY (tenant, mailbox, number, reader)
) STRICT, WITHOUT ROWID;

-- When the sweeper has to process a record; a claim moves it.
CREATE TABLE due (
    tenant TEXT    NOT NULL,
    kind   INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) STRICT, WITHOUT ROWID;

-- By minute, then by tenant: the tenants that have something due are found without reading all that is due.
CREATE INDEX due_by_minute ON due (at / 60000000, tenant, at);

CREATE TABLE audit (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    subject_kind INTEGER NOT NULL,
    subject_id   TEXT    NOT NULL,
    event        BLOB    NOT NULL
) STRICT;

-- A tenant's log in order; SQLite adds the number of the row.
CREATE INDEX audit_by_tenant ON audit (tenant, at);
