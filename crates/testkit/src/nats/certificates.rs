//! A private authority, and what it has signed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::child_process::output;

/// A folder with `ca.pem`, and `server.pem` and `client.pem` with their keys, `server.key` and `client.key`. The server
/// is `localhost`.
#[derive(Debug)]
pub struct Certificates(TempDir);

impl Certificates {
    /// Makes an authority and what it signs.
    ///
    /// # Panics
    ///
    /// Where there is no openssl.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        make(folder.path(), "ca", "/CN=private authority", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        for name in ["server", "client"] {
            let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=DNS:localhost"];
            let leaf = ["-addext", "basicConstraints=critical,CA:FALSE"];
            make(folder.path(), name, "/CN=localhost", &[&signed[..], &leaf].concat());
        }
        Self(folder)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

fn make(folder: &Path, name: &str, subject: &str, more: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", subject]).args(more);
    command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    output(command.current_dir(folder));
}
