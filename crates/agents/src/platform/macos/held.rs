//! Bytes that nobody is to change any more. There is no seal here: a copy that only this user can reach is compared once more
//! right before the start, and a process of the same user can alter it in between (docs/trust.md).

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::Access;
use tempfile::TempDir;

/// A file whose content stays as it is, as long as no process of the same user alters it.
#[derive(Debug)]
pub struct Kept {
    file: File,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Where the system has it. Only root can change it, or put another one there.
    Own(PathBuf),
    /// In a folder for nobody else, which goes with this.
    Copy { path: PathBuf, _folder: TempDir },
    /// It has no name any more, so no other process finds it.
    Unnamed,
}

impl Kept {
    /// The system's own file, which this user can't change.
    pub fn in_place(file: File, path: &Path) -> io::Result<Self> {
        Ok(Self { file, place: Place::Own(fs::canonicalize(path)?) })
    }

    /// A copy in a folder for nobody else; `fill` writes it. With a path it can be started, and has the last name of the path:
    /// some programs go by it. Without one it has no name at all.
    pub fn copy(path: Option<&Path>, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Self> {
        // Without it, the folder would be open to whomever the umask lets in.
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("countersign-").permissions(private).tempdir()?;
        let name = path.and_then(Path::file_name).unwrap_or(OsStr::new("input"));
        let copy = folder.path().join(name);
        let mode = if path.is_some() { 0o500 } else { 0o400 };
        let mut written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&copy)?;
        fill(&mut written)?;
        // What is open for writing can't be started.
        drop(written);
        let readable = File::open(&copy)?;
        let place = if path.is_some() {
            Place::Copy { path: copy, _folder: folder }
        } else {
            fs::remove_file(copy)?;
            Place::Unnamed
        };
        Ok(Self { file: readable, place })
    }

    /// The path under which this process and its children find it.
    pub fn path(&self) -> PathBuf {
        match &self.place {
            Place::Own(path) | Place::Copy { path, .. } => path.clone(),
            Place::Unnamed => PathBuf::from(format!("/dev/fd/{}", self.file.as_raw_fd())),
        }
    }

    /// Children find it by its path.
    pub fn inherit(&self) -> io::Result<()> {
        match self.place {
            Place::Own(_) | Place::Copy { .. } => Ok(()),
            Place::Unnamed => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The file itself, from its start.
    pub fn into_file(mut self) -> io::Result<File> {
        self.file.rewind()?;
        Ok(self.file)
    }

    /// What has to be compared again right before the start: whatever is at the path now.
    pub fn again(&self) -> Option<io::Result<File>> {
        match &self.place {
            Place::Own(path) | Place::Copy { path, .. } => Some(File::open(path)),
            Place::Unnamed => None,
        }
    }
}

/// Whether this user can write a file, give themselves the right to, or put another one in its place: it is started by its path.
pub fn can_change(path: &Path, _file: &File) -> io::Result<bool> {
    let user = rustix::process::geteuid();
    for part in fs::canonicalize(path)?.ancestors() {
        let is_owner = fs::metadata(part)?.uid() == user.as_raw();
        if user.is_root() || is_owner || rustix::fs::access(part, Access::WRITE_OK).is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file without a name, from its start. `is_inherited`: the next program gets it too.
pub fn in_memory(_name: &str, content: &[u8], is_inherited: bool) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(content)?;
    file.rewind()?;
    if is_inherited {
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, process::Command};

    use super::*;

    fn script(text: &str) -> Kept {
        Kept::copy(Some(Path::new("/opt/tools/greet")), |file| file.write_all(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_copy_runs_is_private_and_goes_with_what_keeps_it() {
        let kept = script("#!/bin/sh\necho hello \"$0\"\n");
        let path = kept.path();
        assert_eq!(path.file_name(), Some(OsStr::new("greet")));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o500, 0o700));
        kept.inherit().unwrap();
        let output = Command::new(&path).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("hello {}\n", path.display()));
        drop(kept);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn what_was_put_in_place_of_a_copy_is_what_is_compared_again() {
        let kept = script("good");
        let text = |kept: &Kept| {
            let mut text = String::new();
            kept.again().unwrap().unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(text(&kept), "good");
        fs::remove_file(kept.path()).unwrap();
        fs::write(kept.path(), "evil").unwrap();
        assert_eq!(text(&kept), "evil");
    }

    #[test]
    fn an_input_has_no_name_and_can_only_be_read() {
        let kept = Kept::copy(None, |file| file.write_all(b"input")).unwrap();
        assert!(kept.path().starts_with("/dev/fd"));
        assert!(kept.again().is_none() && kept.inherit().is_err());
        let mut file = kept.into_file().unwrap();
        file.write_all(b"x").unwrap_err();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "input");
    }

    #[test]
    fn what_is_in_a_folder_of_this_user_can_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "x").unwrap();
        let file = File::open(&path).unwrap();
        assert!(can_change(&path, &file).unwrap());
        let shell = Path::new("/bin/sh");
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(can_change(shell, &file).unwrap(), is_root);
        let kept = Kept::in_place(file, shell).unwrap();
        assert_eq!(kept.path(), fs::canonicalize(shell).unwrap());
    }

    #[test]
    fn a_file_in_memory_is_read_from_its_start() {
        for is_inherited in [false, true] {
            let mut text = String::new();
            in_memory("x", b"content", is_inherited).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "content");
        }
    }
}
