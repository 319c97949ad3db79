//! The journal in a file that several processes use.
//!
//! The first line names the format and a random *generation*. Every other line is one commit: a checksum, and the changes as
//! JSON. Lines are only appended, under the lock of a second file, which is never replaced. Each process keeps the records
//! in memory and reads what others have appended since. When much of the file is out of date, whoever has the lock writes
//! the live records to a new file of a new generation and renames it over the old one; the others see the generation and
//! read from the start. Nobody keeps the file open, so nobody appends to one that was replaced.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use countersign_wire::{base64url, hash::Sha256Hex, timestamp::Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{
    bundle_folder,
    index::Index,
    port::{Change, Commit, Journal, JournalError, Kind, Record, Retention},
};
use crate::{
    identity::profile::{
        ProfileError,
        private_folder::{check_own_folder, open_private, sync_folder},
    },
    random,
};

/// The beginning of the first line; the generation follows.
const HEADER: &str = "countersign journal 1 ";

/// The length of the first line with its end: a generation is 16 random bytes.
const HEADER_LENGTH: usize = HEADER.len() + 22 + 1;

/// Characters of a line's checksum.
const CHECKSUM_LENGTH: usize = 16;

/// A file with fewer bytes is not rewritten.
const MIN_REWRITE: u64 = 64 << 10;

/// In a file, for processes that must not act twice after a restart. Several processes may use it at once.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    retention: Retention,
    state: Mutex<State>,
}

/// What this process has read of the file.
#[derive(Debug, Default)]
struct State {
    /// The first line; empty before the file was read.
    header: Vec<u8>,
    /// How far it was read: the end of a line.
    offset: u64,
    lines: u64,
    index: Index,
    /// The file is rewritten when it is this long.
    rewrite_at: u64,
    /// Whether the name of this file is known to be durable. Who has renamed it may have ended before that.
    is_name_durable: bool,
}

/// A change as it is written.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", deny_unknown_fields)]
enum Written<'a> {
    #[serde(rename_all = "camelCase")]
    Put {
        kind: Kind,
        key: Cow<'a, str>,
        value: Cow<'a, str>,
        keep_until: String,
    },
    Remove {
        kind: Kind,
        key: Cow<'a, str>,
    },
}

impl FileJournal {
    /// Uses the file at this path, which is made when it is first needed. Nobody else may write to its folder: whoever
    /// can rename the file can make it forget.
    pub fn new(path: PathBuf) -> Self {
        Self::with_retention(path, Retention::default())
    }

    /// As [`FileJournal::new`], with another time or size for finished exchanges.
    pub fn with_retention(path: PathBuf, retention: Retention) -> Self {
        Self { path, retention, state: Mutex::default() }
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        folder.unwrap_or(Path::new("."))
    }

    fn open(&self) -> Result<File, ProfileError> {
        open_private(&self.path, OpenOptions::new().read(true).write(true))
    }

    /// The path with an ending, for what is beside the file.
    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    /// Waits until no other thread or process uses the file, and reads what is new in it.
    fn up_to_date(&self) -> Result<(MutexGuard<'_, State>, Locked), JournalError> {
        let mut state = self.state.lock();
        check_own_folder(self.folder())?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let lock = open_private(&self.beside(".lock"), &mut options)?;
        lock.lock().map_err(self.io())?;
        let file = match self.open() {
            Err(_) if is_missing(&self.path) => {
                // If it was removed while this process ran, what it said is written again.
                self.rewrite(&mut state)?;
                self.open()?
            }
            file => file?,
        };
        let mut locked = Locked { file, _lock: lock };
        self.read_new(&mut state, &mut locked.file)?;
        Ok((state, locked))
    }

    fn read_new(&self, state: &mut State, file: &mut File) -> Result<(), JournalError> {
        let mut header = vec![0; HEADER_LENGTH];
        file.seek(SeekFrom::Start(0)).map_err(self.io())?;
        let is_header = file.read_exact(&mut header).is_ok()
            && header.starts_with(HEADER.as_bytes())
            && header.ends_with(b"\n");
        if !is_header {
            return Err(JournalError::Version { path: self.path.clone() });
        }
        let length = file.metadata().map_err(self.io())?.len();
        if header != state.header {
            let offset = u64::try_from(HEADER_LENGTH).unwrap_or_default();
            *state = State { header, offset, lines: 1, ..State::default() };
        }
        if length < state.offset {
            // Somebody else has shortened it: what it said was forgotten.
            return Err(JournalError::Damaged { path: self.path.clone(), line: state.lines });
        }
        if length == state.offset {
            return Ok(());
        }
        file.seek(SeekFrom::Start(state.offset)).map_err(self.io())?;
        let room = usize::try_from(length - state.offset).unwrap_or_default() + 64;
        let mut text = Zeroizing::new(Vec::with_capacity(room));
        file.read_to_end(&mut text).map_err(self.io())?;
        // A process that ended while it wrote has left a line without an end. Nothing rests on it.
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in text[..complete].split_inclusive(|byte| *byte == b'\n') {
            let damaged = || JournalError::Damaged { path: self.path.clone(), line: state.lines + 1 };
            for change in read_line(line).ok_or_else(damaged)? {
                state.index.apply(change);
            }
            state.lines += 1;
            state.offset += u64::try_from(line.len()).unwrap_or_default();
        }
        if complete < text.len() {
            file.set_len(state.offset).map_err(self.io())?;
            file.sync_all().map_err(self.io())?;
        }
        if state.rewrite_at == 0 {
            let live: usize = state.index.all().map(|record| written(&[Change::Put(record)]).len()).sum();
            state.rewrite_at = rewrite_at(live);
        }
        Ok(())
    }

    fn append(&self, state: &mut State, file: &mut File, changes: &[Change]) -> Result<(), JournalError> {
        let line = written(changes);
        let end = file.seek(SeekFrom::Start(state.offset));
        let done = end.and_then(|_| file.write_all(&line)).and_then(|()| file.sync_all());
        if let Err(source) = done {
            // What was written in part is removed here, or by whoever reads next.
            let _ = file.set_len(state.offset);
            return Err(self.io()(source));
        }
        for change in changes {
            state.index.apply(change.clone());
        }
        state.lines += 1;
        state.offset += u64::try_from(line.len()).unwrap_or_default();
        if !state.is_name_durable {
            sync_folder(self.folder())?;
            state.is_name_durable = true;
        }
        Ok(())
    }

    /// Writes the records to a new file in the place of the old one. Only whoever has the lock does.
    fn rewrite(&self, state: &mut State) -> Result<(), JournalError> {
        let generation = random::bytes::<16>().map_err(|error| self.io()(io::Error::other(error)))?;
        let header = format!("{HEADER}{}\n", base64url::encode(&generation)).into_bytes();
        let mut content = Zeroizing::new(header.clone());
        let mut lines = 1;
        for record in state.index.all() {
            content.extend_from_slice(&written(&[Change::Put(record)]));
            lines += 1;
        }
        let new = self.beside(".new");
        if !is_missing(&new) {
            // A process has ended while it rewrote the file.
            fs::remove_file(&new).map_err(self.io())?;
        }
        let mut file = open_private(&new, OpenOptions::new().write(true).create_new(true))?;
        let done = file.write_all(&content).and_then(|()| file.sync_all());
        done.and_then(|()| fs::rename(&new, &self.path)).map_err(self.io())?;
        state.header = header;
        state.offset = u64::try_from(content.len()).unwrap_or_default();
        state.lines = lines;
        state.rewrite_at = rewrite_at(content.len());
        state.is_name_durable = false;
        Ok(())
    }

    fn io(&self) -> impl Fn(io::Error) -> JournalError {
        |source| JournalError::Io { path: self.path.clone(), source }
    }
}

/// The open file, and the right to use it.
struct Locked {
    file: File,
    _lock: File,
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Twice the length of what is live, so that rewriting costs as much as appending.
fn rewrite_at(live: usize) -> u64 {
    MIN_REWRITE.max(u64::try_from(live).unwrap_or(u64::MAX).saturating_mul(2))
}

fn checksum(json: &[u8]) -> String {
    let mut text = Sha256Hex::digest(json).to_string();
    text.truncate(CHECKSUM_LENGTH);
    text
}

/// The line of a commit.
fn written(changes: &[Change]) -> Zeroizing<Vec<u8>> {
    let list = changes.iter().filter_map(|change| match change {
        Change::Add(record) | Change::Put(record) => Some(Written::Put {
            kind: record.kind,
            key: Cow::Borrowed(&record.key),
            value: Cow::Borrowed(&record.value),
            keep_until: record.keep_until.to_string(),
        }),
        Change::Remove(kind, key) => Some(Written::Remove { kind: *kind, key: Cow::Borrowed(key) }),
        Change::Absent(..) | Change::Present(..) => None,
    });
    let list: Vec<Written<'_>> = list.collect();
    // Room for most of it: a buffer that grows leaves copies behind.
    let room: usize = changes.iter().map(room).sum();
    let mut json = Zeroizing::new(Vec::with_capacity(room));
    if serde_json::to_writer(&mut *json, &list).is_err() {
        unreachable!("texts can be written as JSON");
    }
    let mut line = Zeroizing::new(Vec::with_capacity(json.len() + CHECKSUM_LENGTH + 2));
    line.extend_from_slice(checksum(&json).as_bytes());
    line.push(b' ');
    line.extend_from_slice(&json);
    line.push(b'\n');
    line
}

fn room(change: &Change) -> usize {
    match change {
        Change::Add(record) | Change::Put(record) => record.value.len() / 2 * 3 + record.key.len() + 128,
        Change::Remove(..) | Change::Absent(..) | Change::Present(..) => 128,
    }
}

/// The changes in a line; `None` if it is not as it was written.
fn read_line(line: &[u8]) -> Option<Vec<Change>> {
    let json = line.get(CHECKSUM_LENGTH..)?.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    if line.get(..CHECKSUM_LENGTH)? != checksum(json).as_bytes() {
        return None;
    }
    let list: Vec<Written<'_>> = serde_json::from_slice(json).ok()?;
    let changes = list.into_iter().map(|written| match written {
        Written::Put { kind, key, value, keep_until } => {
            let (key, value) = (key.into_owned(), Zeroizing::new(value.into_owned()));
            Some(Change::Put(Record { kind, key, value, keep_until: keep_until.parse().ok()? }))
        }
        Written::Remove { kind, key } => Some(Change::Remove(kind, key.into_owned())),
    });
    changes.collect()
}

impl Journal for FileJournal {
    fn commit(&self, changes: &[Change], now: Timestamp) -> Result<Commit, JournalError> {
        let (mut state, mut locked) = self.up_to_date()?;
        if let Some(kind) = state.index.conflict(changes) {
            return Ok(Commit::Conflict(kind));
        }
        if state.offset >= state.rewrite_at {
            state.index.forget(now);
            self.rewrite(&mut state)?;
            locked.file = self.open()?;
        }
        self.append(&mut state, &mut locked.file, changes)?;
        Ok(Commit::Done)
    }

    fn get(&self, kind: Kind, key: &str) -> Result<Option<Record>, JournalError> {
        Ok(self.up_to_date()?.0.index.get(kind, key))
    }

    fn list(&self, kind: Kind) -> Result<Vec<Record>, JournalError> {
        Ok(self.up_to_date()?.0.index.list(kind))
    }

    fn list_new(&self, kind: Kind, known: &BTreeSet<String>) -> Result<Vec<Record>, JournalError> {
        Ok(self.up_to_date()?.0.index.list_new(kind, known))
    }

    fn last(&self, kind: Kind, prefix: &str) -> Result<Option<Record>, JournalError> {
        Ok(self.up_to_date()?.0.index.last(kind, prefix))
    }

    fn keep_bundle(&self, name: &str, text: &str, now: Timestamp) -> Result<(), JournalError> {
        bundle_folder::keep(&self.beside(".bundles"), name, text, self.retention, now)
    }

    fn bundles(&self) -> Result<Vec<String>, JournalError> {
        bundle_folder::names(&self.beside(".bundles"))
    }

    fn bundle(&self, name: &str) -> Result<Option<Zeroizing<String>>, JournalError> {
        bundle_folder::read(&self.beside(".bundles"), name)
    }
}
