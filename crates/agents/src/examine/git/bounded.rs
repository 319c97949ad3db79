//! Reads regular files up to a size. A pipe or a device in their place is never waited for.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// The content of a regular file of at most `max` bytes.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for somebody who writes into it.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    let read = file.take(max.saturating_add(1)).read_to_end(&mut content)?;
    match u64::try_from(read).is_ok_and(|read| read <= max) {
        true => Ok(content),
        false => Err(io::Error::other(format!("it has more than {max} bytes"))),
    }
}

/// As [`read`], for a file of UTF-8 text.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read(path, max)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_of_a_bounded_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        assert_eq!(read(&path("file"), 5).unwrap(), b"12345");
        assert!(read(&path("file"), 4).unwrap_err().to_string().contains("more than 4"));
        assert!(read(folder.path(), 10).is_err() && read(&path("none"), 10).is_err());
        assert!(read(Path::new("/dev/zero"), 10).is_err());
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(read(&path("pipe"), 10).unwrap_err().to_string().contains("regular"));
        fs::write(path("bytes"), [0xff]).unwrap();
        assert!(read_text(&path("bytes"), 10).is_err());
    }
}
