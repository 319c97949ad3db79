//! A folder that only its owner has access to: checked when it is read, written atomically, locked while it changes.
//!
//! Owner and rights of everything are checked. Where the system does not say them, nothing is read or written.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use countersign_wire::Error as WireError;
use zeroize::Zeroizing;

use super::error::ProfileError;
use crate::platform::{
    self, Others, no_follow, others_can_write, others_have_access, private_builder, private_mode,
};

const LOCK_FILE: &str = "lock";

/// How the names of files end that are being written.
const TEMPORARY: &str = ".tmp";

/// Bytes of a file that is still read: far more than any profile has, and little enough for memory.
const MAX_FILE: u64 = 16 << 20;

/// A private folder. Files are read at any time, and written by whoever holds its lock.
#[derive(Debug, Clone)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Opens a folder that exists, if nobody else has access to it.
    pub(crate) fn open(path: &Path) -> Result<Self, ProfileError> {
        let found = fs::symlink_metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ProfileError::Missing { path: path.to_owned() },
            _ => ProfileError::io(path, "read")(error),
        })?;
        check(path, &found, Kind::Folder)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Makes a new folder and the missing ones above it, none of which others have access to.
    pub(crate) fn create(path: &Path) -> Result<Self, ProfileError> {
        let parent = path.parent().unwrap_or(path);
        private_builder(true).create(parent).map_err(ProfileError::io(parent, "created"))?;
        private_builder(false).create(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ProfileError::Exists { path: path.to_owned() },
            _ => ProfileError::io(path, "created")(error),
        })?;
        Self::open(path).inspect_err(|_| drop(fs::remove_dir(path)))
    }

    /// The folder itself, for messages and other names.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole content of a file; `None` if there is no such file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, ProfileError> {
        let path = self.path.join(name);
        let file = match no_follow(OpenOptions::new().read(true)).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error(&path, error)),
        };
        // The open file is checked and not its name, behind which another could be by now.
        let found = file.metadata().map_err(ProfileError::io(&path, "read"))?;
        check(&path, &found, Kind::File)?;
        if found.len() > MAX_FILE {
            let source = WireError::breaks("", "has more than 16 MB");
            return Err(ProfileError::Damaged { path, source });
        }
        // Room for all of it: a buffer that grows leaves copies of secrets behind.
        let room = usize::try_from(found.len()).unwrap_or_default() + 64;
        let mut content = Zeroizing::new(Vec::with_capacity(room));
        file.take(MAX_FILE).read_to_end(&mut content).map_err(ProfileError::io(&path, "read"))?;
        Ok(Some(content))
    }

    /// Waits until no other thread or process changes the folder, and removes what one that crashed has left.
    pub(crate) fn lock(&self) -> Result<Locked<'_>, ProfileError> {
        let path = self.path.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_private(&path, &mut options)?;
        file.lock().map_err(ProfileError::io(&path, "locked"))?;
        let locked = Locked { folder: self, _file: file };
        locked.sweep()?;
        Ok(locked)
    }
}

/// The right to write to a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'f> {
    folder: &'f PrivateFolder,
    _file: File,
}

impl Locked<'_> {
    /// Replaces the content of a file. After a crash at any point the file has the old content or the new.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), ProfileError> {
        let target = self.folder.path.join(name);
        let temporary = self.folder.path.join(format!(".{name}{TEMPORARY}"));
        let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, &target));
        written.map_err(|error| {
            // What is left of it is removed with the next lock at the latest.
            let _ = fs::remove_file(&temporary);
            ProfileError::io(&target, "written")(error)
        })?;
        self.sync()
    }

    /// Gives a file another name, in place of the file that has it.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), ProfileError> {
        let (from, to) = (self.folder.path.join(from), self.folder.path.join(to));
        fs::rename(&from, &to).map_err(ProfileError::io(&from, "renamed"))?;
        self.sync()
    }

    /// Removes a file, which must exist.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ProfileError> {
        let path = self.folder.path.join(name);
        fs::remove_file(&path).map_err(ProfileError::io(&path, "removed"))?;
        self.sync()
    }

    /// Removes the files that were being written when a process crashed: whoever has the lock is the only writer.
    fn sweep(&self) -> Result<(), ProfileError> {
        let path = &self.folder.path;
        for entry in fs::read_dir(path).map_err(ProfileError::io(path, "read"))? {
            let entry = entry.map_err(ProfileError::io(path, "read"))?;
            let name = entry.file_name();
            let is_temporary =
                name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(TEMPORARY));
            if is_temporary {
                fs::remove_file(entry.path()).map_err(ProfileError::io(entry.path(), "removed"))?;
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), ProfileError> {
        sync_folder(&self.folder.path)
    }
}

/// Opens a file with these options and refuses a link, something else than a file, and what others have access to. One that
/// is made is made for its owner only.
pub(crate) fn open_private(path: &Path, options: &mut OpenOptions) -> Result<File, ProfileError> {
    let file = private_mode(no_follow(options)).open(path).map_err(|error| open_error(path, error))?;
    let found = file.metadata().map_err(ProfileError::io(path, "read"))?;
    check(path, &found, Kind::File)?;
    Ok(file)
}

/// Refuses a folder in which somebody else could rename or remove files.
pub(crate) fn check_own_folder(path: &Path) -> Result<(), ProfileError> {
    let found = fs::metadata(path).map_err(ProfileError::io(path, "read"))?;
    only_owner(path, others_can_write(&found), "go-w")
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), ProfileError> {
    platform::sync_folder(path).map_err(ProfileError::io(path, "written"))
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = private_mode(no_follow(&mut options)).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn open_error(path: &Path, error: io::Error) -> ProfileError {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_symlink() => ProfileError::Symlink { path: path.to_owned() },
        _ => ProfileError::io(path, "opened")(error),
    }
}

/// What is expected in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

fn check(path: &Path, found: &Metadata, expected: Kind) -> Result<(), ProfileError> {
    if found.file_type().is_symlink() {
        return Err(ProfileError::Symlink { path: path.to_owned() });
    }
    let (is_expected, expected_text) = match expected {
        Kind::File => (found.is_file(), "a file"),
        Kind::Folder => (found.is_dir(), "a folder"),
    };
    if !is_expected {
        return Err(ProfileError::WrongKind { path: path.to_owned(), expected: expected_text });
    }
    let mode = if expected == Kind::Folder { "700" } else { "600" };
    only_owner(path, others_have_access(found), mode)
}

/// Refuses what anybody but its owner has to do with, and says which mode it must have.
fn only_owner(path: &Path, others: Others, mode: &'static str) -> Result<(), ProfileError> {
    let path = path.to_owned();
    match others {
        Others::Nobody => Ok(()),
        Others::Owner => Err(ProfileError::NotOwned { path }),
        Others::Access => Err(ProfileError::NotPrivate { path, mode }),
        Others::Unknown => Err(ProfileError::Unchecked { path }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder() -> (tempfile::TempDir, PrivateFolder) {
        let base = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(&base.path().join("a/b/profile")).unwrap();
        (base, folder)
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn everything_is_made_for_its_owner_only() {
        let (base, folder) = folder();
        folder.lock().unwrap().write("keys", b"secret").unwrap();
        for made in ["a", "a/b", "a/b/profile"] {
            assert_eq!(mode(&base.path().join(made)), 0o700, "{made}");
        }
        for made in ["keys", "lock"] {
            assert_eq!(mode(&folder.path().join(made)), 0o600, "{made}");
        }
        assert_eq!(folder.read("keys").unwrap().unwrap().as_slice(), b"secret");
        assert!(folder.read("nothing").unwrap().is_none());
        assert!(matches!(PrivateFolder::create(folder.path()), Err(ProfileError::Exists { .. })));
    }

    #[test]
    fn what_others_have_access_to_is_refused_with_the_command_that_helps() {
        let (_base, folder) = folder();
        folder.lock().unwrap().write("keys", b"secret").unwrap();
        let keys = folder.path().join("keys");
        for others in [0o640, 0o604, 0o660, 0o602, 0o610, 0o601] {
            set_mode(&keys, others);
            let error = folder.read("keys").unwrap_err();
            assert!(matches!(error, ProfileError::NotPrivate { .. }), "{others:o}");
            assert!(error.to_string().contains("chmod 600 '"), "{error}");
        }
        for others in [0o750, 0o705, 0o770, 0o711] {
            set_mode(folder.path(), others);
            let error = PrivateFolder::open(folder.path()).unwrap_err();
            assert!(error.to_string().contains("chmod 700 '"), "{others:o}: {error}");
        }
        set_mode(folder.path(), 0o700);
        set_mode(&folder.path().join("lock"), 0o666);
        assert!(matches!(folder.lock(), Err(ProfileError::NotPrivate { .. })));
    }

    #[test]
    fn what_belongs_to_somebody_else_and_what_can_t_be_checked_is_refused() {
        let check = |others| only_owner(Path::new("keys"), others, "600");
        assert!(check(Others::Nobody).is_ok());
        assert!(matches!(check(Others::Owner), Err(ProfileError::NotOwned { .. })));
        let error = check(Others::Unknown).unwrap_err();
        assert!(matches!(error, ProfileError::Unchecked { .. }), "{error}");
    }

    #[test]
    fn a_link_in_the_place_of_a_file_or_folder_is_refused() {
        let (base, folder) = folder();
        folder.lock().unwrap().write("real", b"secret").unwrap();
        symlink(folder.path().join("real"), folder.path().join("keys")).unwrap();
        assert!(matches!(folder.read("keys"), Err(ProfileError::Symlink { .. })));
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        assert!(matches!(folder.read("dangling"), Err(ProfileError::Symlink { .. })));
        let link = base.path().join("link");
        symlink(folder.path(), &link).unwrap();
        assert!(matches!(PrivateFolder::open(&link), Err(ProfileError::Symlink { .. })));
        fs::remove_file(folder.path().join("lock")).unwrap();
        symlink(folder.path().join("real"), folder.path().join("lock")).unwrap();
        assert!(matches!(folder.lock(), Err(ProfileError::Symlink { .. })));
    }

    #[test]
    fn a_write_replaces_a_link_and_never_what_it_points_to() {
        let (base, folder) = folder();
        let outside = base.path().join("outside");
        fs::write(&outside, "untouched").unwrap();
        symlink(&outside, folder.path().join("pins.json")).unwrap();
        folder.lock().unwrap().write("pins.json", b"{}").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"untouched");
        assert_eq!(folder.read("pins.json").unwrap().unwrap().as_slice(), b"{}");
    }

    #[test]
    fn something_else_in_the_place_of_a_file_is_refused_and_not_waited_for() {
        let (base, folder) = folder();
        fs::create_dir(folder.path().join("keys")).unwrap();
        set_mode(&folder.path().join("keys"), 0o700);
        assert!(matches!(folder.read("keys"), Err(ProfileError::WrongKind { .. })));
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(matches!(folder.read("pipe"), Err(ProfileError::WrongKind { .. })));
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(PrivateFolder::open(&file), Err(ProfileError::WrongKind { .. })));
    }

    #[test]
    fn a_crash_while_writing_leaves_the_old_content_and_no_secret_behind() {
        let (_base, folder) = folder();
        folder.lock().unwrap().write("keys", b"old").unwrap();
        let left = folder.path().join(".keys.tmp");
        fs::write(&left, "half of the new sec").unwrap();
        assert_eq!(folder.read("keys").unwrap().unwrap().as_slice(), b"old");
        let locked = folder.lock().unwrap();
        assert!(!left.exists(), "removed by whoever locks next");
        locked.write("keys", b"new").unwrap();
        assert_eq!(folder.read("keys").unwrap().unwrap().as_slice(), b"new");
        assert!(!left.exists());
    }
}
