-- What this database is within a store of several, and which tenants were moved to it or from it. Both are empty in a store of
-- one database.

CREATE TABLE shard (
    store_id text NOT NULL,
    number   integer NOT NULL,
    name     text NOT NULL,
    buckets  integer[] NOT NULL
);
CREATE UNIQUE INDEX shard_is_one ON shard ((true));

-- A tenant without a row was never moved. Whoever writes to a tenant holds a shared advisory lock of its name and reads its row
-- afterwards, in the same transaction; whoever changes the row holds the lock alone.
--
-- `state` is 1 for here, 2 for leaving, 3 for arriving, 4 for left; `other` is the shard that it comes from or goes to. `changed`
-- numbers the changes of all rows in the order of their commits. `arrived` is how much of a tenant that arrives is here.
CREATE TABLE residence (
    tenant  text COLLATE "C" PRIMARY KEY,
    epoch   bigint NOT NULL,
    state   smallint NOT NULL,
    other   integer NOT NULL,
    changed bigint NOT NULL,
    arrived text NOT NULL
);
CREATE INDEX residence_by_changed ON residence (changed);
