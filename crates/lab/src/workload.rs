//! The changes to commit: like those of real submissions and decisions, on the data of one store.

use std::{
    collections::VecDeque,
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use countersign_core::store::{
    AuditRow, Change, Guard, Key, Kind, Mailbox, NewDelivery, PayloadId, Put, Removal,
};
use countersign_wire::{
    Rule,
    id::{ApproverId, EnforcerId, MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use parking_lot::Mutex;
use serde::Serialize;

const RECORD_BYTES: usize = 350;
const SUBMITTED_PAYLOAD_BYTES: usize = 600;
const DECIDED_PAYLOAD_BYTES: usize = 500;
const AUDIT_BYTES: usize = 150;

/// Size of a buffer that contents are sliced from, so that creating a change costs little compared to committing it.
const FILLING_BYTES: usize = 64 * 1_024;

const EXPIRES_AFTER: Duration = Duration::from_hours(24);
const FORGOTTEN_AFTER: Duration = Duration::from_hours(48);

/// The kind of changes to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workload {
    /// An enforcer submits a request to one approver.
    Submit,
    /// An approver decides on a request of an enforcer.
    Decide,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Submit => "submit",
            Self::Decide => "decide",
        })
    }
}

/// The number of a request, which determines all its contents.
pub(crate) type Request = u64;

/// The requests of one store: those committed, and those that can be decided.
#[derive(Debug)]
pub(crate) struct Requests {
    tenant: TenantId,
    approvers: Vec<Mailbox>,
    enforcers: Vec<Mailbox>,
    filling: Bytes,
    began: Timestamp,
    next: AtomicU64,
    /// Each with the version of its record.
    undecided: Mutex<VecDeque<(Request, u64)>>,
}

impl Requests {
    /// Without requests; `began` is the store's time.
    pub(crate) fn new(approvers: u64, enforcers: u64, began: Timestamp) -> Result<Self, Rule> {
        let approver = |n| Ok(Mailbox::Approver(ApproverId::new(format!("approver-{n}"))?));
        let enforcer = |n| Ok(Mailbox::Enforcer(EnforcerId::new(format!("enforcer-{n}"))?));
        let filling = (0..FILLING_BYTES as u64 / 8).flat_map(|n| scattered(n).to_le_bytes()).collect();
        Ok(Self {
            tenant: TenantId::new("tenant")?,
            approvers: (0..approvers).map(approver).collect::<Result<_, Rule>>()?,
            enforcers: (0..enforcers).map(enforcer).collect::<Result<_, Rule>>()?,
            filling,
            began,
            next: AtomicU64::new(0),
            undecided: Mutex::default(),
        })
    }

    /// The next change of this kind; `None` if there is nothing left to decide.
    pub(crate) fn next(&self, workload: Workload) -> Option<Result<(Request, Change), Rule>> {
        let (request, change) = match workload {
            Workload::Submit => {
                let request = self.next.fetch_add(1, Ordering::Relaxed);
                (request, self.submission(request))
            }
            Workload::Decide => {
                let (request, version) = self.undecided.lock().pop_front()?;
                (request, self.decision(request, version))
            }
        };
        Some(change.map(|change| (request, change)))
    }

    /// Must be called after every commit, with the versions that it returned, so that the submitted request can be decided.
    pub(crate) fn committed(&self, workload: Workload, request: Request, versions: &[u64]) {
        if let (Workload::Submit, Some(version)) = (workload, versions.first()) {
            self.undecided.lock().push_back((request, *version));
        }
    }

    /// How many decisions can be committed.
    pub(crate) fn undecided_count(&self) -> u64 {
        self.undecided.lock().len() as u64
    }

    fn submission(&self, request: Request) -> Result<Change, Rule> {
        let key = key(request);
        let payload = payload(request, 1);
        let expires_at = self.after(EXPIRES_AFTER, request);
        let mut change = Change::new(self.tenant.clone());
        change.guards.push(Guard::Absent(key.clone()));
        change.puts.push(Put { key: key.clone(), content: self.filled(RECORD_BYTES, request) });
        change.payloads.push((payload, self.filled(SUBMITTED_PAYLOAD_BYTES, request)));
        change.deliveries.push(NewDelivery {
            mailbox: one_of(&self.approvers, request).clone(),
            msg_id: MsgId::new(id(request, 2))?,
            msg_type: MsgType::ApprovalRequest,
            subject: key.clone(),
            payload: Some(payload),
            until: expires_at,
        });
        change.due.push((expires_at, key.clone()));
        change.audit.push(AuditRow { subject: key, event: self.filled(AUDIT_BYTES, request) });
        Ok(change)
    }

    fn decision(&self, request: Request, version: u64) -> Result<Change, Rule> {
        let key = key(request);
        let payload = payload(request, 3);
        let forgotten_at = self.after(FORGOTTEN_AFTER, request);
        let mut change = Change::new(self.tenant.clone());
        change.guards.push(Guard::Version(key.clone(), version));
        change.guards.push(Guard::Before(self.after(EXPIRES_AFTER, request)));
        change.puts.push(Put { key: key.clone(), content: self.filled(RECORD_BYTES, !request) });
        change.payloads.push((payload, self.filled(DECIDED_PAYLOAD_BYTES, !request)));
        change
            .removals
            .push(Removal::BySubject { subject: key.clone(), msg_types: vec![MsgType::ApprovalRequest] });
        change.deliveries.push(NewDelivery {
            mailbox: one_of(&self.enforcers, request).clone(),
            msg_id: MsgId::new(id(request, 4))?,
            msg_type: MsgType::DecisionDeliver,
            subject: key.clone(),
            payload: Some(payload),
            until: forgotten_at,
        });
        change.due.push((forgotten_at, key.clone()));
        change.audit.push(AuditRow { subject: key, event: self.filled(AUDIT_BYTES, !request) });
        Ok(change)
    }

    /// A deadline that increases with every request, as real ones do.
    fn after(&self, duration: Duration, request: Request) -> Timestamp {
        self.began.plus(duration + Duration::from_micros(request))
    }

    fn filled(&self, length: usize, seed: u64) -> Bytes {
        let room = (FILLING_BYTES - length) as u64;
        let start = usize::try_from(scattered(seed) % room).unwrap_or_default();
        self.filling.slice(start..start + length)
    }
}

fn key(request: Request) -> Key {
    Key::new(Kind::Exchange, id(request, 0))
}

/// 26 characters, as long as a ULID. No two are the same, because [`scattered`] has an inverse.
fn id(request: Request, purpose: u64) -> String {
    let (first, second) = (scattered(request), scattered(request ^ (purpose + 1).rotate_right(8)));
    format!("{first:016x}{:010x}", second >> 24)
}

fn payload(request: Request, purpose: u64) -> PayloadId {
    PayloadId((u128::from(scattered(request ^ purpose.rotate_right(8))) << 64) | u128::from(request))
}

fn one_of(mailboxes: &[Mailbox], request: Request) -> &Mailbox {
    let index = scattered(!request) % mailboxes.len().max(1) as u64;
    &mailboxes[usize::try_from(index).unwrap_or_default()]
}

/// `SplitMix64`: a hash that maps neighbouring numbers far apart, so that writes hit an index at random places.
pub(crate) fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_about_what_was_committed_and_comes_once() {
        let requests = Requests::new(50, 20, Timestamp::from_unix_micros(0)).unwrap();
        assert!(requests.next(Workload::Decide).is_none());
        let (request, submission) = requests.next(Workload::Submit).unwrap().unwrap();
        assert!(requests.next(Workload::Decide).is_none(), "not before it is committed");
        requests.committed(Workload::Submit, request, &[7]);
        let (_, decision) = requests.next(Workload::Decide).unwrap().unwrap();
        assert_eq!(decision.puts[0].key, submission.puts[0].key);
        assert_eq!(decision.guards[0], Guard::Version(submission.puts[0].key.clone(), 7));
        assert_ne!(decision.payloads[0].0, submission.payloads[0].0);
        assert!(requests.next(Workload::Decide).is_none());
    }
}
