//! People who are asked one after the other. Pure.
//!
//! Whoever is asked at once has the request in their mailbox from the beginning. The others are in `Exchange::turns` until
//! the sweeper puts it into theirs; until then they are no addressees.

use std::collections::BTreeSet;

use countersign_wire::{artifact::Turns, id::ApproverId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::Mailbox;

/// Somebody who is not asked at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub approver: ApproverId,
    pub at: Timestamp,
    /// When the request was put into their mailbox; `None` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Timestamp>,
}

/// The mailboxes of those who are asked at `now`, and the turns of the others; or the rule that they break.
pub(crate) fn divide(
    Turns(turns): &Turns,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(BTreeSet<Mailbox>, Vec<Turn>), &'static str> {
    let (mut asked, mut later) = (BTreeSet::new(), Vec::new());
    for turn in turns {
        match turn.at {
            Some(at) if at >= expires_at => return Err("has a turn that is not before expiresAt"),
            Some(at) if at > now => {
                later.push(Turn { approver: turn.approver_id.clone(), at, begun_at: None });
            }
            _ => drop(asked.insert(Mailbox::Approver(turn.approver_id.clone()))),
        }
    }
    if asked.is_empty() {
        return Err("must name somebody who is asked at once");
    }
    Ok((asked, later))
}

/// When somebody is asked next; `None` if everybody is.
pub(crate) fn next_at(turns: &[Turn]) -> Option<Timestamp> {
    turns.iter().filter(|turn| turn.begun_at.is_none()).map(|turn| turn.at).min()
}

/// Begins the turns of everybody whose turn it is at `now`, and returns their mailboxes.
pub(crate) fn begin(turns: &mut [Turn], now: Timestamp) -> Vec<Mailbox> {
    let mut begun = Vec::new();
    for turn in turns.iter_mut().filter(|turn| turn.begun_at.is_none() && turn.at <= now) {
        turn.begun_at = Some(now);
        begun.push(Mailbox::Approver(turn.approver.clone()));
    }
    begun
}
