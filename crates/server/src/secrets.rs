//! The secrets that the nodes of one gateway share.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::{Context as _, bail};
use countersign_core::{
    model::{pairing::CodeKey, secret_checks::SecretChecks},
    random::RandomSource as _,
};
use countersign_wire::{hash::Sha256Hex, mac::MacKey};

use crate::{random::SystemRandom, sealing::Sealer};

/// Both secrets, each in a file of its own below the data folder. They are two, because an operator replaces the first
/// after a restore, and API keys must outlive that. Each file is a list, newest first: what the older ones made is accepted,
/// so that nodes can be given a new one in turn.
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
    /// Whether both files are below `folder`.
    pub(crate) fn are_in(folder: &Path) -> bool {
        [SHARED_FILE, CREDENTIALS_FILE].iter().all(|name| folder.join(name).is_file())
    }

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

    /// Fails if the store was used with a secret that is not among these, which are in `folder`.
    pub fn compare(&self, folder: &Path, stored: &SecretChecks) -> anyhow::Result<()> {
        let lacks = |list: &Secret, check: Sha256Hex| list.all().all(|secret| check_value(secret) != check);
        let shared = lacks(&self.shared, stored.shared).then_some(SHARED_FILE);
        let credentials = lacks(&self.credentials, stored.credentials).then_some(CREDENTIALS_FILE);
        match shared.into_iter().chain(credentials).collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            files => bail!(
                "the store was used with another {} than the one in {}. {REMEDY}",
                files.join(" and another "),
                folder.display()
            ),
        }
    }

    /// The names of the files whose newest secrets are others than the store's.
    pub(crate) fn other_than(&self, stored: &SecretChecks) -> Vec<&'static str> {
        let checks = self.checks();
        let shared = (checks.shared != stored.shared).then_some(SHARED_FILE);
        let credentials = (checks.credentials != stored.credentials).then_some(CREDENTIALS_FILE);
        shared.into_iter().chain(credentials).collect()
    }

    /// What the store keeps of the newest ones: keyed hashes of a constant, which tell nothing of 256 random bits.
    pub fn checks(&self) -> SecretChecks {
        let check = |list: &Secret| check_value(&list.newest);
        SecretChecks { shared: check(&self.shared), credentials: check(&self.credentials) }
    }

    /// Secrets that only this process knows.
    pub fn random() -> Self {
        Self { shared: Secret::random(), credentials: Secret::random() }
    }

    /// What the gateway's own records are encrypted with.
    pub(crate) fn sealer(&self) -> Sealer {
        let key = |secret: &[u8; 32]| *mac_with(secret, "own records", &[]).as_bytes();
        Sealer::new(key(&self.credentials.newest), self.credentials.older.iter().map(key))
    }

    /// The key of the MAC in API keys and tickets.
    pub fn mac_key(&self) -> MacKey {
        let Secret { newest, older } = &self.credentials;
        MacKey::new(*newest).accepting(older.iter().copied())
    }
}

fn check_value(secret: &[u8; 32]) -> Sha256Hex {
    mac_with(secret, "check value", &[])
}

/// A secret, and those before it. Never in the store: a reader of the store must not be able to try all pairing codes, nor to
/// forge cursors.
#[derive(Clone)]
pub struct Secret {
    newest: [u8; 32],
    older: Vec<[u8; 32]>,
}

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
                let bad = || {
                    anyhow::anyhow!(
                        "{} has a line that is not a secret of 64 hex digits; copy it from another node or from a backup",
                        file.display()
                    )
                };
                let read = |line: &str| Ok(*line.trim().parse::<Sha256Hex>().map_err(|_| bad())?.as_bytes());
                let list: Vec<[u8; 32]> = text.trim().lines().map(read).collect::<anyhow::Result<_>>()?;
                let (newest, older) = list.split_first().ok_or_else(bad)?;
                Ok(Some(Self { newest: *newest, older: older.to_vec() }))
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
        writeln!(out, "{}", Sha256Hex::from_bytes(secret.newest))?;
        out.sync_all()?;
        Ok(secret)
    }

    pub(crate) fn random() -> Self {
        let mut bytes = [0; 32];
        SystemRandom.fill(&mut bytes);
        Self { newest: bytes, older: Vec::new() }
    }

    /// All of them, newest first.
    fn all(&self) -> impl Iterator<Item = &[u8; 32]> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    pub(crate) fn code_key(&self) -> CodeKey {
        let key = |secret: &[u8; 32]| *mac_with(secret, "pairing codes", &[]).as_bytes();
        CodeKey { newest: key(&self.newest), older: self.older.iter().map(key).collect() }
    }

    /// The key of what nodes say to each other. While nodes are given a new secret in turn, those with another newest one
    /// don't understand each other, and compare with the store.
    pub(crate) fn doorbell_key(&self) -> MacKey {
        MacKey::new(*self.mac("doorbell between nodes", &[]).as_bytes())
    }

    /// A keyed hash of `parts`, each with its length.
    pub(crate) fn mac(&self, purpose: &str, parts: &[&[u8]]) -> Sha256Hex {
        mac_with(&self.newest, purpose, parts)
    }

    /// What [`Secret::mac`] returns, and returned with the secrets before.
    pub(crate) fn macs(&self, purpose: &str, parts: &[&[u8]]) -> impl Iterator<Item = Sha256Hex> {
        self.all().map(move |secret| mac_with(secret, purpose, parts))
    }
}

/// Hashed twice, so that nothing can be appended.
fn mac_with(secret: &[u8; 32], purpose: &str, parts: &[&[u8]]) -> Sha256Hex {
    let mut text = secret.to_vec();
    for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
        text.extend((part.len() as u64).to_be_bytes());
        text.extend(part);
    }
    let inner = Sha256Hex::digest(&text);
    Sha256Hex::digest(&[secret.as_slice(), inner.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8) -> String {
        Sha256Hex::from_bytes([byte; 32]).to_string()
    }

    fn with(files: &[(&str, String)]) -> (tempfile::TempDir, anyhow::Result<Secrets>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let secrets = Secrets::load_or_create(folder.path());
        (folder, secrets)
    }

    #[test]
    fn nodes_are_given_a_new_secret_in_turn() {
        let of = |lines: &[u8]| lines.iter().map(|byte| line(*byte) + "\n").collect::<String>();
        let load = |lines: &[u8]| with(&[(SHARED_FILE, of(lines)), (CREDENTIALS_FILE, of(lines))]).1.unwrap();
        let (old, knows_new, new, forgets_old) = (load(&[1]), load(&[1, 2]), load(&[2, 1]), load(&[2]));
        let stored = old.checks();
        for node in [&old, &knows_new, &new] {
            node.compare(Path::new("data"), &stored).unwrap();
        }
        let refused = forgets_old.compare(Path::new("data"), &stored).unwrap_err().to_string();
        assert!(refused.contains("another secret and another key-secret"), "{refused}");
        assert_eq!(new.other_than(&stored), [SHARED_FILE, CREDENTIALS_FILE], "to be accepted");
        forgets_old.compare(Path::new("data"), &new.checks()).unwrap();
        let made = new.mac_key().mac("test", &[]);
        assert!(
            knows_new.mac_key().verifies("test", &[], &made) && !old.mac_key().verifies("test", &[], &made)
        );
        let signed = old.shared.mac("cursor", &[b"x"]);
        assert!(new.shared.macs("cursor", &[b"x"]).any(|mac| mac == signed));
        assert!(!forgets_old.shared.macs("cursor", &[b"x"]).any(|mac| mac == signed));
    }

    #[test]
    fn a_line_that_is_no_secret_is_named_by_its_file() {
        for text in [String::new(), "x".to_owned(), format!("{}\nnonsense\n", line(1))] {
            let error = with(&[(SHARED_FILE, text)]).1.unwrap_err().to_string();
            assert!(error.contains(SHARED_FILE) && error.contains("64 hex digits"), "{error}");
        }
    }
}
