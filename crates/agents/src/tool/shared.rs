//! What the calls of one process share, where it answers many: connections to gateways, and what was read of journals.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign_client::{
    http::{CallError, Http},
    journal::FileJournal,
    profile::{Credential, GatewayUrl},
};
use countersign_wire::hash::Sha256Hex;
use parking_lot::Mutex;

/// Kept for as long as the process runs.
#[derive(Debug, Default)]
pub struct Shared {
    /// By the name of the profile, with what they were made from.
    connections: Mutex<HashMap<String, (Origin, Http)>>,
    journals: Mutex<HashMap<PathBuf, Arc<FileJournal>>>,
}

/// The gateway, and a hash of the credential: a profile may get others while this process runs.
type Origin = (String, Sha256Hex);

impl Shared {
    /// The connections of a profile.
    pub(super) fn http(
        &self,
        profile: &str,
        gateway: &GatewayUrl,
        credential: &Credential,
    ) -> Result<Http, CallError> {
        let origin = (gateway.as_str().to_owned(), Sha256Hex::digest(credential.expose().as_bytes()));
        let mut connections = self.connections.lock();
        if let Some((_, http)) = connections.get(profile).filter(|(found, _)| *found == origin) {
            return Ok(http.clone());
        }
        let http = Http::new(gateway.clone(), Some(credential))?;
        connections.insert(profile.to_owned(), (origin, http.clone()));
        Ok(http)
    }

    /// The journal in a file.
    pub(super) fn journal(&self, path: &Path) -> Arc<FileJournal> {
        let mut journals = self.journals.lock();
        let new = || Arc::new(FileJournal::new(path.to_owned()));
        Arc::clone(journals.entry(path.to_owned()).or_insert_with(new))
    }
}
