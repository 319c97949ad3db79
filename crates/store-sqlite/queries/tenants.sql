SELECT tenant
FROM record
WHERE tenant > ?1
ORDER BY tenant
LIMIT 1
