//! Crashes: writers that are killed while they commit, and what must be there afterwards.
//!
//! A test runs itself again as a child that writes ([`child`], [`write_until_killed`]), kills it in the middle
//! ([`acknowledged_until_killed`]) and asks a [`Ledger`] whether the database kept every promise.

mod child;
mod ledger;

use std::{
    env,
    io::{self, Write as _},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use countersign_core::store::{
    AuditRow, Change, Guard, Key, Kind, Mailbox, NewDelivery, Outcome, PayloadId, Put, Store, StoreError,
};
use countersign_wire::{
    id::{MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use tokio::task::JoinSet;

pub use child::{Child, acknowledged_until_killed, child};
pub use ledger::{Ledger, verify};

/// More rounds, or fewer, than a test does by itself.
const ROUNDS: &str = "CRASH_ROUNDS";

/// Far more than a round comes to.
const IDS_OF_A_ROUND: u64 = 1_000_000;
const WRITERS: u64 = 16;

/// A change that the store said is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Which one.
    pub id: u64,
    /// The number of its delivery.
    pub number: u64,
}

/// What the store said of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitReport {
    /// It is durable.
    Acked(Acked),
    /// It may be there, all of it, or not.
    Unknown(u64),
    /// Nothing of it was written.
    Refused(u64),
}

impl CommitReport {
    fn id(&self) -> u64 {
        match self {
            Self::Acked(acked) => acked.id,
            Self::Unknown(id) | Self::Refused(id) => *id,
        }
    }
}

/// How many rounds to do: what the environment says, else `by_default`.
pub fn rounds(by_default: u64) -> u64 {
    env::var(ROUNDS).map_or(by_default, |rounds| rounds.parse().expect("CRASH_ROUNDS is a number"))
}

/// The first id of a round. Rounds share a database, and no id is given twice.
pub fn first_id(round: u64) -> u64 {
    round * IDS_OF_A_ROUND
}

/// How many acknowledgements a round waits for before it kills: sometimes few, sometimes so many that the
/// store has tidied up meanwhile.
pub fn enough(round: u64) -> usize {
    usize::try_from(20 + (round * 37) % 400).expect("a small number")
}

/// The tenant of every change.
fn tenant() -> TenantId {
    "crash".parse().expect("an id")
}

fn mailboxes() -> [Mailbox; 2] {
    [Mailbox::Shared, Mailbox::Approver("approver".parse().expect("an id"))]
}

/// Everything of it follows from the id, so that what is found can be compared with what was written.
fn change(id: u64) -> Change {
    let key = Key::new(Kind::Exchange, format_args!("{id:012}"));
    let payload = PayloadId(id.into());
    // PostgreSQL's store writes what is over 64 KB before the commit that needs it.
    let payload_length = if id.is_multiple_of(10) { 100_000 } else { 300 };
    // The newest are due the longest, so that a round gets its own without those of all rounds before.
    let due_at = Timestamp::from_unix_micros(1_600_000_000_000_000 - i64::try_from(id).expect("a small id"));
    let [shared, own] = mailboxes();
    let mut change = Change::new(tenant());
    change.guards.push(Guard::Absent(key.clone()));
    change.puts.push(Put { key: key.clone(), content: bytes_of(!id, 100) });
    change.payloads.push((payload, bytes_of(id, payload_length)));
    change.deliveries.push(NewDelivery {
        mailbox: if id.is_multiple_of(3) { shared } else { own },
        msg_id: MsgId::new(format!("msg-{id}")).expect("an id"),
        msg_type: MsgType::ApprovalRequest,
        subject: key.clone(),
        payload: Some(payload),
        until: due_at,
    });
    change.due.push((due_at, key.clone()));
    change.audit.push(AuditRow { subject: key, event: format!("{{\"id\":{id}}}").into() });
    change
}

/// Bytes that no other seed gives and that don't repeat (`SplitMix64`).
fn bytes_of(seed: u64, length: usize) -> Bytes {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

fn id_of(key: &Key) -> u64 {
    key.id.parse().unwrap_or_else(|_| panic!("nobody wrote {key:?}"))
}

/// Commits changes, several at a time, and tells of each what the store said. A writer ends with its first
/// error, and this with the last writer.
pub async fn write_until_errors(
    store: Arc<dyn Store>,
    from: u64,
    tell: impl Fn(CommitReport) + Clone + Send + 'static,
) {
    let next_id = Arc::new(AtomicU64::new(from));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next_id, tell) = (Arc::clone(&store), Arc::clone(&next_id), tell.clone());
        writers.spawn(async move {
            loop {
                let id = next_id.fetch_add(1, Ordering::Relaxed);
                match store.commit(change(id)).await {
                    Ok(Outcome::Committed { numbers, .. }) => {
                        tell(CommitReport::Acked(Acked { id, number: numbers[0] }));
                    }
                    Err(StoreError::OutcomeUnknown) => return tell(CommitReport::Unknown(id)),
                    Err(StoreError::Overloaded | StoreError::Unavailable(_)) => {
                        return tell(CommitReport::Refused(id));
                    }
                    strange => panic!("change {id} is new and right, but: {strange:?}"),
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer does not panic");
    }
}

/// Commits the changes with these ids, one after the other.
pub async fn write(store: &dyn Store, ids: Range<u64>) -> Vec<Acked> {
    let mut acked = Vec::new();
    for id in ids {
        match store.commit(change(id)).await {
            Ok(Outcome::Committed { numbers, .. }) => acked.push(Acked { id, number: numbers[0] }),
            other => panic!("change {id} is new and right, but: {other:?}"),
        }
    }
    acked
}

/// The child's work: writes for as long as it lives, and says on its standard output what is acknowledged.
///
/// # Panics
///
/// When the store refuses anything, since nobody but the child has been harmed; and when nobody listens any
/// more, so that no child outlives its test.
pub async fn write_until_killed(store: Arc<dyn Store>, from: u64) {
    // The test harness may have begun a line of its own.
    io::stdout().write_all(b"\n").expect("somebody listens");
    let print = |told: CommitReport| match told {
        // Standard output is buffered by lines: this is one write, and over when it returns.
        CommitReport::Acked(Acked { id, number }) => {
            io::stdout().write_all(format!("acked {id} {number}\n").as_bytes()).expect("somebody listens");
        }
        other => panic!("nothing is wrong with the store, but: {other:?}"),
    };
    write_until_errors(store, from, print).await;
}
