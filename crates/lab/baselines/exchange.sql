-- The statements of one exchange, each in a transaction of its own. Contents are given by the command line.
\set exchange random(1, 4000000000000000000) * 2
\set approver :client_id * 2 + 1
\set enforcer :client_id * 2 + 2
\set later random(1, 1000000000)
\set decided :exchange + 1
\set forgotten :later + 1
-- submitted
INSERT INTO exchange (id, version, content) VALUES (:exchange, 1, :record);
INSERT INTO payload (id, content) VALUES (:exchange, :content);
UPDATE mailbox SET counter = counter + 1 WHERE name = :approver RETURNING counter AS request_number \gset
INSERT INTO delivery (mailbox, number, exchange, payload, until) VALUES (:approver, :request_number, :exchange, :exchange, :later);
INSERT INTO due (exchange, at) VALUES (:exchange, :later);
INSERT INTO audit (exchange, event) VALUES (:exchange, :event);
-- pushed to the approver
SELECT number, exchange, payload FROM delivery WHERE mailbox = :approver AND number >= :request_number ORDER BY number LIMIT 50;
SELECT content FROM payload WHERE id = :exchange;
-- decided
SELECT version, content FROM exchange WHERE id = :exchange;
UPDATE exchange SET version = 2, content = :record WHERE id = :exchange AND version = 1;
INSERT INTO payload (id, content) VALUES (:decided, :decision);
DELETE FROM delivery WHERE exchange = :exchange;
UPDATE mailbox SET counter = counter + 1 WHERE name = :enforcer RETURNING counter AS decision_number \gset
INSERT INTO delivery (mailbox, number, exchange, payload, until) VALUES (:enforcer, :decision_number, :exchange, :decided, :later);
UPDATE due SET at = :forgotten WHERE exchange = :exchange;
INSERT INTO audit (exchange, event) VALUES (:exchange, :event);
-- delivered to the enforcer
SELECT number, exchange, payload FROM delivery WHERE mailbox = :enforcer AND number >= :decision_number ORDER BY number LIMIT 50;
SELECT content FROM payload WHERE id = :decided;
-- acknowledged
SELECT version, content FROM exchange WHERE id = :exchange;
UPDATE exchange SET version = 3, content = :record WHERE id = :exchange AND version = 2;
DELETE FROM delivery WHERE mailbox = :enforcer AND number = :decision_number;
INSERT INTO audit (exchange, event) VALUES (:exchange, :event);
