SELECT number, msg_id, msg_type, subject_kind, subject_id, payload, at, until, mailbox
FROM delivery
WHERE tenant = ?1 AND subject_id = ?2
ORDER BY subject_kind, mailbox, number
