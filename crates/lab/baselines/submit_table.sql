-- One row for a submission, with the bytes that a client sends. Text is stored as it is, as our payloads are.
CREATE TABLE submission (
    request  bigint PRIMARY KEY,
    approver integer NOT NULL,
    content  text NOT NULL
);
ALTER TABLE submission ALTER COLUMN content SET STORAGE EXTERNAL;
