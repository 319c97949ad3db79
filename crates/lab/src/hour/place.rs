//! Where an agent's machine keeps everything, and where its agent works.

use std::path::PathBuf;

#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Profiles, rules, and what hooks remember.
    pub(super) home: PathBuf,
    /// A repository, so that rules hold there.
    pub(super) work: PathBuf,
}

impl Place {
    /// What a hook writes when it looks for what was said.
    pub(super) fn last_look(&self) -> PathBuf {
        self.home.join("hooks/looked")
    }
}
