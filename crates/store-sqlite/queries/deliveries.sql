SELECT number, msg_id, msg_type, subject_kind, subject_id, payload, at, until
FROM deliveries AS delivery
WHERE tenant = ?1 AND mailbox = ?2 AND number > ?3 AND until > ?4
  AND NOT EXISTS (
      SELECT 1
      FROM marks AS mark
      WHERE mark.tenant = delivery.tenant AND mark.mailbox = delivery.mailbox
        AND mark.number = delivery.number AND mark.reader = ?5 AND mark.flags & ?6
  )
ORDER BY number
LIMIT ?7
