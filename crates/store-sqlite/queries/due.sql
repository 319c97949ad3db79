SELECT at, tenant, kind, id
FROM due
WHERE at <= ?1
ORDER BY at, tenant, kind, id
LIMIT ?2
