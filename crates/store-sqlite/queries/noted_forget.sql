DELETE FROM noted
WHERE seq < min(?1, (SELECT min(seq) FROM noted) + ?2)
