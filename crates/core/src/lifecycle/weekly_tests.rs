//! A person's weekly test becomes due: one node claims it by moving its time, as it does with notifications of requests.

use std::time::Duration;

use countersign_wire::{failure::Failure, timestamp::Timestamp};

use crate::{
    error::Error,
    gateway::{Commit, Gateway},
    model::notification::{Notifications, SENDING_TIME, TEST_EVERY},
    notices::DueTest,
    store::{Change, Due, Guard, Record, StoreError, Stored as _, Versioned},
};

/// Whoever can't send leaves it to others for this long.
const PUT_OFF: Duration = Duration::from_secs(30);

/// What is to be done with a test that is due.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing before then: the person is not to be disturbed, this node can't send, or there is nothing to send to.
    Later(Timestamp),
    /// The sending is this node's until then.
    Send(Timestamp),
}

impl Gateway {
    pub(super) async fn weekly_test_due(
        &self,
        due: &Due,
        record: Option<&Record>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let known = Notifications::read(record)?;
        let wanted = known.filter(|known| known.value.weekly_test.is_some_and(|at| at <= now));
        let Some(known) = wanted else { return self.process_due(due).await };
        let step = step(&known.value, self.notices.has_room_for_test(), now);
        let (Step::Later(at) | Step::Send(at)) = step;
        match self.commit(moved(due, known, at)?, None).await? {
            Commit::Done if step == Step::Send(at) => {
                let approver = due.key.id.parse().map_err(|_| Error::Rejected(Failure::Internal))?;
                self.notices.test_claimed(DueTest { tenant: due.tenant.clone(), approver });
            }
            Commit::Done => {}
            Commit::Conflict => return self.process_due(due).await,
        }
        Ok(())
    }

    /// What is left of a due time that nothing was done about: the time that the record has.
    pub(super) fn keep_weekly_test(due: &Due, record: &Record, now: Timestamp) -> Result<Change, StoreError> {
        let at = Notifications::read(Some(record))?.and_then(|known| known.value.weekly_test);
        if let Some(at) = at {
            return Ok(super::keep(due, record, at.max(now.plus(PUT_OFF))));
        }
        let mut change = Change::new(due.tenant.clone());
        change.guards.push(Guard::Version(due.key.clone(), record.version));
        Ok(change)
    }
}

fn step(known: &Notifications, has_room: bool, now: Timestamp) -> Step {
    let quiet_until = known.quiet_hours.and_then(|hours| hours.end(now));
    if known.channels.iter().all(|channel| channel.address.is_none()) {
        return Step::Later(now.plus(TEST_EVERY));
    }
    match quiet_until {
        Some(end) => Step::Later(end),
        None if has_room => Step::Send(now.plus(SENDING_TIME)),
        None => Step::Later(now.plus(PUT_OFF)),
    }
}

fn moved(due: &Due, known: Versioned<Notifications>, at: Timestamp) -> Result<Change, StoreError> {
    let mut change = Change::new(due.tenant.clone());
    change.guards.push(Guard::unchanged(due.key.clone(), Some(&known)));
    change.puts.push(Notifications { weekly_test: Some(at), ..known.value }.put(due.key.clone())?);
    change.due.push((at, due.key.clone()));
    Ok(change)
}
