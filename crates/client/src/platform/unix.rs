//! Who else reads or writes a file, by its owner and mode.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use super::others::Others;

/// Bits of a mode that give others anything, and those that let them rename or remove what is in a folder.
const ANY: u32 = 0o077;
const WRITE: u32 = 0o022;

/// Who else could read or write something.
pub(crate) fn others_have_access(found: &Metadata) -> Others {
    others(found, rustix::process::geteuid().as_raw(), ANY)
}

/// Who else could rename or remove what is in a folder.
pub(crate) fn others_can_write(found: &Metadata) -> Others {
    others(found, rustix::process::geteuid().as_raw(), WRITE)
}

fn others(found: &Metadata, user: u32, bits: u32) -> Others {
    if found.uid() != user {
        Others::Owner
    } else if found.mode() & bits != 0 {
        Others::Access
    } else {
        Others::Nobody
    }
}

/// Makes folders for their owner only.
pub(crate) fn private_builder(recursive: bool) -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(recursive).mode(0o700);
    builder
}

/// Makes a file for its owner only.
pub(crate) fn private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Does not follow a link, and does not wait for the other end of a pipe that somebody has put there.
pub(crate) fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.custom_flags(i32::from_ne_bytes(flags.to_ne_bytes()))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_somebody_else_is_not_private() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = file.as_file().metadata().unwrap();
        assert_eq!(others(&found, found.uid(), ANY), Others::Nobody);
        assert_eq!(others(&found, found.uid() + 1, ANY), Others::Owner);
        assert_eq!(others(&found, found.uid() + 1, WRITE), Others::Owner);
    }
}
