SELECT number, msg_id, msg_type, subject_kind, subject_id, payload, at, until,
  until > ?4 AND NOT EXISTS (
      SELECT 1
      FROM mark
      WHERE mark.tenant = delivery.tenant AND mark.mailbox = delivery.mailbox
        AND mark.number = delivery.number AND mark.reader = ?5
        AND CASE WHEN ?6 THEN mark.hidden ELSE mark.acknowledged END
  ) AS is_wanted
FROM delivery
WHERE tenant = ?1 AND mailbox = ?2 AND number > ?3 AND number <= ?7
ORDER BY number
LIMIT ?8
