//! A file as it is at the time of asking.

use std::{
    io::{self, Read},
    path::Path,
};

use countersign_wire::hash::Sha256Hex;
use sha2::{Digest as _, Sha256};

use super::real_path::real_path;
use crate::tool::files;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// The content of a file at the time of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// SHA-256 of all of it.
    pub digest: Sha256Hex,
    /// Its size in bytes.
    pub size: u64,
    /// The content, if it is text and at most [`Examined::MAX_CONTENT`] bytes.
    pub content: Option<String>,
    /// Whether it begins with `#!`.
    pub is_script: bool,
    /// The first line of a script without `#!`: the program that runs it, and perhaps one argument.
    pub run_by: Option<String>,
}

impl Examined {
    /// Larger contents are not shown; their digest is compared all the same.
    pub const MAX_CONTENT: usize = 256 << 10;

    /// Reads a regular file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut file = files::open(path)?;
        let (mut hash, mut size, mut start) = (Sha256::new(), 0_u64, Vec::new());
        copy(&mut file, |chunk| {
            hash.update(chunk);
            size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if start.len() <= Self::MAX_CONTENT {
                start.extend_from_slice(chunk);
            }
            Ok(())
        })?;
        let digest = Sha256Hex::from_bytes(hash.finalize().into());
        let is_script = start.starts_with(b"#!");
        let run_by = first_line(&start);
        let content = match start.len() <= Self::MAX_CONTENT && !start.contains(&0) {
            true => String::from_utf8(start).ok(),
            false => None,
        };
        Ok(Self { digest, size, content, is_script, run_by })
    }
}

/// The system reads no more of the first line.
const MAX_FIRST_LINE: usize = 256;

fn first_line(start: &[u8]) -> Option<String> {
    let rest = start.strip_prefix(b"#!")?;
    let rest = &rest[..rest.len().min(MAX_FIRST_LINE)];
    let line = rest.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// The path with links followed, as a text.
pub fn real(path: &Path) -> String {
    real_path(path).display().to_string()
}

/// Reads everything in chunks.
pub fn copy(reader: &mut dyn Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&chunk[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_examined_with_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"#!/bin/sh\necho\n").unwrap();
        let examined = Examined::read(&path).unwrap();
        assert!(examined.is_script && examined.content.as_deref() == Some("#!/bin/sh\necho\n"));
        assert_eq!(examined.run_by.as_deref(), Some("/bin/sh"));
        fs::write(&path, vec![b'a'; Examined::MAX_CONTENT + 1]).unwrap();
        let examined = Examined::read(&path).unwrap();
        assert!(examined.content.is_none() && examined.size == 262_145);
        fs::write(&path, b"\x7fELF\0").unwrap();
        assert_eq!(Examined::read(&path).unwrap().content, None);
    }
}
