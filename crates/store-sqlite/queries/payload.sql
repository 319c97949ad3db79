SELECT bytes
FROM payloads
WHERE id = ?1 AND tenant = ?2
