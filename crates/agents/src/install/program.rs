//! The program that hosts are given to run, and who else could replace it.

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::lasting;
use crate::{
    platform::is_administrators,
    tool::exit::{Exit, Failure},
};

/// Who may own and change a file without anybody else having a say in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trusted {
    /// The administrator of the system alone.
    Root,
    /// The administrator, and the user who runs this.
    User,
}

/// The absolute path of the running program.
pub fn current() -> Result<String, Failure> {
    let failed = |why: String| {
        Failure::new(Exit::Failed, format!("the path of this program is not usable: {why}"))
            .next("install it under a plain path such as /usr/local/bin/countersign, and try again")
    };
    let path = env::current_exe().map_err(|error| failed(error.to_string()))?;
    if !path.is_file() {
        return Err(failed(format!("there is no {} any more", path.display())));
    }
    let path = lasting::stable(&path).filter(|stable| stable.is_file()).unwrap_or(path);
    let text = path.to_str().ok_or_else(|| failed(format!("{} is not UTF-8 text", path.display())))?;
    match text.chars().any(char::is_control) {
        true => Err(failed("it has control characters".to_owned())),
        false => Ok(text.to_owned()),
    }
}

/// The absolute path of the running program, for what is to run it later.
pub fn lasting() -> Result<String, Failure> {
    let path = current()?;
    lasting::refuse_fetched(&path)?;
    Ok(path)
}

/// The program that hosts run: a smaller one where a keeper decides, if it is beside this one.
pub fn for_hooks(asks_keeper: bool) -> Result<String, Failure> {
    let tool = current()?;
    let small = Path::new(&tool).with_file_name("countersign-hook");
    match small.to_str() {
        Some(small_path) if asks_keeper && small.is_file() => Ok(small_path.to_owned()),
        _ => Ok(tool),
    }
}

/// The first part of a path that others than the trusted can change, and with it what is behind the path.
pub fn changeable_by_others(path: &Path, trusted: Trusted) -> io::Result<Option<PathBuf>> {
    let real = fs::canonicalize(path)?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for part in real.ancestors() {
        let found = fs::metadata(part)?;
        let is_trusted_owner = found.uid() == 0 || (trusted == Trusted::User && found.uid() == user);
        // The group that has the user's own number is the user's own.
        let is_own_group = trusted == Trusted::User && found.gid() == group && group == user;
        let is_administrators = trusted == Trusted::User && is_administrators(found.gid());
        let is_trusted_group = found.gid() == 0 || is_own_group || is_administrators;
        let by_group = found.mode() & 0o020 != 0 && !is_trusted_group;
        let by_all = found.mode() & 0o002 != 0;
        // In a folder with the sticky bit, such as /tmp, nobody can replace what another owns.
        let is_sticky = found.is_dir() && found.mode() & 0o1000 != 0;
        if !is_trusted_owner || ((by_group || by_all) && !is_sticky) {
            return Ok(Some(part.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_can_write_is_found_wherever_it_is_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("bin");
        fs::create_dir(&inner).unwrap();
        let program = inner.join("countersign");
        fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(&inner, 0o755);
        mode(&program, 0o755);
        assert_eq!(changeable_by_others(&program, Trusted::User).unwrap(), None);
        mode(&program, 0o757);
        assert_eq!(changeable_by_others(&program, Trusted::User).unwrap(), Some(program.clone()));
        mode(&program, 0o755);
        mode(&inner, 0o777);
        assert_eq!(changeable_by_others(&program, Trusted::User).unwrap(), Some(inner.clone()));
        mode(&inner, 0o1777);
        assert_eq!(changeable_by_others(&program, Trusted::User).unwrap(), None);
        changeable_by_others(&inner.join("missing"), Trusted::User).unwrap_err();
    }
}
