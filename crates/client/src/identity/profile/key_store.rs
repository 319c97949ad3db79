//! Where private keys are kept: in a private file, in a file under a passphrase, or in the system's key store.
//!
//! Whatever the place, the profile has a file `keys`, which says what the place is and which keys they are. In the first
//! two cases the keys are in it too.

use std::{fmt, path::PathBuf};

use countersign_wire::{Error as WireError, FromJson, Members, RawObject, base64url};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::{error::ProfileError, versioned};
use crate::{
    identity::keys::{DeviceKeys, Fingerprint},
    json::vocabulary,
};

vocabulary! {
    /// Where private keys are kept.
    pub enum KeyPlace {
        /// In the file itself, which only its owner can read.
        File = "file",
        /// In the file itself, encrypted under a passphrase.
        Passphrase = "passphrase",
        /// In the key store of the operating system.
        System = "system",
    }
}

/// A way to keep private keys.
pub trait KeyStore {
    /// Keeps the keys, and returns what is written to the file `keys`.
    fn keep(&self, keys: &DeviceKeys) -> Result<KeyFile, ProfileError>;

    /// The keys that [`KeyStore::keep`] has kept.
    fn fetch(&self, file: &KeyFile) -> Result<DeviceKeys, ProfileError>;

    /// Removes what is kept outside of the file, when the keys are not needed any more.
    fn forget(&self, file: &KeyFile) -> Result<(), ProfileError>;
}

/// The content of the file `keys`. It may contain a secret: it is wiped from memory when dropped and never printed.
pub struct KeyFile {
    place: KeyPlace,
    fingerprint: Fingerprint,
    content: Zeroizing<Vec<u8>>,
    /// For messages; empty before it is written.
    path: PathBuf,
}

impl KeyFile {
    pub(super) const VERSION: u64 = 1;

    pub(super) fn new(place: KeyPlace, fingerprint: Fingerprint, content: Zeroizing<Vec<u8>>) -> Self {
        Self { place, fingerprint, content, path: PathBuf::new() }
    }

    /// Reads what every such file begins with.
    pub(super) fn read(path: PathBuf, content: Zeroizing<Vec<u8>>) -> Result<Self, ProfileError> {
        let raw = versioned::parse(&path, &content, Self::VERSION)?;
        let header = |mut members: Members<'_>| -> Result<_, WireError> {
            Ok((members.required("place")?, members.required("fingerprint")?))
        };
        let (place, fingerprint) = raw.members().and_then(header).map_err(ProfileError::damaged(&path))?;
        Ok(Self { place, fingerprint, content, path })
    }

    /// Where the keys are.
    pub fn place(&self) -> KeyPlace {
        self.place
    }

    /// Which keys they are.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    pub(super) fn raw(&self) -> Result<RawObject<'_>, ProfileError> {
        versioned::parse(&self.path, &self.content, Self::VERSION)
    }

    /// The members after those that [`KeyFile::read`] has checked.
    pub(super) fn members(&self) -> Result<Members<'_>, ProfileError> {
        let mut members = self.raw()?.members().map_err(ProfileError::damaged(&self.path))?;
        for name in ["version", "place", "fingerprint"] {
            members.required::<&RawValue>(name).map_err(ProfileError::damaged(&self.path))?;
        }
        Ok(members)
    }

    /// The keys behind the secret bytes that a place has returned, if they are those of this file.
    pub(super) fn keys(&self, secret: &[u8]) -> Result<DeviceKeys, ProfileError> {
        let secret = Zeroizing::new(<[u8; DeviceKeys::SECRET_BYTES]>::try_from(secret).unwrap_or([0; 64]));
        let keys = DeviceKeys::from_secret(&secret).filter(|keys| keys.fingerprint() == self.fingerprint);
        keys.ok_or_else(|| {
            ProfileError::damaged(&self.path)(WireError::breaks("fingerprint", "is not that of the keys"))
        })
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFile({}, {:?})", self.place, self.fingerprint)
    }
}

/// Keeps the keys in the file as they are. The mode of the file is all that protects them.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileKeys;

impl KeyStore for FileKeys {
    fn keep(&self, keys: &DeviceKeys) -> Result<KeyFile, ProfileError> {
        let fingerprint = keys.fingerprint();
        let secret = Zeroizing::new(base64url::encode(keys.to_secret().as_slice()));
        let mut content = Zeroizing::new(Vec::with_capacity(512));
        let begin = format!(
            r#"{{"version":{},"place":"{}","fingerprint":"{fingerprint}","secret":""#,
            KeyFile::VERSION,
            KeyPlace::File
        );
        content.extend_from_slice(begin.as_bytes());
        content.extend_from_slice(secret.as_bytes());
        content.extend_from_slice(b"\"}\n");
        Ok(KeyFile::new(KeyPlace::File, fingerprint, content))
    }

    fn fetch(&self, file: &KeyFile) -> Result<DeviceKeys, ProfileError> {
        let mut members = file.members()?;
        let secret: Result<SecretBytes, _> = members.required("secret");
        let secret = secret.and_then(|secret| members.close().map(|()| secret));
        file.keys(&secret.map_err(ProfileError::damaged(file.path()))?.0)
    }

    fn forget(&self, _: &KeyFile) -> Result<(), ProfileError> {
        Ok(())
    }
}

/// Bytes in base64url that are wiped from memory.
pub(super) struct SecretBytes(pub(super) Zeroizing<Vec<u8>>);

impl FromJson<'_> for SecretBytes {
    fn from_json(value: &RawValue) -> Result<Self, WireError> {
        let text = Zeroizing::new(String::from_json(value)?);
        let bytes = base64url::decode_all(&text).map(Zeroizing::new);
        bytes.map(Self).ok_or_else(|| WireError::breaks("", "is not base64url without padding"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_a_file_are_read_again_and_a_changed_byte_never_makes_others_of_them() {
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        let file = FileKeys.keep(&keys).unwrap();
        let read = |content: &[u8]| {
            let file = KeyFile::read("keys".into(), Zeroizing::new(content.to_vec()))?;
            FileKeys.fetch(&file)
        };
        assert_eq!(read(file.content()).unwrap().bundle(), keys.bundle());
        for at in 0..file.content().len() {
            let mut changed = file.content().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            // X25519 ignores a few bits of its private key.
            assert!(read(&changed).map_or(true, |read| read.bundle() == keys.bundle()), "byte {at}");
        }
        let secret = base64url::encode(keys.to_secret().as_slice());
        assert!(!format!("{file:?}").contains(&secret[..20]));
    }
}
