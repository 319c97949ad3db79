SELECT kind, id, version, content
FROM record
WHERE tenant = ?1 AND kind = ?2 AND id > ?3
ORDER BY id
LIMIT ?4
