//! What becomes due of a request that waits for its answer: it is somebody's turn, or somebody is to be notified.

use std::time::Duration;

use countersign_wire::{failure::Failure, timestamp::Timestamp};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Commit, Gateway},
    model::{
        exchange::{Exchange, State},
        notification::SENDING_TIME,
    },
    notices::Notice,
    store::{Change, Due, Guard, Kind, Record, Stored as _},
    transitions::{next_due_at, requests},
};

/// A node that has too much to send leaves notifications to others for this long.
pub(super) const PUT_OFF: Duration = Duration::from_secs(5);

/// What to commit, and what this node does then.
pub(super) struct Step {
    change: Change,
    /// Whether the sending is this node's for a while.
    sends: bool,
    is_turn: bool,
}

impl Gateway {
    /// What is to be done for a pending request; `None` if nothing is. A node that has enough to send puts that off for others.
    pub(super) fn pending_due(
        &self,
        due: &Due,
        record: Option<&Record>,
        now: Timestamp,
    ) -> Result<Option<Step>, Error> {
        if due.key.kind != Kind::Exchange {
            return Ok(None);
        }
        let Some(known) = Exchange::read(record)? else { return Ok(None) };
        if known.value.state_at(now) != State::Pending {
            return Ok(None);
        }
        let begun = known.value.with_turns_begun(now);
        let is_turn = begun.is_some();
        let (mut next, asked) = begun.unwrap_or_else(|| (known.value.clone(), Vec::new()));
        // Somebody's turn is as new to them as a request that was just submitted.
        let has_room = if is_turn { self.notices.has_room_for_fresh() } else { self.notices.has_room() };
        let notifying = next.notifying.as_mut().filter(|it| is_turn || it.is_due(now));
        let notifies = notifying.is_some();
        if let Some(notifying) = notifying {
            notifying.next_at = Some(now.plus(if has_room { SENDING_TIME } else { PUT_OFF }));
            if is_turn {
                // Those who are asked now have all attempts before them.
                notifying.retries = 0;
            }
        }
        if !is_turn && !notifies {
            return Ok(None);
        }
        let mut change = Change::new(due.tenant.clone());
        change.guards.push(Guard::unchanged(due.key.clone(), Some(&known)));
        change.puts.push(next.put(due.key.clone())?);
        change.due.push((next_due_at(&next, &self.retention), due.key.clone()));
        if is_turn {
            change.guards.push(Guard::Before(next.expires_at));
            change.deliveries.extend(requests(&due.key, &next, &asked));
            change.audit.push(audit::action(due.key.clone(), Actor::Clock, "exchange.turn")?);
        }
        Ok(Some(Step { change, sends: notifies && has_room, is_turn }))
    }

    /// A conflict means that something has become of the request, or that another node is faster: it has its due time.
    pub(super) async fn take_pending_step(
        &self,
        due: &Due,
        Step { change, sends, is_turn }: Step,
    ) -> Result<(), Error> {
        let request_id = due.key.id.parse().map_err(|_| Error::Rejected(Failure::Internal))?;
        match self.commit(change, None).await? {
            Commit::Done if sends => {
                let notice = Notice { tenant: due.tenant.clone(), request_id };
                match is_turn {
                    true => self.notices.submitted(notice),
                    false => self.notices.claimed(notice),
                }
            }
            Commit::Done => {}
            Commit::Conflict => return self.process_due(due).await,
        }
        Ok(())
    }
}
