//! The person at the desk: whether they are there, and whether they have answered the host's own prompt.
//!
//! A host does not say to a waiting hook that its prompt was answered. But its later events say so: each event of a session
//! raises the session's counter, and whoever waits sees that it has changed.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use countersign_wire::hash::Sha256Hex;

/// How often a waiting hook looks whether the desk has answered.
const LOOK_TIME: Duration = Duration::from_millis(250);

/// How long things are kept that nobody asks for.
const KEEP_TIME: Duration = Duration::from_hours(7 * 24);

/// What is kept of the machine's hooks and of the doctor's last result, for [`machine`](super::machine).
pub(super) const MACHINE: &str = "machine.json";

/// Where the person is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At the desk: the host's own prompt comes first.
    Here,
    /// Away: what agents ask is sent at once.
    Away,
}

/// What is kept between hooks.
#[derive(Debug, Clone)]
pub struct Desk {
    folder: PathBuf,
}

impl Desk {
    /// Keeps everything in this folder, which is made when it is needed.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where everything is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the person has said. Whether the screen is locked is not asked: that would start another program.
    pub fn presence(&self) -> Presence {
        match fs::read_to_string(self.folder.join("presence")) {
            Ok(text) if text.trim() == "away" => Presence::Away,
            _ => Presence::Here,
        }
    }

    /// Keeps what the person says.
    pub fn set_presence(&self, presence: Presence) -> io::Result<()> {
        self.make()?;
        let path = self.folder.join("presence");
        match presence {
            Presence::Away => fs::write(path, "away\n"),
            Presence::Here => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Something has happened in a session, so that no prompt of it waits any more; with a key, that of one call only.
    pub fn moved_on(&self, session: &str, key: Option<&str>) -> io::Result<()> {
        self.make()?;
        let count = self.count(session, key).wrapping_add(1);
        fs::write(self.counter(session, key), count.to_string())
    }

    /// Waits until something happens in a session that ends the prompt for a call.
    pub async fn answered(&self, session: &str, key: Option<&str>) {
        let counts = || (self.count(session, None), key.map(|key| self.count(session, Some(key))));
        let before = counts();
        while counts() == before {
            tokio::time::sleep(LOOK_TIME).await;
        }
    }

    fn count(&self, session: &str, key: Option<&str>) -> u64 {
        let text = fs::read_to_string(self.counter(session, key)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    fn counter(&self, session: &str, key: Option<&str>) -> PathBuf {
        self.file("moved", &[session, key.unwrap_or_default()])
    }

    /// Remembers something about a call or a session for a later hook.
    pub fn keep(&self, what: &str, of: &[&str], text: &str) -> io::Result<()> {
        self.replace(&name_of(what, of), text)
    }

    /// Writes a file that only its owner can read. Whoever reads it meanwhile gets all of it, before or after.
    pub(super) fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        self.make()?;
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let new = self.folder.join(format!("{name}.{process}-{count}.new"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(text.as_bytes())?;
        fs::rename(new, self.folder.join(name))
    }

    /// What was kept last, if it can be read. It stays.
    pub fn read(&self, what: &str, of: &[&str]) -> Option<String> {
        self.kept(what, of).ok().flatten()
    }

    /// What was kept last; `None` if nothing was. It stays.
    pub fn kept(&self, what: &str, of: &[&str]) -> io::Result<Option<String>> {
        match fs::read_to_string(self.file(what, of)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    /// Whether it is time for something that is done now and then: first after the shorter pause, then after twice the pause before, up to
    /// the longer one. It counts as done from now on.
    pub fn is_due(&self, what: &str, [first, longest]: [Duration; 2]) -> bool {
        let path = self.folder.join(what);
        let kept = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        let pause = kept.map_or(first, Duration::from_secs).clamp(first, longest);
        let done = fs::metadata(&path).and_then(|found| found.modified());
        let is_due = done.as_ref().map_or(true, |at| at.elapsed().unwrap_or_default() >= pause);
        let next = if done.is_ok() { pause * 2 } else { first };
        is_due && self.make().and_then(|()| fs::write(path, next.as_secs().to_string())).is_ok()
    }

    /// Makes the next pause the shortest one again, from now on.
    pub fn is_due_soon(&self, what: &str) {
        // If that fails, the pause stays as it is.
        drop(self.make().and_then(|()| fs::write(self.folder.join(what), "0")));
    }

    /// Keeps it no longer.
    pub fn forget(&self, what: &str, of: &[&str]) {
        // It may not be there.
        drop(fs::remove_file(self.file(what, of)));
    }

    /// What was kept not longer than some time ago. It is gone afterwards.
    pub fn take(&self, what: &str, of: &[&str], not_older: Duration) -> Option<String> {
        let path = self.file(what, of);
        let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
        let text = fs::read_to_string(&path).ok()?;
        // Of two that take it, one removes it.
        fs::remove_file(&path).ok()?;
        (age <= not_older).then_some(text)
    }

    /// Removes what nobody has asked for in a week.
    pub fn tidy(&self) {
        let is_old = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|found| found.modified());
            changed.is_ok_and(|at| at.elapsed().unwrap_or_default() > KEEP_TIME)
        };
        // What an approver has stopped stays stopped.
        let is_for_ever = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name == "presence" || name == MACHINE || name.to_string_lossy().starts_with("stopped-")
        };
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten().filter(is_old).filter(|entry| !is_for_ever(entry)) {
            // Another hook may have been faster.
            drop(fs::remove_file(entry.path()));
        }
    }

    fn file(&self, what: &str, of: &[&str]) -> PathBuf {
        self.folder.join(name_of(what, of))
    }

    fn make(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }
}

/// Ids are the host's texts, and no names for files.
fn name_of(what: &str, of: &[&str]) -> String {
    format!("{what}-{}", Sha256Hex::digest(of.join("\0").as_bytes()))
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn presence_is_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        assert_eq!(desk.presence(), Presence::Here);
        desk.set_presence(Presence::Away).unwrap();
        assert_eq!(desk.presence(), Presence::Away);
        desk.set_presence(Presence::Here).unwrap();
        desk.set_presence(Presence::Here).unwrap();
        assert_eq!(desk.presence(), Presence::Here);
    }

    #[tokio::test]
    async fn an_event_of_the_session_ends_the_wait_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().to_owned());
        desk.moved_on("one", None).unwrap();
        for (session, key, ends) in [
            ("../two", None, false),
            ("one", Some("other"), false),
            ("one", Some("call"), true),
            ("one", None, true),
        ] {
            let waits = timeout(Duration::from_millis(800), desk.answered("one", Some("call")));
            let (waited, ()) = tokio::join!(waits, async { desk.moved_on(session, key).unwrap() });
            assert_eq!(waited.is_ok(), ends, "{session} {key:?}");
        }
    }

    #[test]
    fn what_is_kept_is_taken_once_and_not_too_late() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().to_owned());
        let soon = Duration::from_mins(1);
        desk.keep("words", &["a/../b"], "hello").unwrap();
        assert_eq!(desk.take("words", &["other"], soon), None);
        assert_eq!(desk.take("words", &["a/../b"], soon).as_deref(), Some("hello"));
        assert_eq!(desk.take("words", &["a/../b"], soon), None);
        desk.keep("words", &["x"], "late").unwrap();
        let earlier = std::time::UNIX_EPOCH + Duration::from_hours(1);
        fs::File::open(desk.file("words", &["x"])).unwrap().set_modified(earlier).unwrap();
        assert_eq!(desk.take("words", &["x"], soon), None);
    }

    #[test]
    fn what_is_old_is_tidied_away_and_what_was_stopped_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().to_owned());
        let earlier = std::time::UNIX_EPOCH + Duration::from_hours(1);
        desk.replace(MACHINE, "x").unwrap();
        fs::File::open(desk.folder.join(MACHINE)).unwrap().set_modified(earlier).unwrap();
        for what in ["words", "stopped"] {
            desk.keep(what, &["s"], "x").unwrap();
            fs::File::open(desk.file(what, &["s"])).unwrap().set_modified(earlier).unwrap();
        }
        desk.tidy();
        assert_eq!((desk.read("words", &["s"]), desk.read("stopped", &["s"]).as_deref()), (None, Some("x")));
        assert!(desk.folder.join(MACHINE).exists(), "the doctor's last result");
    }

    #[test]
    fn what_is_done_now_and_then_is_not_due_again_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        let often = [5, 30].map(Duration::from_secs);
        assert!(desk.is_due("looked", often));
        assert!(!desk.is_due("looked", often));
        assert!(desk.is_due("looked", [Duration::ZERO; 2]));
    }

    #[test]
    fn what_is_done_now_and_then_is_done_less_often_until_somebody_wants_it_soon() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        let often = [5, 30].map(Duration::from_secs);
        desk.is_due_soon("looked");
        let now = fs::metadata(desk.folder.join("looked")).unwrap().modified().unwrap();
        let is_due_after = |seconds| {
            let file = fs::File::open(desk.folder.join("looked")).unwrap();
            file.set_modified(now - Duration::from_secs(seconds)).unwrap();
            desk.is_due("looked", often)
        };
        for pause in [5, 10, 20, 30, 30] {
            assert!(!is_due_after(pause - 1) && is_due_after(pause), "{pause}");
        }
        desk.is_due_soon("looked");
        assert!(!is_due_after(4) && is_due_after(5));
    }
}
