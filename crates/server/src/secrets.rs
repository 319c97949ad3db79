//! The secret that the nodes of one gateway share.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::Context as _;
use countersign_core::{model::pairing::CodeKey, random::RandomSource as _};
use countersign_wire::hash::Sha256Hex;

use crate::random::SystemRandom;

/// Never in the store: a reader of the store must not be able to try all pairing codes, nor to forge cursors.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Reads the secret from its file, or makes a new one and writes it there.
    pub fn load_or_create(file: &Path) -> anyhow::Result<Self> {
        match fs::read_to_string(file) {
            Ok(text) => {
                let hex: Sha256Hex = text.trim().parse().map_err(|_| {
                    anyhow::anyhow!(
                        "{} is not a secret of 64 hex digits; move it away to have a new one made",
                        file.display()
                    )
                })?;
                Ok(Self(*hex.as_bytes()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::create(file),
            Err(error) => Err(error).with_context(|| format!("the secret {} can't be read", file.display())),
        }
    }

    fn create(file: &Path) -> anyhow::Result<Self> {
        let secret = Self::random();
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut out =
            options.open(file).with_context(|| format!("the secret {} can't be written", file.display()))?;
        writeln!(out, "{}", Sha256Hex::from_bytes(secret.0))?;
        out.sync_all()?;
        Ok(secret)
    }

    /// A secret that only this process knows.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        SystemRandom.fill(&mut bytes);
        Self(bytes)
    }

    pub(crate) fn code_key(&self) -> CodeKey {
        CodeKey(*self.mac("pairing codes", &[]).as_bytes())
    }

    /// A keyed hash of `parts`, each with its length. Hashed twice, so that nothing can be appended.
    pub(crate) fn mac(&self, purpose: &str, parts: &[&[u8]]) -> Sha256Hex {
        let mut text = self.0.to_vec();
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part);
        }
        let inner = Sha256Hex::digest(&text);
        Sha256Hex::digest(&[self.0.as_slice(), inner.as_bytes()].concat())
    }
}
