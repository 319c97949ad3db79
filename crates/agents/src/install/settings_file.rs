//! A file of somebody else's program: read with care, backed up, and replaced as a whole or not at all.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use countersign_wire::timestamp::Timestamp;

use super::json_scan::Problem;
use crate::tool::exit::{Exit, Failure};

/// Bytes of a file that is still edited: far more than any settings have.
const MAX_FILE: u64 = 4 << 20;

/// A settings file as it was when it was read.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// The path by which its host knows it.
    path: PathBuf,
    /// The file itself, behind every link.
    real: PathBuf,
    /// `None` if there is no file.
    content: Option<Content>,
}

#[derive(Debug, Clone)]
struct Content {
    text: String,
    permissions: u32,
    group: u32,
}

/// What becomes of a file.
#[derive(Debug, Clone)]
pub struct Change {
    pub file: SettingsFile,
    /// `None` removes the file.
    pub after: Option<String>,
    /// The mode of a file that is new.
    pub new_mode: u32,
}

impl SettingsFile {
    /// Reads a file if it is this user's own, and text. Another's file, a device or a folder is refused.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: &str| refused(path, why);
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(refuse("is a link that leads nowhere")),
                    Err(_) => Ok(Self { path: path.to_owned(), real: path.to_owned(), content: None }),
                };
            }
            Err(error) => return Err(refuse(&format!("can't be read: {error}"))),
        };
        let found = fs::metadata(&real).map_err(|error| refuse(&format!("can't be read: {error}")))?;
        check(path, &found)?;
        let mut bytes = Vec::new();
        let opened = File::open(&real).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
        opened.map_err(|error| refuse(&format!("can't be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = String::from_utf8_lossy(valid).matches('\n').count() + 1;
            refuse(&format!("is not UTF-8 text in line {line}"))
        })?;
        if text.starts_with('\u{feff}') {
            return Err(refuse(
                "begins with a byte order mark in line 1, which not every program reads over",
            )
            .next("save it as UTF-8 without that mark, and try again"));
        }
        let content = Content { text, permissions: found.mode() & 0o7777, group: found.gid() };
        Ok(Self { path: path.to_owned(), real, content: Some(content) })
    }

    /// The path by which its host knows it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text, if there is a file.
    pub fn text(&self) -> Option<&str> {
        self.content.as_ref().map(|content| content.text.as_str())
    }

    /// Where a link in the path leads, if the file itself is one.
    pub fn link_target(&self) -> Option<&Path> {
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink());
        is_link.then_some(self.real.as_path())
    }

    /// Why the text can't be edited, in words.
    pub fn malformed(&self, problem: &Problem) -> Failure {
        let what = format!(
            "{} can't be edited: in line {}, {}; nothing was changed",
            self.path.display(),
            problem.line,
            problem.what
        );
        Failure::new(Exit::Failed, what).next("repair that line, and try again")
    }

    /// The texts of the backups beside it, newest first.
    pub fn backups(&self) -> Vec<String> {
        let (Some(folder), Some(prefix)) = (self.real.parent(), backup_prefix(&self.real)) else {
            return Vec::new();
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(&prefix))
            .collect();
        names.sort();
        names.iter().rev().filter_map(|name| fs::read_to_string(folder.join(name)).ok()).collect()
    }
}

impl Change {
    /// Whether anything would change.
    pub fn is_needed(&self) -> bool {
        self.file.text() != self.after.as_deref()
    }

    /// Makes the change and returns the backup that was kept of what was there.
    pub fn apply(&self, now: Timestamp) -> Result<Option<PathBuf>, Failure> {
        let real = &self.file.real;
        let failed = |error: io::Error| {
            let what = format!("{} can't be written: {error}; it is as it was", real.display());
            Failure::new(Exit::Failed, what).next("check the folder's owner and free space, and try again")
        };
        let folder = real.parent().unwrap_or(Path::new("/"));
        if self.after.is_some() {
            // Readable by all in managed places, whose users' programs read it; private in a home.
            let mode = if self.new_mode & 0o044 == 0 { 0o700 } else { 0o755 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(failed)?;
        }
        self.check_unchanged()?;
        let backup = self.back_up(now).map_err(failed)?;
        if let Some(text) = &self.after {
            self.replace(folder, text)?;
        } else {
            self.check_unchanged()?;
            fs::remove_file(real).map_err(failed)?;
        }
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(backup)
    }

    fn back_up(&self, now: Timestamp) -> io::Result<Option<PathBuf>> {
        let (Some(content), Some(prefix)) = (&self.file.content, backup_prefix(&self.file.real)) else {
            return Ok(None);
        };
        let path = self.file.real.with_file_name(prefix + &sortable(now));
        write_new(&path, content.text.as_bytes(), content.permissions, None)?;
        Ok(Some(path))
    }

    fn replace(&self, folder: &Path, text: &str) -> Result<(), Failure> {
        let name = self.file.real.file_name().and_then(|name| name.to_str()).unwrap_or("settings");
        let temporary = folder.join(format!(".{name}.countersign-{}", std::process::id()));
        let (mode, group) = match &self.file.content {
            Some(content) => (content.permissions, Some(content.group)),
            None => (self.new_mode, None),
        };
        let clean_up = |failure: Failure| {
            drop(fs::remove_file(&temporary));
            failure
        };
        let failed = |error: io::Error| {
            let what = format!("{} can't be written: {error}; it is as it was", self.file.real.display());
            Failure::new(Exit::Failed, what)
        };
        write_new(&temporary, text.as_bytes(), mode, group).map_err(failed).map_err(clean_up)?;
        self.check_unchanged().map_err(clean_up)?;
        fs::rename(&temporary, &self.file.real).map_err(failed).map_err(clean_up)
    }

    /// The host may have written its settings since they were read; what it wrote must not be lost.
    fn check_unchanged(&self) -> Result<(), Failure> {
        let now = SettingsFile::read(&self.file.path)?;
        if now.text() == self.file.text() && now.real == self.file.real {
            return Ok(());
        }
        let what = format!("{} was changed meanwhile; it was left alone", self.file.path.display());
        Err(Failure::new(Exit::Changed, what).next("try again, best while the agent does not run"))
    }
}

fn backup_prefix(file: &Path) -> Option<String> {
    Some(format!("{}.countersign-backup-", file.file_name()?.to_str()?))
}

/// A time as part of a name; later ones sort behind earlier ones.
fn sortable(now: Timestamp) -> String {
    let text: String = now.to_string().chars().take(19).filter(char::is_ascii_alphanumeric).collect();
    format!("{text}-{:06}", now.unix_micros().rem_euclid(1_000_000))
}

/// Writes a new file to the disk with exactly this mode, whatever the umask is.
fn write_new(path: &Path, content: &[u8], mode: u32, group: Option<u32>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Some(group) = group.filter(|group| file.metadata().is_ok_and(|made| made.gid() != *group)) {
        std::os::unix::fs::fchown(&file, None, Some(group))?;
    }
    file.write_all(content)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

fn check(path: &Path, found: &Metadata) -> Result<(), Failure> {
    let refuse = |why: &str| Err(refused(path, why));
    if !found.is_file() {
        return refuse("is not a regular file");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refuse("belongs to somebody else").map_err(|failure| failure.next("run this as its owner"));
    }
    if found.nlink() > 1 {
        return refuse("has a second name (a hard link), which a new file would not have");
    }
    if found.len() > MAX_FILE {
        return refuse("has more than 4 MB");
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::Failed, format!("{} {why}; nothing was changed", path.display()))
}
