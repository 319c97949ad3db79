//! The port of a journal: records, changes, and what a journal must be able to do.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::identity::profile::ProfileError;

/// The journal can't be read or written. Nothing may be done then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system refuses.
    #[error("the journal {} can't be used, so no decision is: {source}", path.display())]
    Io {
        /// The file or folder that the system was asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others have access to it, or it is not a file at all.
    #[error("the journal can't be used, so no decision is: {0}")]
    Access(#[from] ProfileError),
    /// A line is not what was written. What it said is not known, so nothing is guessed.
    #[error(
        "line {line} of the journal {0} is damaged, so no decision is used. Restore it from a backup; or, when every \
         approval that was given has expired, move it away and start with a new one", path.display()
    )]
    Damaged {
        /// The journal itself.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
    /// A record is not what this program writes.
    #[error("the record {0} of the journal is not understood. Update this program")]
    Record(String),
    /// It was made by another version of this program, or is no journal.
    #[error("{} is not a journal of this version. Update this program, or move the file away", path.display())]
    Version {
        /// The file in the place of the journal.
        path: PathBuf,
    },
    /// The thread that writes has ended early.
    #[error("the journal was not written: its thread has ended")]
    Thread,
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Kind {
    /// A nonce that was used; its key is the nonce.
    Nonce,
    /// A request without an answer; its key is the request id.
    Open,
    /// How a request ended: with a decision, which may be a grant, or taken back; its key is the request id.
    Settled,
    /// One use of a decision; its key has the request id and the number of the use.
    Use,
    /// A grant that was taken back here; its key is the request id.
    Revoked,
    /// A receipt that was not sent yet, whose key is that of the use; or what a person has answered, which was not sent yet.
    Receipt,
    /// An answer that a person has given; its key has the person, the time and the request id.
    Answered,
}

/// One record, wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// What it is about.
    pub kind: Kind,
    /// Unique within its kind.
    pub key: String,
    /// The content, mostly JSON.
    pub value: Zeroizing<String>,
    /// The time from which it may be forgotten.
    pub keep_until: Timestamp,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Record({:?} {}, {} bytes)", self.kind, self.key, self.value.len())
    }
}

/// A part of a commit.
#[derive(Debug, Clone)]
pub enum Change {
    /// Adds a record. If there is one already, nothing of the commit is done.
    Add(Record),
    /// Adds a record, or puts it in the place of the one that is there.
    Put(Record),
    /// Removes a record, if there is one.
    Remove(Kind, String),
    /// Changes nothing. If there is such a record, nothing of the commit is done.
    Absent(Kind, String),
    /// Changes nothing. If there is no such record, nothing of the commit is done.
    Present(Kind, String),
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Commit {
    /// Everything was done and is durable.
    Done,
    /// Nothing was done: there is a record of this kind that must not be there, or none that must be.
    Conflict(Kind),
}

/// For how long finished exchanges are kept, and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A bundle is removed this long after it was written.
    pub time: Duration,
    /// The oldest bundles are removed when all together have more bytes.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { time: Duration::from_hours(30 * 24), bytes: 256 << 20 }
    }
}

/// Keeps records and finished exchanges. Its functions block; an enforcer calls them on a thread for that.
pub trait Journal: Send + Sync + 'static {
    /// Makes all changes or none. They are durable when this returns.
    fn commit(&self, changes: &[Change], now: Timestamp) -> Result<Commit, JournalError>;

    /// The record with this key.
    fn get(&self, kind: Kind, key: &str) -> Result<Option<Record>, JournalError>;

    /// Every record of a kind, by key.
    fn list(&self, kind: Kind) -> Result<Vec<Record>, JournalError>;

    /// Every record of a kind but the known ones, by key. Whoever looks again and again copies only what is new.
    fn list_new(&self, kind: Kind, known: &BTreeSet<String>) -> Result<Vec<Record>, JournalError> {
        let mut records = self.list(kind)?;
        records.retain(|record| !known.contains(&record.key));
        Ok(records)
    }

    /// The last record of a kind whose key begins like this.
    fn last(&self, kind: Kind, prefix: &str) -> Result<Option<Record>, JournalError>;

    /// Keeps a finished exchange, and removes those whose time has passed.
    fn keep_bundle(&self, name: &str, text: &str, now: Timestamp) -> Result<(), JournalError>;

    /// The names of the finished exchanges that are kept, oldest first.
    fn bundles(&self) -> Result<Vec<String>, JournalError>;

    /// A finished exchange, by the name that [`Journal::bundles`] returned.
    fn bundle(&self, name: &str) -> Result<Option<Zeroizing<String>>, JournalError>;

    /// Records that a decision is used. Returns false if its nonce was recorded before, whatever for.
    fn use_nonce(
        &self,
        nonce: &str,
        request_id: &str,
        keep_until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        let change = Change::Add(nonce_record(nonce, request_id, keep_until));
        Ok(self.commit(&[change], now)? == Commit::Done)
    }
}

/// The record of a nonce that is used.
pub(crate) fn nonce_record(nonce: &str, request_id: &str, keep_until: Timestamp) -> Record {
    let value = Zeroizing::new(request_id.to_owned());
    Record { kind: Kind::Nonce, key: nonce.to_owned(), value, keep_until }
}
