-- The bare INSERT of a submission, in a transaction of its own. :content is given by the command line.
\set request random(1, 9223372036854775806)
\set approver random(1, 50)
INSERT INTO submission (request, approver, content) VALUES (:request, :approver, :content);
