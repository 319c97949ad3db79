SELECT seq, tenant, kind, id, number
FROM noted
WHERE seq >= ?1
ORDER BY seq
LIMIT ?2
