-- Times are microseconds since 1970. A kind is the number of countersign_core::store::Kind.

-- State. It is apart from payloads, since an update writes a row anew with all of its overflow pages.
CREATE TABLE records (
    tenant  TEXT    NOT NULL,
    kind    INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    content BLOB    NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) STRICT, WITHOUT ROWID;

-- With a rowid: without one, large rows would leave few keys on a page of the tree.
CREATE TABLE payloads (
    id     BLOB NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

-- The newest number of each mailbox. It outlives the deliveries, so that no number is given twice.
CREATE TABLE mailboxes (
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    counter INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
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

CREATE INDEX deliveries_by_subject ON deliveries (tenant, subject_id, subject_kind);

-- flags: 1 hidden, 2 acknowledged, 3 both.
CREATE TABLE marks (
    tenant  TEXT    NOT NULL,
    mailbox TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    reader  TEXT    NOT NULL,
    flags   INTEGER NOT NULL,
    PRIMARY KEY (tenant, mailbox, number, reader)
) STRICT, WITHOUT ROWID;

CREATE TABLE due (
    at     INTEGER NOT NULL,
    tenant TEXT    NOT NULL,
    kind   INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    PRIMARY KEY (at, tenant, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    line         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    subject_kind INTEGER NOT NULL,
    subject_id   TEXT    NOT NULL,
    event        BLOB    NOT NULL
) STRICT;
