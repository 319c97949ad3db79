DELETE FROM audit
WHERE seq <= (SELECT min(seq) FROM audit) - 1 + ?2 AND at < ?1
