//! A system whose owners and rights of files can't be checked yet: nobody can say who else reads or writes a file, so it does for
//! no secret.

use std::{
    fs::{self, Metadata, OpenOptions},
    io,
    path::Path,
};

use super::others::Others;

pub(crate) fn others_have_access(_: &Metadata) -> Others {
    Others::Unknown
}

pub(crate) fn others_can_write(_: &Metadata) -> Others {
    Others::Unknown
}

pub(crate) fn private_builder(recursive: bool) -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(recursive);
    builder
}

pub(crate) fn private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(crate) fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_private_here() {
        let found = fs::metadata("Cargo.toml").unwrap();
        assert_eq!(
            (others_have_access(&found), others_can_write(&found)),
            (Others::Unknown, Others::Unknown)
        );
        assert!(sync_folder(Path::new(".")).is_err());
        let mut options = OpenOptions::new();
        no_follow(private_mode(options.read(true))).open("Cargo.toml").unwrap();
        private_builder(true).create(".").unwrap();
    }
}
