SELECT at / 60000000, tenant, at
FROM due
WHERE (at / 60000000, tenant) > (?1, ?2) AND at / 60000000 <= ?3 / 60000000
ORDER BY at / 60000000, tenant, at
LIMIT 1
