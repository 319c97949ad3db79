//! Encryption of what the gateway keeps for itself in its store, with AES-256-GCM under keys made from its secret.

use aes_gcm::{
    Aes256Gcm, KeyInit as _,
    aead::{Aead as _, Payload},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_core::{model::own_record::Sealed, random::RandomSource as _};
use countersign_wire::hash::Sha256Hex;

use crate::random::SystemRandom;

const NONCE: usize = 12;

/// Encrypts with the newest key, and decrypts with all.
#[derive(Clone)]
pub(crate) struct Sealer {
    newest: SealKey,
    older: Vec<SealKey>,
}

#[derive(Clone)]
struct SealKey {
    id: String,
    key: Aes256Gcm,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) content: Vec<u8>,
    /// Whether it was encrypted with the newest key; if not, it is to be encrypted again.
    pub(crate) is_newest: bool,
}

impl Sealer {
    pub(crate) fn new(newest: [u8; 32], older: impl Iterator<Item = [u8; 32]>) -> Self {
        Self { newest: SealKey::new(newest), older: older.map(SealKey::new).collect() }
    }

    /// Encrypts `content` for the record of this name: it opens in no other. `None` never happens at these sizes.
    pub(crate) fn seal(&self, name: &str, content: &[u8]) -> Option<Sealed> {
        let SealKey { id, key } = &self.newest;
        let mut nonce = [0; NONCE];
        SystemRandom.fill(&mut nonce);
        let payload = Payload { msg: content, aad: name.as_bytes() };
        let sealed = key.encrypt(&nonce.into(), payload).ok()?;
        Some(Sealed { key_id: id.clone(), text: STANDARD.encode([&nonce[..], &sealed].concat()) })
    }

    /// `None` if it was encrypted with a key that this node has not, or is damaged.
    pub(crate) fn open(&self, name: &str, sealed: &Sealed) -> Option<Opened> {
        let is_newest = self.newest.id == sealed.key_id;
        let known = std::iter::once(&self.newest).chain(&self.older);
        let SealKey { key, .. } = known.into_iter().find(|known| known.id == sealed.key_id)?;
        let text = STANDARD.decode(&sealed.text).ok()?;
        let (nonce, text) = text.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: text, aad: name.as_bytes() };
        let content = key.decrypt(&(*nonce).into(), payload).ok()?;
        Some(Opened { content, is_newest })
    }
}

impl SealKey {
    fn new(key: [u8; 32]) -> Self {
        let id = Sha256Hex::digest(&[b"id of a key", &key[..]].concat()).to_string();
        Self { id: id[..16].to_owned(), key: Aes256Gcm::new(&key.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_under_its_name_with_its_key_and_an_older_key_is_noticed() {
        let (old, new) = (Sealer::new([1; 32], [].into_iter()), Sealer::new([2; 32], [[1; 32]].into_iter()));
        let sealed = old.seal("acme", b"account").unwrap();
        let opened = |is_newest| Some(Opened { content: b"account".to_vec(), is_newest });
        assert_eq!(old.open("acme", &sealed), opened(true));
        assert_eq!(new.open("acme", &sealed), opened(false));
        assert_eq!(old.open("other", &sealed), None);
        assert_eq!(Sealer::new([3; 32], [].into_iter()).open("acme", &sealed), None);
        let damaged =
            Sealed { text: sealed.text.replacen(&sealed.text[20..24], "AAAA", 1), ..sealed.clone() };
        assert_eq!(old.open("acme", &damaged), None);
        assert_ne!(old.seal("acme", b"account").unwrap().text, sealed.text);
    }
}
