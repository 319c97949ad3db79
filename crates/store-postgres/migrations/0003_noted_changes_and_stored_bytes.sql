-- What commits have changed, of all tenants, so that each node reads it once instead of comparing what it listens to. Triggers
-- write it, so that nobody can forget to, and the program before this one notes its changes too. Rows are deleted after some
-- minutes.
--
-- `xid` is the transaction: a reader goes on from the oldest that was still running, so that it misses none that commits late.
-- `kind` is that of the record, or zero for a mailbox; `number` is the version of the record, zero if it was deleted, or the
-- newest number of the mailbox.
CREATE TABLE noted (
    xid    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    tenant text COLLATE "C" NOT NULL,
    kind   smallint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    number bigint NOT NULL
);
CREATE INDEX noted_by_xid ON noted (xid);

CREATE FUNCTION note_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO noted (tenant, kind, id, number) VALUES (OLD.tenant, OLD.kind, OLD.id, 0);
    ELSE
        INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, NEW.kind, NEW.id, NEW.version);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION note_mailbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO noted (tenant, kind, id, number) VALUES (NEW.tenant, 0, NEW.name, NEW.counter);
    RETURN NULL;
END $$;

-- The kinds for which countersign_core::store::Kind::is_noted.
CREATE TRIGGER note_inserted AFTER INSERT ON record FOR EACH ROW
    WHEN (NEW.kind IN (1, 7, 8, 12, 13, 21)) EXECUTE FUNCTION note_record();
-- A row that is inserted empty and then written has one version.
CREATE TRIGGER note_updated AFTER UPDATE ON record FOR EACH ROW
    WHEN (NEW.kind IN (1, 7, 8, 12, 13, 21) AND NEW.version <> OLD.version) EXECUTE FUNCTION note_record();
CREATE TRIGGER note_deleted AFTER DELETE ON record FOR EACH ROW
    WHEN (OLD.kind IN (1, 7, 8, 12, 13, 21)) EXECUTE FUNCTION note_record();
CREATE TRIGGER note_delivered AFTER INSERT OR UPDATE ON mailbox FOR EACH ROW EXECUTE FUNCTION note_mailbox();

-- What the payloads of each tenant take, in bytes, each with 1,024 for the rows about it. Connections count in rows of their
-- own, so that commits of one tenant do not wait for each other. A payload from before this table is not counted.
CREATE TABLE stored (
    tenant text COLLATE "C" NOT NULL,
    slot   smallint NOT NULL,
    bytes  bigint NOT NULL,
    PRIMARY KEY (tenant, slot)
) WITH (fillfactor = 50);

ALTER TABLE payload ADD COLUMN counted boolean NOT NULL DEFAULT false;
ALTER TABLE payload ALTER COLUMN counted SET DEFAULT true;

CREATE FUNCTION count_added_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stored AS s (tenant, slot, bytes)
        SELECT tenant, pg_backend_pid() % 16, sum(octet_length(content) + 1024) FROM added
        WHERE counted GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant, slot) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    RETURN NULL;
END $$;

CREATE FUNCTION count_removed_payloads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stored AS s (tenant, slot, bytes)
        SELECT tenant, pg_backend_pid() % 16, -sum(octet_length(content) + 1024) FROM removed
        WHERE counted GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant, slot) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    RETURN NULL;
END $$;

CREATE TRIGGER count_added AFTER INSERT ON payload REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_added_payloads();
CREATE TRIGGER count_removed AFTER DELETE ON payload REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed_payloads();

-- For the erasure of a tenant.
CREATE INDEX IF NOT EXISTS payload_by_tenant ON payload (tenant);
