//! The secrets that the nodes of one gateway share.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::{Context as _, bail};
use countersign_core::{
    model::{pairing::CodeKey, secret_checks::SecretChecks},
    random::RandomSource as _,
};
use countersign_wire::{hash::Sha256Hex, mac::MacKey};

use crate::random::SystemRandom;

/// Both secrets, each in a file of its own below the data folder. They are two, because an operator replaces the first
/// after a restore, and API keys must outlive that.
#[derive(Debug, Clone)]
pub struct Secrets {
    pub(crate) shared: Secret,
    pub(crate) credentials: Secret,
}

/// Signs cursors and event ids, and is the key of the hash of pairing codes.
pub(crate) const SHARED_FILE: &str = "secret";

/// Is the key of the MAC in API keys and tickets.
pub(crate) const CREDENTIALS_FILE: &str = "key-secret";

/// What to do about secrets that are not the store's.
const REMEDY: &str = "Copy the files secret and key-secret from another node or from the backup. If you have replaced \
                      them on purpose, accept those in the data folder with: countersign-gateway secret accept";

impl Secrets {
    /// Reads both from their files below `folder`, and makes those that do not exist.
    pub fn load_or_create(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            shared: Secret::load_or_create(&folder.join(SHARED_FILE))?,
            credentials: Secret::load_or_create(&folder.join(CREDENTIALS_FILE))?,
        })
    }

    /// Reads both from their files below `folder`, which must be those that the store was used with. Makes none: a new
    /// one would not be.
    pub fn load_for(folder: &Path, stored: &SecretChecks) -> anyhow::Result<Self> {
        let load = |name: &str| match Secret::load(&folder.join(name))? {
            Some(secret) => Ok(secret),
            None => {
                bail!("the store was used with a file {name}, and {} has none. {REMEDY}", folder.display())
            }
        };
        let secrets = Self { shared: load(SHARED_FILE)?, credentials: load(CREDENTIALS_FILE)? };
        secrets.compare(folder, stored)?;
        Ok(secrets)
    }

    /// Fails if the store was used with other secrets than these, which are in `folder`.
    pub fn compare(&self, folder: &Path, stored: &SecretChecks) -> anyhow::Result<()> {
        match self.other_than(stored).as_slice() {
            [] => Ok(()),
            files => bail!(
                "the store was used with another {} than the one in {}. {REMEDY}",
                files.join(" and another "),
                folder.display()
            ),
        }
    }

    /// The names of the files whose secrets are others than the store's.
    pub(crate) fn other_than(&self, stored: &SecretChecks) -> Vec<&'static str> {
        let checks = self.checks();
        let shared = (checks.shared != stored.shared).then_some(SHARED_FILE);
        let credentials = (checks.credentials != stored.credentials).then_some(CREDENTIALS_FILE);
        shared.into_iter().chain(credentials).collect()
    }

    /// What the store keeps of them: keyed hashes of a constant, which tell nothing of 256 random bits.
    pub fn checks(&self) -> SecretChecks {
        let check = |secret: &Secret| secret.mac("check value", &[]);
        SecretChecks { shared: check(&self.shared), credentials: check(&self.credentials) }
    }

    /// Secrets that only this process knows.
    pub fn random() -> Self {
        Self { shared: Secret::random(), credentials: Secret::random() }
    }

    /// The key of the MAC in API keys and tickets.
    pub fn mac_key(&self) -> MacKey {
        MacKey::new(self.credentials.0)
    }
}

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
    fn load_or_create(file: &Path) -> anyhow::Result<Self> {
        match Self::load(file)? {
            Some(secret) => Ok(secret),
            None => Self::create(file),
        }
    }

    /// Reads the secret from its file; `None` if there is no file.
    fn load(file: &Path) -> anyhow::Result<Option<Self>> {
        match fs::read_to_string(file) {
            Ok(text) => {
                let hex: Sha256Hex = text.trim().parse().map_err(|_| {
                    anyhow::anyhow!(
                        "{} is not a secret of 64 hex digits; copy it from another node or from a backup",
                        file.display()
                    )
                })?;
                Ok(Some(Self(*hex.as_bytes())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
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

    pub(crate) fn random() -> Self {
        let mut bytes = [0; 32];
        SystemRandom.fill(&mut bytes);
        Self(bytes)
    }

    pub(crate) fn code_key(&self) -> CodeKey {
        CodeKey(*self.mac("pairing codes", &[]).as_bytes())
    }

    /// The key of what nodes say to each other.
    pub(crate) fn doorbell_key(&self) -> MacKey {
        MacKey::new(*self.mac("doorbell between nodes", &[]).as_bytes())
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
