SELECT counter
FROM mailboxes
WHERE tenant = ?1 AND name = ?2
