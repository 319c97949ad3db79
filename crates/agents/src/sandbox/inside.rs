//! What is tried from inside of a sandbox before anything is started in it: it says what does not hold.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_wire::hash::Sha256Hex;
use serde::{Deserialize, Serialize};

use super::place::HOME;
use crate::call_socket::place::CallSocket;

/// How long the keeper may take to be called.
const CALL_TIME: Duration = Duration::from_secs(2);

/// What has to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The folder of Countersign, which must not be there.
    pub ours: PathBuf,
    /// The settings with the hook, which nobody can change, and the digest of each.
    pub settings: Vec<(PathBuf, Sha256Hex)>,
    /// Where the agent works.
    pub folder: PathBuf,
    /// Whether the keeper is the machine's.
    pub is_system: bool,
}

impl Expected {
    /// The first thing that is otherwise, in words.
    pub fn check(&self) -> Result<(), String> {
        for name in ["profiles", "rules.toml", "keeper.lock", "hooks"] {
            if self.ours.join(name).exists() {
                return Err(format!("{} can be seen in it", self.ours.join(name).display()));
            }
        }
        self.settings.iter().try_for_each(|(file, digest)| is_fixed(file, *digest))?;
        if !self.folder.is_dir() {
            return Err(format!("{} is not there", self.folder.display()));
        }
        let socket = match self.is_system {
            true => CallSocket::of_system(),
            false => CallSocket::in_folder(Path::new(HOME)),
        };
        let called = socket.connect(CALL_TIME);
        called.map(drop).map_err(|error| format!("the keeper can't be reached from it: {error}"))
    }
}

/// Whether a file is there as it was written, and can't be written to, removed or moved away with a folder above it.
fn is_fixed(file: &Path, digest: Sha256Hex) -> Result<(), String> {
    let text = fs::read(file).map_err(|error| format!("{} can't be read: {error}", file.display()))?;
    let changed = || format!("{} can be changed", file.display());
    if Sha256Hex::digest(&text) != digest {
        return Err(format!("{} is another file in it", file.display()));
    }
    if fs::OpenOptions::new().append(true).open(file).is_ok() {
        return Err(changed());
    }
    for part in file.ancestors().filter(|part| part.parent().is_some()) {
        let other = part.with_extension("moved");
        if fs::rename(part, &other).is_ok() {
            drop(fs::rename(&other, part));
            return Err(changed());
        }
    }
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(()),
        _ => Err(changed()),
    }
}
