//! Private keys under a passphrase: Argon2id derives a key from it, AES-256-GCM encrypts with that.
//!
//! Everything else in the file is authenticated with the keys: whoever can write the file can damage it, and can't
//! weaken it.

use std::fmt;

use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use argon2::{Algorithm, Argon2, Params, Version};
use countersign_wire::{Error as WireError, Members, RawObject, base64url, canonical};
use serde::Serialize;
use zeroize::Zeroizing;

use super::{
    error::ProfileError,
    key_store::{KeyFile, KeyPlace, KeyStore, SecretBytes},
};
use crate::{
    identity::keys::{DeviceKeys, Fingerprint},
    json::Count,
    random,
};

const KDF: &str = "argon2id";
const CIPHER: &str = "AES-256-GCM";

/// A passphrase that a person has typed. It is wiped from memory when dropped and never printed.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Any text but an empty one. How long it should be is for whoever asks for it.
    pub fn new(text: Zeroizing<String>) -> Result<Self, ProfileError> {
        match text.is_empty() {
            true => Err(ProfileError::Passphrase { rule: "it is empty" }),
            false => Ok(Self(text)),
        }
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// What one attempt at a passphrase costs. It is stored with the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KdfCost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl KdfCost {
    /// 64 MiB and three passes, RFC 9106's advice where memory is limited; with one lane, because we use one thread. It
    /// takes a fraction of a second.
    pub const INTERACTIVE: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 1 };

    /// As little as Argon2 allows.
    #[cfg(test)]
    pub(super) const LOWEST: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };

    /// The highest cost that a file may ask for: 1 GiB, sixteen passes. A damaged file must not take all memory.
    const HIGHEST: Self = Self { memory_kib: 1 << 20, passes: 16, lanes: 16 };

    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let mut read = |name: &'static str, highest: u32| {
            let Count(count) = members.required(name)?;
            let within = u32::try_from(count).ok().filter(|count| *count <= highest);
            within.ok_or_else(|| WireError::breaks(name, "is higher than any that we write"))
        };
        Ok(Self {
            memory_kib: read("memoryKib", Self::HIGHEST.memory_kib)?,
            passes: read("passes", Self::HIGHEST.passes)?,
            lanes: read("lanes", Self::HIGHEST.lanes)?,
        })
    }

    fn derive(self, passphrase: &Passphrase, salt: &[u8; 16]) -> Option<Zeroizing<[u8; 32]>> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).ok()?;
        let mut key = Zeroizing::new([0; 32]);
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(passphrase.0.as_bytes(), salt, key.as_mut_slice()).ok()?;
        Some(key)
    }
}

/// Keeps the keys in the file, encrypted under a passphrase.
#[derive(Debug, Clone)]
pub struct PassphraseKeys {
    passphrase: Passphrase,
    cost: KdfCost,
}

impl PassphraseKeys {
    /// With the usual cost.
    pub fn new(passphrase: Passphrase) -> Self {
        Self::with_cost(passphrase, KdfCost::INTERACTIVE)
    }

    /// With another cost, for the keys that are kept from now on. Those that are fetched have theirs.
    pub fn with_cost(passphrase: Passphrase, cost: KdfCost) -> Self {
        Self { passphrase, cost }
    }
}

/// The file, in the order of its members.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Locked<'a> {
    version: u64,
    place: KeyPlace,
    fingerprint: Fingerprint,
    kdf: &'a str,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    cipher: &'a str,
    nonce: String,
    ciphertext: String,
}

impl KeyStore for PassphraseKeys {
    fn keep(&self, keys: &DeviceKeys) -> Result<KeyFile, ProfileError> {
        const FAILED: ProfileError = ProfileError::Passphrase { rule: "this cost is not supported" };
        let (salt, nonce) = (random::bytes::<16>()?, random::bytes::<12>()?);
        let mut locked = Locked {
            version: KeyFile::VERSION,
            place: KeyPlace::Passphrase,
            fingerprint: keys.fingerprint(),
            kdf: KDF,
            memory_kib: self.cost.memory_kib,
            passes: self.cost.passes,
            lanes: self.cost.lanes,
            salt: base64url::encode(&salt),
            cipher: CIPHER,
            nonce: base64url::encode(&nonce),
            ciphertext: String::new(),
        };
        let header = serde_json::to_vec(&locked).map_err(|_| FAILED)?;
        let aad = header_of(RawObject::parse(&header).map_err(|_| FAILED)?).map_err(|_| FAILED)?;
        let key = self.cost.derive(&self.passphrase, &salt).ok_or(FAILED)?;
        let secret = keys.to_secret();
        let payload = Payload { msg: secret.as_slice(), aad: &aad };
        let encrypted = Aes256Gcm::new(&(*key).into()).encrypt(&Nonce::from(nonce), payload);
        locked.ciphertext = base64url::encode(&encrypted.map_err(|_| FAILED)?);
        let mut content = Zeroizing::new(serde_json::to_vec(&locked).map_err(|_| FAILED)?);
        content.push(b'\n');
        Ok(KeyFile::new(KeyPlace::Passphrase, locked.fingerprint, content))
    }

    fn fetch(&self, file: &KeyFile) -> Result<DeviceKeys, ProfileError> {
        let wrong = || ProfileError::WrongPassphrase { path: file.path().clone() };
        let mut members = file.members()?;
        let opened = Opened::from_members(&mut members).map_err(ProfileError::damaged(file.path()))?;
        let aad = header_of(file.raw()?).map_err(ProfileError::damaged(file.path()))?;
        let key = opened.cost.derive(&self.passphrase, &opened.salt).ok_or_else(wrong)?;
        let payload = Payload { msg: opened.ciphertext.as_slice(), aad: &aad };
        let secret = Aes256Gcm::new(&(*key).into()).decrypt(&Nonce::from(opened.nonce), payload);
        file.keys(&secret.map(Zeroizing::new).map_err(|_| wrong())?)
    }

    fn forget(&self, _: &KeyFile) -> Result<(), ProfileError> {
        Ok(())
    }
}

/// Everything but the ciphertext, which is authenticated with it.
fn header_of(file: RawObject<'_>) -> Result<Vec<u8>, WireError> {
    canonical::form_without(file, "ciphertext")
}

/// What is needed to decrypt.
struct Opened {
    cost: KdfCost,
    salt: [u8; 16],
    nonce: [u8; 12],
    ciphertext: Zeroizing<Vec<u8>>,
}

impl Opened {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        for (name, known) in [("kdf", KDF), ("cipher", CIPHER)] {
            if members.required::<String>(name)? != known {
                return Err(WireError::breaks(name, "is not known here"));
            }
        }
        let opened = Self {
            cost: KdfCost::from_members(members)?,
            salt: fixed(members, "salt")?,
            nonce: fixed(members, "nonce")?,
            ciphertext: members.required::<SecretBytes>("ciphertext")?.0,
        };
        members.close()?;
        Ok(opened)
    }
}

fn fixed<const N: usize>(members: &mut Members<'_>, name: &'static str) -> Result<[u8; N], WireError> {
    let text: String = members.required(name)?;
    base64url::decode(&text).ok_or_else(|| WireError::breaks(name, "has not the right length in base64url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(text: &str, cost: KdfCost) -> PassphraseKeys {
        PassphraseKeys::with_cost(Passphrase::new(Zeroizing::new(text.to_owned())).unwrap(), cost)
    }

    fn keys() -> DeviceKeys {
        DeviceKeys::from_secret(&[7; 64]).unwrap()
    }

    fn fetch(store: &PassphraseKeys, content: &[u8]) -> Result<DeviceKeys, ProfileError> {
        store.fetch(&KeyFile::read("keys".into(), Zeroizing::new(content.to_vec()))?)
    }

    #[test]
    fn the_right_passphrase_opens_and_no_other() {
        let right = store("correct horse", KdfCost::INTERACTIVE);
        let file = right.keep(&keys()).unwrap();
        assert_eq!(fetch(&right, file.content()).unwrap().bundle(), keys().bundle());
        let error = fetch(&store("correct horsf", KdfCost::INTERACTIVE), file.content()).unwrap_err();
        assert!(matches!(error, ProfileError::WrongPassphrase { .. }));
        assert!(error.to_string().starts_with("wrong passphrase or damaged file"), "{error}");
        let text = String::from_utf8(file.content().to_vec()).unwrap();
        assert!(text.contains(r#""kdf":"argon2id","memoryKib":65536,"passes":3,"lanes":1,"#), "{text}");
    }

    #[test]
    fn a_changed_byte_is_noticed_wherever_it_is() {
        let right = store("correct horse", KdfCost::LOWEST);
        let file = right.keep(&keys()).unwrap();
        assert!(fetch(&right, file.content()).is_ok());
        for at in 0..file.content().len() {
            let mut changed = file.content().to_vec();
            changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
            assert!(fetch(&right, &changed).is_err(), "byte {at}");
        }
        for length in 0..file.content().len() - 1 {
            assert!(fetch(&right, &file.content()[..length]).is_err(), "cut after {length}");
        }
    }

    #[test]
    fn the_cipher_covers_what_is_not_encrypted() {
        let right = store("correct horse", KdfCost::LOWEST);
        let file = right.keep(&keys()).unwrap();
        let text = String::from_utf8(file.content().to_vec()).unwrap();
        let other = DeviceKeys::from_secret(&[8; 64]).unwrap().fingerprint().to_string();
        let changed = text.replace(&keys().fingerprint().to_string(), &other);
        assert_ne!(changed, text);
        // Not found after decrypting, by comparing: nothing is decrypted.
        let error = fetch(&right, changed.as_bytes()).unwrap_err();
        assert!(matches!(error, ProfileError::WrongPassphrase { .. }), "{error}");
    }

    #[test]
    fn a_file_can_not_ask_for_all_memory() {
        let right = store("correct horse", KdfCost::LOWEST);
        let file = right.keep(&keys()).unwrap();
        let text = String::from_utf8(file.content().to_vec()).unwrap();
        for (cheap, expensive) in [
            (r#""memoryKib":8"#, r#""memoryKib":1048577"#),
            (r#""passes":1"#, r#""passes":17"#),
            (r#""lanes":1"#, r#""lanes":17"#),
        ] {
            let changed = text.replace(cheap, expensive);
            assert_ne!(changed, text);
            let error = fetch(&right, changed.as_bytes()).unwrap_err();
            assert!(matches!(error, ProfileError::Damaged { .. }), "{expensive}");
        }
    }

    #[test]
    fn the_same_keys_are_never_encrypted_the_same_way_twice() {
        let right = store("correct horse", KdfCost::LOWEST);
        assert_ne!(right.keep(&keys()).unwrap().content(), right.keep(&keys()).unwrap().content());
    }

    #[test]
    fn an_empty_passphrase_is_none_and_none_is_printed() {
        assert!(Passphrase::new(Zeroizing::default()).is_err());
        assert!(!format!("{:?}", store("correct horse", KdfCost::LOWEST)).contains("horse"));
    }
}
