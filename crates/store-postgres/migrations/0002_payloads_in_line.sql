-- A payload of up to 8 KB, which nearly all are, is one row. Otherwise it is cut into parts of 2 KB in a table of its own,
-- each with an entry in an index.
ALTER TABLE payload SET (toast_tuple_target = 8160);
