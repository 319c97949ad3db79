SELECT content
FROM payload
WHERE id = ?1 AND tenant = ?2
