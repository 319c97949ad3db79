-- The tables that an exchange needs, with the keys that it is found by. Payloads are stored as they are.
CREATE TABLE exchange (
    id       bigint PRIMARY KEY,
    version  bigint NOT NULL,
    content  text NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE payload (
    id      bigint PRIMARY KEY,
    content text NOT NULL
);
ALTER TABLE payload ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE mailbox (
    name    bigint PRIMARY KEY,
    counter bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO mailbox SELECT name, 0 FROM generate_series(1, 2000) AS name;

CREATE TABLE delivery (
    mailbox  bigint NOT NULL,
    number   bigint NOT NULL,
    exchange bigint NOT NULL,
    payload  bigint NOT NULL,
    until    bigint NOT NULL,
    PRIMARY KEY (mailbox, number)
);
CREATE INDEX delivery_by_exchange ON delivery (exchange);

CREATE TABLE due (
    exchange bigint PRIMARY KEY,
    at       bigint NOT NULL
);
CREATE INDEX due_by_time ON due (at);

CREATE TABLE audit (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    exchange bigint NOT NULL,
    event    text NOT NULL
);
