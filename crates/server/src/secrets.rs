//! Secrets that nodes of one gateway share, and the operating system's randomness.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::Context as _;
use countersign_core::{model::pairing::CodeKey, random::RandomSource};
use countersign_wire::hash::Sha256Hex;

/// The operating system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        #[expect(clippy::disallowed_methods, reason = "this is where chance comes from")]
        let filled = getrandom::fill(buffer);
        if let Err(error) = filled {
            // Without randomness no id and no key can be made: stop rather than make weak ones.
            unreachable!("the operating system has no randomness: {error}");
        }
    }
}

/// What must not be in the store: whoever reads the store must not be able to try all pairing codes, nor
/// make cursors.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Reads the secret from its file, or makes both.
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

    /// A secret of this process alone.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        SystemRandom.fill(&mut bytes);
        Self(bytes)
    }

    pub(crate) fn code_key(&self) -> CodeKey {
        CodeKey(*self.mac("pairing codes", &[]).as_bytes())
    }

    /// A keyed hash of `parts`, which can't run into each other. Hashed twice, so that nothing can be appended.
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
