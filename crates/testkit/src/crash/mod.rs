//! Crash tests: processes that are killed while they commit, and what the database must contain afterwards.
//!
//! A test runs itself again as a child process that writes ([`child_task`], [`write_until_killed`]), kills the child
//! ([`run_child_and_kill`]) and checks with a [`CrashLog`] that every acknowledged change is in the database.

mod child;
mod crash_log;

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

pub use child::{ChildTask, child_task, run_child_and_kill};
pub use crash_log::{CrashLog, verify};

/// Environment variable that overrides a test's number of rounds.
const ROUNDS: &str = "CRASH_ROUNDS";

/// More ids than a round can use.
const IDS_PER_ROUND: u64 = 1_000_000;
const WRITERS: u64 = 16;

/// A change that the store has acknowledged as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// The id of the change, see [`first_id`].
    pub id: u64,
    /// The number that the store returned for its only delivery.
    pub number: u64,
    /// The version that the store returned for its only record.
    pub version: u64,
}

/// The result that the store returned for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitReport {
    /// The store acknowledged the change as durable.
    Acked(Acked),
    /// The outcome is unknown: either all of the change is there, or nothing.
    Unknown(u64),
    /// The store rejected the change without writing anything.
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

/// How many rounds to run: `CRASH_ROUNDS`, else `default`.
pub fn rounds(default: u64) -> u64 {
    env::var(ROUNDS).map_or(default, |rounds| rounds.parse().expect("CRASH_ROUNDS is a number"))
}

/// The first id of a round. Rounds use the same database, and no id is used twice.
pub fn first_id(round: u64) -> u64 {
    round * IDS_PER_ROUND
}

/// How many acknowledgements a round waits for before it kills: sometimes few, sometimes so many that the store
/// has cleaned up (for example with a checkpoint) in between.
pub fn acks_before_kill(round: u64) -> usize {
    usize::try_from(20 + (round * 37) % 400).expect("a small number")
}

fn tenant() -> TenantId {
    "crash".parse().expect("an id")
}

fn mailboxes() -> [Mailbox; 2] {
    [Mailbox::Shared, Mailbox::Approver("approver".parse().expect("an id"))]
}

/// A change that is determined by its id, so that stored data can be compared with what was written.
fn change(id: u64) -> Change {
    let key = Key::new(Kind::Exchange, format_args!("{id:012}"));
    let payload = PayloadId(id.into());
    // The PostgreSQL store writes payloads over 64 KB before the commit that needs them.
    let payload_length = if id.is_multiple_of(10) { 100_000 } else { 300 };
    // The newest are due first, so that a round reads its own without those of earlier rounds.
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

/// Pseudo-random bytes (`SplitMix64`), different for every seed.
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
    key.id.parse().unwrap_or_else(|_| panic!("not a key of this test: {key:?}"))
}

/// Commits changes from several concurrent writers and reports the result of each. A writer ends at its first
/// error; returns when all writers have ended.
pub async fn write_until_errors(
    store: Arc<dyn Store>,
    from: u64,
    report: impl Fn(CommitReport) + Clone + Send + 'static,
) {
    let next_id = Arc::new(AtomicU64::new(from));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next_id, report) = (Arc::clone(&store), Arc::clone(&next_id), report.clone());
        writers.spawn(async move {
            loop {
                let id = next_id.fetch_add(1, Ordering::Relaxed);
                match store.commit(change(id)).await {
                    Ok(Outcome::Committed { numbers, versions, .. }) => {
                        let acked = Acked { id, number: numbers[0], version: versions[0] };
                        report(CommitReport::Acked(acked));
                    }
                    Err(StoreError::OutcomeUnknown) => return report(CommitReport::Unknown(id)),
                    Err(StoreError::Overloaded | StoreError::Unavailable(_)) => {
                        return report(CommitReport::Refused(id));
                    }
                    unexpected => panic!("change {id} is new and valid, but: {unexpected:?}"),
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
            Ok(Outcome::Committed { numbers, versions, .. }) => {
                acked.push(Acked { id, number: numbers[0], version: versions[0] });
            }
            other => panic!("change {id} is new and valid, but: {other:?}"),
        }
    }
    acked
}

/// The child's task: writes until it is killed, and prints each acknowledgement to standard output.
///
/// # Panics
///
/// If the store returns any error, since only the child is killed, not the store; and if its output is closed, so
/// that no child outlives its test.
pub async fn write_until_killed(store: Arc<dyn Store>, from: u64) {
    // The test harness may have printed part of a line.
    io::stdout().write_all(b"\n").expect("the test reads our output");
    let print = |report: CommitReport| match report {
        // Standard output is line-buffered: this is one write, complete when it returns.
        CommitReport::Acked(Acked { id, number, version }) => {
            io::stdout()
                .write_all(format!("acked {id} {number} {version}\n").as_bytes())
                .expect("the test reads our output");
        }
        other => panic!("the store runs, but returned: {other:?}"),
    };
    write_until_errors(store, from, print).await;
}
