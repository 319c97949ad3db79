//! The journal in memory and in a file: restarts, crashes, many threads, damage, privacy, and how it is shortened.

use std::{fs, time::Duration};

use countersign_wire::timestamp::Timestamp;
use zeroize::Zeroizing;

use super::*;

fn at(seconds: u64) -> Timestamp {
    let start: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    start.plus(Duration::from_secs(seconds))
}

fn record(kind: Kind, key: &str, value: &str, keep_until: Timestamp) -> Record {
    Record { kind, key: key.to_owned(), value: Zeroizing::new(value.to_owned()), keep_until }
}

fn journal(folder: &tempfile::TempDir) -> FileJournal {
    FileJournal::new(folder.path().join("journal"))
}

fn text(folder: &tempfile::TempDir) -> String {
    fs::read_to_string(folder.path().join("journal")).unwrap()
}

fn use_nonce(journal: &dyn Journal, nonce: &str) -> bool {
    journal.use_nonce(nonce, "r", at(3_600), at(0)).unwrap()
}

#[test]
fn a_nonce_is_used_once_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let again = |nonce: &str| use_nonce(&journal(&folder), nonce);
    assert!(again("a") && !again("a") && again("b") && !again("a") && !again("b"));
    // A crash in the middle of a write.
    let whole = text(&folder);
    for cut in [1, 10, 16, 17, 40] {
        let line = whole.lines().last().unwrap();
        fs::write(folder.path().join("journal"), format!("{whole}{}", &line[..cut])).unwrap();
        assert!(!again("a"), "{cut}");
        assert_eq!(text(&folder), whole, "what was cut off is removed");
    }
    assert!(again("c") && !again("c") && !again("a"));
    let memory = MemoryJournal::default();
    assert!(use_nonce(&memory, "a") && !use_nonce(&memory, "a"));
}

#[test]
fn a_commit_is_done_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let journals: [Box<dyn Journal>; 2] = [Box::new(MemoryJournal::default()), Box::new(journal(&folder))];
    for journal in journals {
        let add = |kind, key| Change::Add(record(kind, key, "x", at(3_600)));
        let commit = |changes: &[Change]| journal.commit(changes, at(0)).unwrap();
        assert_eq!(commit(&[add(Kind::Open, "r"), add(Kind::Nonce, "n")]), Commit::Done);
        let twice = [add(Kind::Use, "r/1"), Change::Remove(Kind::Open, "r".into()), add(Kind::Nonce, "n")];
        assert_eq!(commit(&twice), Commit::Conflict(Kind::Nonce));
        assert!(journal.get(Kind::Use, "r/1").unwrap().is_none());
        assert!(journal.get(Kind::Open, "r").unwrap().is_some());
        let unless = [Change::Absent(Kind::Open, "r".into()), add(Kind::Use, "r/1")];
        assert_eq!(commit(&unless), Commit::Conflict(Kind::Open));
        let only_if = |key: &str| [Change::Present(Kind::Open, key.into()), add(Kind::Use, "p/1")];
        assert_eq!(commit(&only_if("s")), Commit::Conflict(Kind::Open));
        assert!(journal.get(Kind::Use, "p/1").unwrap().is_none());
        assert_eq!(commit(&only_if("r")), Commit::Done);
        assert_eq!(commit(&[Change::Remove(Kind::Open, "r".into())]), Commit::Done);
        assert_eq!(commit(&unless), Commit::Done);
        for key in ["r/2", "r/3", "s/9"] {
            assert_eq!(commit(&[add(Kind::Use, key)]), Commit::Done);
        }
        assert_eq!(journal.last(Kind::Use, "r/").unwrap().unwrap().key, "r/3");
        assert!(journal.last(Kind::Use, "q/").unwrap().is_none());
        assert_eq!(journal.list(Kind::Use).unwrap().len(), 5);
        let known = ["p/1", "r/1", "r/3", "x"].map(str::to_owned).into();
        let new: Vec<String> =
            journal.list_new(Kind::Use, &known).unwrap().into_iter().map(|record| record.key).collect();
        assert_eq!(new, ["r/2", "s/9"]);
    }
}

#[test]
fn a_process_sees_what_others_append_and_what_they_rewrite() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (journal(&folder), journal(&folder));
    assert!(use_nonce(&one, "a") && !use_nonce(&other, "a"));
    assert!(use_nonce(&other, "b") && !use_nonce(&one, "b"));
    // The other rewrites the file several times while the first one looks away.
    let before = text(&folder);
    for round in 0..400 {
        let large = record(Kind::Open, "r", &"x".repeat(1_000), at(3_600));
        assert_eq!(other.commit(&[Change::Put(large)], at(round)).unwrap(), Commit::Done);
    }
    assert_ne!(before.lines().next(), text(&folder).lines().next(), "there is another generation");
    assert!(
        !use_nonce(&one, "a") && !use_nonce(&one, "b") && use_nonce(&one, "c") && !use_nonce(&other, "c")
    );
    assert_eq!(one.get(Kind::Open, "r").unwrap().unwrap().value.len(), 1_000);
}

#[test]
fn a_long_journal_is_shortened_and_forgets_only_what_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(&folder);
    assert!(journal.use_nonce("kept", "r", at(1_000_000), at(0)).unwrap());
    let mut longest = 0;
    for second in 0..3_000 {
        let nonce = format!("{second}");
        assert!(journal.use_nonce(&nonce, "r", at(second + 60), at(second)).unwrap());
        if second % 100 == 0 {
            longest = longest.max(text(&folder).len());
        }
    }
    assert!(longest < 140 << 10, "{longest} bytes");
    assert!(!use_nonce(&journal, "kept"));
    // Whoever comes within the time is known.
    assert!((2_941..3_000).all(|second| !use_nonce(&journal, &format!("{second}"))));
    // A process that ended while it rewrote the file has left this.
    fs::write(folder.path().join("journal.new"), "half").unwrap();
    for second in 3_000..4_500 {
        assert!(journal.use_nonce(&format!("{second}"), "r", at(second + 60), at(second)).unwrap());
    }
    assert!(!folder.path().join("journal.new").exists());
}

#[test]
fn of_many_threads_one_uses_it_also_while_the_file_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let padding = "x".repeat(2_000);
    let won: usize = std::thread::scope(|scope| {
        let use_all = || {
            let journal = journal(&folder);
            let use_one = |number: &u32| {
                let nonce = record(Kind::Nonce, &number.to_string(), "r", at(3_600));
                let padding = record(Kind::Open, "padding", &padding, at(3_600));
                let changes = [Change::Add(nonce), Change::Put(padding)];
                journal.commit(&changes, at(0)).unwrap() == Commit::Done
            };
            (0..100).filter(use_one).count()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(use_all)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(won, 100);
}

#[test]
fn a_damaged_line_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let first = journal(&folder);
    assert!(use_nonce(&first, "aaaa") && use_nonce(&first, "bbbb") && use_nonce(&first, "cccc"));
    let whole = text(&folder);
    for (damaged, line) in [
        (whole.replacen("bbbb", "bbbx", 1), 3),
        (whole.replacen("cccc", "cccx", 1), 4),
        (whole.replacen("aaaa", "aa\naa", 1), 2),
        (whole.replacen('[', "", 1), 2),
        (format!("{whole}\n"), 5),
    ] {
        fs::write(&path, damaged).unwrap();
        let error = journal(&folder).use_nonce("d", "r", at(9), at(0)).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { line: found, .. } if found == line), "{error}");
        assert!(error.to_string().contains("Restore it from a backup"), "{error}");
    }
    // Shortened by somebody else: a process that has read more does not forget.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(first.use_nonce("cccc", "r", at(9), at(0)).is_err());
    for other in ["", "x", "{\"nonce\":\"a\"}\n", &whole.replacen("journal 1", "journal 2", 1)] {
        fs::write(&path, other).unwrap();
        let error = journal(&folder).use_nonce("d", "r", at(9), at(0)).unwrap_err();
        assert!(matches!(error, JournalError::Version { .. }), "{other}: {error}");
    }
    // Removed while a process runs: what it has read is written again.
    fs::remove_file(&path).unwrap();
    assert!(!use_nonce(&first, "cccc") && !use_nonce(&journal(&folder), "cccc"));
}

#[test]
fn a_journal_is_private_and_no_link() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    assert!(use_nonce(&journal(&folder), "a"));
    journal(&folder).keep_bundle("r-1", "{}", at(0)).unwrap();
    for file in ["journal", "journal.lock"] {
        let mode = fs::metadata(folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let refused = || matches!(journal(&folder).list(Kind::Nonce), Err(JournalError::Access(_)));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refused());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!refused());
    for others in [0o770, 0o702, 0o1777] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(others)).unwrap();
        assert!(refused(), "others can rename it: {others:o}");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    symlink(folder.path().join("elsewhere"), &path).unwrap();
    assert!(refused());
    fs::remove_file(&path).unwrap();
    symlink(folder.path().join("nowhere"), &path).unwrap();
    assert!(refused(), "a link to nothing does not begin a new journal");
    let error = FileJournal::new("/nonexistent/journal".into()).list(Kind::Nonce).unwrap_err();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}

#[test]
fn bundles_are_kept_for_a_time_and_up_to_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let retention = Retention { time: Duration::from_secs(100), bytes: 1_000 };
    let file = FileJournal::with_retention(folder.path().join("journal"), retention);
    let memory = MemoryJournal::with_retention(retention);
    for journal in [&file as &dyn Journal, &memory] {
        let kept = |names: &[String]| -> Vec<String> {
            names.iter().map(|name| name.split_once('-').unwrap().1.to_owned()).collect()
        };
        for (second, name) in [(0, "a"), (10, "b"), (20, "c")] {
            journal.keep_bundle(name, &"x".repeat(400), at(second)).unwrap();
        }
        assert_eq!(kept(&journal.bundles().unwrap()), ["b", "c"], "the oldest one is too much");
        journal.keep_bundle("d", "small", at(111)).unwrap();
        let names = journal.bundles().unwrap();
        assert_eq!(kept(&names), ["c", "d"], "one is too old");
        assert_eq!(journal.bundle(&names[1]).unwrap().unwrap().as_str(), "small");
        journal.keep_bundle("e", &"x".repeat(5_000), at(112)).unwrap();
        assert_eq!(kept(&journal.bundles().unwrap()), ["e"], "the newest one stays, whatever its size");
        for other in ["", "../journal", "x"] {
            assert!(journal.bundle(other).unwrap().is_none());
        }
    }
}

/// A small generator, so that a failure can be repeated.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit).unwrap()
    }
}

#[test]
fn a_file_that_three_use_is_what_memory_is() {
    const KINDS: [Kind; 3] = [Kind::Nonce, Kind::Open, Kind::Use];
    let folder = tempfile::tempdir().unwrap();
    let (memory, mut rng) = (MemoryJournal::default(), Rng(0x5eed));
    let mut files = [journal(&folder), journal(&folder), journal(&folder)];
    let mut generations = std::collections::BTreeSet::new();
    for step in 0..1_500 {
        let mut changes = Vec::new();
        for _ in 0..=rng.below(3) {
            let (kind, key) = (KINDS[rng.below(3)], rng.below(12).to_string());
            let new = record(kind, &key, &"x\n\u{e9}".repeat(rng.below(400)), at(3_600));
            changes.push(match rng.below(8) {
                0 | 1 => Change::Remove(kind, key),
                2 => Change::Absent(kind, key),
                3 => Change::Add(new),
                4 => Change::Present(kind, key),
                _ => Change::Put(new),
            });
        }
        let who = rng.below(3);
        if rng.below(20) == 0 {
            files[who] = journal(&folder);
        }
        let here = files[who].commit(&changes, at(0)).unwrap();
        assert_eq!(here, memory.commit(&changes, at(0)).unwrap(), "step {step}");
        let reader = &files[rng.below(3)];
        for kind in KINDS {
            assert_eq!(reader.list(kind).unwrap(), memory.list(kind).unwrap(), "step {step}");
        }
        generations.insert(text(&folder).lines().next().unwrap().to_owned());
    }
    assert!(generations.len() > 5, "it was rewritten: {}", generations.len());
}
