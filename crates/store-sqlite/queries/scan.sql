SELECT kind, id, version, content
FROM record
WHERE tenant = ?1 AND kind = ?2
ORDER BY id
LIMIT ?3
