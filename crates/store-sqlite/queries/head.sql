SELECT counter
FROM mailbox
WHERE tenant = ?1 AND name = ?2
