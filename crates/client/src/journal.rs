//! What an enforcer must not forget: which decisions it has used. It is on disk before anything rests on it.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

/// The journal can't be read or written. Nothing may be done then.
#[derive(Debug, thiserror::Error)]
#[error("the journal {path} can't be used, so no decision is: {source}", path = path.display())]
pub struct JournalError {
    path: PathBuf,
    source: std::io::Error,
}

/// Keeps which nonces were used.
pub trait Journal: Send + Sync {
    /// Records that a decision is used. Returns false if its nonce was recorded before, whatever for. It is durable when
    /// this returns.
    fn use_nonce(&self, nonce: &str, request_id: &str, keep_until: Timestamp) -> Result<bool, JournalError>;
}

/// In memory only: for a process that asks once and ends, and for tests. It forgets with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    used: Mutex<HashMap<String, Timestamp>>,
}

impl Journal for MemoryJournal {
    fn use_nonce(&self, nonce: &str, _: &str, keep_until: Timestamp) -> Result<bool, JournalError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !used.contains_key(nonce);
        used.entry(nonce.to_owned()).or_insert(keep_until);
        Ok(is_new)
    }
}

/// In a file of one JSON object a line, only ever appended to, under a lock: several processes may use it.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
}

/// One line of the file: a decision that was used.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    nonce: String,
    request_id: String,
    keep_until: String,
}

impl FileJournal {
    /// Uses the file at this path, which is made when it is first needed. Its folder must be private.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn open(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path)?;
        file.lock()?;
        Ok(file)
    }

    fn append(&self, line: &Line) -> std::io::Result<bool> {
        let mut file = self.open()?;
        let mut ends_with_newline = true;
        let mut reader = BufReader::new(&file);
        let mut text = String::new();
        while reader.read_line(&mut text)? > 0 {
            ends_with_newline = text.ends_with('\n');
            // A line that a crash cut off was never relied on.
            let known: Option<Line> = serde_json::from_str(&text).ok();
            if known.is_some_and(|known| known.nonce == line.nonce) {
                return Ok(false);
            }
            text.clear();
        }
        file.seek(SeekFrom::End(0))?;
        let separator = if ends_with_newline { "" } else { "\n" };
        let line = serde_json::to_string(line).map_err(std::io::Error::other)?;
        file.write_all(format!("{separator}{line}\n").as_bytes())?;
        file.sync_all()?;
        // The file's own entry in its folder.
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(true)
    }
}

impl Journal for FileJournal {
    fn use_nonce(&self, nonce: &str, request_id: &str, keep_until: Timestamp) -> Result<bool, JournalError> {
        let (nonce, request_id) = (nonce.to_owned(), request_id.to_owned());
        let line = Line { nonce, request_id, keep_until: keep_until.to_string() };
        self.append(&line).map_err(|source| JournalError { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_nonce_is_used_once_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let use_nonce = |nonce: &str| FileJournal::new(path.clone()).use_nonce(nonce, "r", later()).unwrap();
        assert!(use_nonce("a") && !use_nonce("a") && use_nonce("b") && !use_nonce("a") && !use_nonce("b"));
        // A crash in the middle of a write.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"nonce\":\"c\",\"requ")).unwrap();
        assert!(use_nonce("c") && !use_nonce("c") && !use_nonce("a"));
        let memory = MemoryJournal::default();
        assert!(
            memory.use_nonce("a", "r", later()).unwrap() && !memory.use_nonce("a", "r", later()).unwrap()
        );
    }

    #[test]
    fn of_many_at_once_one_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let won: usize = std::thread::scope(|scope| {
            let use_all = || {
                let journal = FileJournal::new(path.clone());
                (0..20).filter(|nonce| journal.use_nonce(&nonce.to_string(), "r", later()).unwrap()).count()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(use_all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 20);
    }

    #[test]
    fn a_journal_that_can_not_be_written_is_an_error() {
        let journal = FileJournal::new("/nonexistent/journal".into());
        assert!(
            journal.use_nonce("a", "r", later()).unwrap_err().to_string().contains("/nonexistent/journal")
        );
    }
}
