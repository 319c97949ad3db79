SELECT bytes
FROM stored
WHERE tenant = ?1
