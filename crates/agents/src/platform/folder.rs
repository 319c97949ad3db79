//! What a caller hands over.

use std::{os::fd::OwnedFd, path::PathBuf};

/// The folder that a caller is in.
#[derive(Debug)]
pub struct Folder {
    /// What is open: looked into, and never written to.
    pub open: OwnedFd,
    /// Its path, as the caller says.
    pub path: PathBuf,
}
