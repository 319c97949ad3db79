//! TLS between clients and nodes: an authority that every client in this process trusts.

use std::{env, fs, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::{
    Failure,
    tls::{Authority, CertificateFiles, TlsClient},
};

/// The client library and reqwest trust what is in the file that this names, instead of what the system trusts.
const TRUSTED: &str = "SSL_CERT_FILE";

/// The folder of the authority, set in a process whose clients trust it.
const FOLDER: &str = "COUNTERSIGN_LAB_AUTHORITY";

/// What nodes serve and clients trust. Its files are removed with it.
#[derive(Debug)]
pub(crate) struct Trust {
    folder: PathBuf,
}

impl Trust {
    /// Replaces this process by one with the same arguments whose clients trust a new authority, and returns there. What a
    /// process trusts is in its environment, which can't be changed while it runs.
    pub(crate) fn in_own_authority() -> Result<Self, Failure> {
        if let Some(folder) = env::var_os(FOLDER) {
            return Ok(Self { folder: folder.into() });
        }
        let (authority, folder) = (Authority::new()?, TempDir::with_prefix("countersign-authority-")?);
        authority.issue(folder.path())?;
        let new = Self { folder: folder.keep() };
        authority.write_to(&new.authority())?;
        let mut command = Command::new(env::current_exe()?);
        command.args(env::args_os().skip(1)).env(TRUSTED, new.authority()).env(FOLDER, &new.folder);
        // Returns only if it fails.
        Err(command.exec().into())
    }

    /// The section of a node's configuration.
    pub(super) fn section(&self) -> String {
        CertificateFiles::in_folder(&self.folder).section(None)
    }

    pub(super) fn client(&self) -> Result<TlsClient, Failure> {
        TlsClient::trusting(&self.authority())
    }

    fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }
}

impl Drop for Trust {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}
