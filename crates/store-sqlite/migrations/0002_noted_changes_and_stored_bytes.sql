-- What commits have changed, of all tenants, so that another process reads it once instead of comparing what it listens to.
-- Triggers write it, so that nobody can forget to. Rows are deleted after some minutes; numbers are never used again.
-- `kind` is that of the record, or zero for a mailbox; `number` is the version of the record, zero if it was deleted, or the
-- newest number of the mailbox.
CREATE TABLE noted (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT    NOT NULL,
    kind   INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    number INTEGER NOT NULL
) STRICT;

-- The kinds for which countersign_core::store::Kind::is_noted.
CREATE TRIGGER note_inserted AFTER INSERT ON record WHEN NEW.kind IN (1, 7, 8, 12, 13, 21) BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, NEW.kind, NEW.id, NEW.version);
END;
CREATE TRIGGER note_updated AFTER UPDATE ON record WHEN NEW.kind IN (1, 7, 8, 12, 13, 21) BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, NEW.kind, NEW.id, NEW.version);
END;
CREATE TRIGGER note_deleted AFTER DELETE ON record WHEN OLD.kind IN (1, 7, 8, 12, 13, 21) BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (OLD.tenant, OLD.kind, OLD.id, 0);
END;
CREATE TRIGGER note_first_delivery AFTER INSERT ON mailbox BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, 0, NEW.name, NEW.counter);
END;
CREATE TRIGGER note_delivery AFTER UPDATE ON mailbox BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, 0, NEW.name, NEW.counter);
END;

-- What the payloads of each tenant take, in bytes, each with 1,024 for the rows about it.
CREATE TABLE stored (
    tenant TEXT    NOT NULL PRIMARY KEY,
    bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO stored SELECT tenant, sum(length(content) + 1024) FROM payload GROUP BY tenant;

CREATE TRIGGER count_added AFTER INSERT ON payload BEGIN
    INSERT INTO stored (tenant, bytes) VALUES (NEW.tenant, length(NEW.content) + 1024)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER count_removed AFTER DELETE ON payload BEGIN
    UPDATE stored SET bytes = bytes - length(OLD.content) - 1024 WHERE tenant = OLD.tenant;
END;

-- For the erasure of a tenant.
CREATE INDEX payload_by_tenant ON payload (tenant);
