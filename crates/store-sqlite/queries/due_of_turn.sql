SELECT at, tenant, kind, id
FROM due
WHERE at / 60000000 = ?1 AND tenant = ?2 AND at <= ?3
ORDER BY at
LIMIT ?4
