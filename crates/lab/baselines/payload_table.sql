-- Large contents alone, stored as they are, as our payloads.
CREATE TABLE large (
    id      bigint PRIMARY KEY,
    content bytea NOT NULL
);
ALTER TABLE large ALTER COLUMN content SET STORAGE EXTERNAL;
