//! Who one is at a gateway: one folder for each identity, which only its owner has access to.
//!
//! | file | content |
//! |---|---|
//! | `profile.json` | public facts: role, id, tenant, gateway, label, fingerprint |
//! | `credential` | the API key |
//! | `keys` | the private keys, or where they are ([`KeyStore`]) |
//! | `keys.previous` | the keys before a rotation, until it is confirmed |
//! | `pins.json` | the public keys of others ([`Pins`]) |
//! | `journal` | what was asked and answered; not written here |
//! | `lock` | locked by whoever writes |
//!
//! Files are replaced and never changed in place, so after a crash each has its old content or its new. Several processes
//! can use a profile at the same time. What other users have access to, what belongs to them and what is a link is
//! refused. What another program of the same user can do is not prevented here: a passphrase locks the keys, nothing
//! locks the rest.

mod error;
mod facts;
mod key_files;
mod key_store;
mod party;
mod passphrase;
mod pins;
pub(crate) mod private_folder;
mod profiles;
mod secret_text;
#[cfg(feature = "system-key-store")]
mod system;
mod versioned;

#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use countersign_wire::Error as WireError;
use parking_lot::Mutex;
use zeroize::Zeroizing;

#[cfg(feature = "system-key-store")]
pub use self::system::SystemKeys;
pub use self::{
    error::{ApplyError, PinError, ProfileError},
    facts::Facts,
    key_store::{FileKeys, KeyFile, KeyPlace, KeyStore},
    party::{Credential, GatewayUrl, Party, Role},
    passphrase::{KdfCost, Passphrase, PassphraseKeys},
    pins::{MAX_VOUCHED, Pin, PinSource, Pins, RECOVERY_WAIT, SourceKind, apply::Applied},
    profiles::{HOME_VARIABLE, ProfileName, Profiles},
};
use self::{
    facts::FactsFile,
    private_folder::{Locked, PrivateFolder, sync_folder},
    secret_text::Content,
};
use crate::{
    identity::keys::{DeviceKeys, Fingerprint},
    random,
};

const CREDENTIAL: &str = "credential";
const PINS: &str = "pins.json";

/// The name of the file in which requests and their answers are recorded.
pub const JOURNAL: &str = "journal";

/// One identity at one gateway.
#[derive(Debug)]
pub struct Profile {
    facts: FactsFile,
    credential: Credential,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Folder(PrivateFolder),
    /// From a secret text: nothing is written anywhere.
    Memory {
        secret: Secret,
        pins: Mutex<Pins>,
    },
}

/// The private keys of a profile in memory.
struct Secret(Zeroizing<[u8; DeviceKeys::SECRET_BYTES]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Profile {
    /// Makes a new folder with a new profile. The folder appears with everything in it, or not at all.
    pub fn create(
        folder: &Path,
        facts: Facts,
        credential: &Credential,
        keys: &DeviceKeys,
        store: &dyn KeyStore,
    ) -> Result<Self, ProfileError> {
        if fs::symlink_metadata(folder).is_ok() {
            return Err(ProfileError::Exists { path: folder.to_owned() });
        }
        let facts = FactsFile { facts, fingerprint: keys.fingerprint() };
        let file_name = folder.file_name().and_then(|name| name.to_str());
        let (Some(parent), Some(name)) = (folder.parent(), file_name) else {
            return Err(ProfileError::Invalid { part: "the folder", rule: "must have a name" });
        };
        // Not a name that a profile can have, so nobody sees it before it is complete.
        let unique = countersign_wire::base64url::encode(&random::bytes::<9>()?);
        let staging = parent.join(format!(".{name}.{unique}.new"));
        let written = write_new(&staging, &facts, credential, keys, store).and_then(|()| {
            fs::rename(&staging, folder).map_err(|error| match folder.exists() {
                true => ProfileError::Exists { path: folder.to_owned() },
                false => ProfileError::io(folder, "created")(error),
            })
        });
        if let Err(error) = written {
            // Nothing in it was ever used.
            let _ = fs::remove_dir_all(&staging);
            return Err(error);
        }
        sync_folder(if parent == Path::new("") { Path::new(".") } else { parent })?;
        Self::open(folder)
    }

    /// Opens the profile in a folder. The keys stay locked until [`Profile::unlock`].
    pub fn open(folder: &Path) -> Result<Self, ProfileError> {
        let folder = PrivateFolder::open(folder)?;
        let facts = key_files::read_facts(&folder)?;
        let path = folder.path().join(CREDENTIAL);
        let damaged = |rule| ProfileError::damaged(&path)(WireError::breaks("", rule));
        let content = folder.read(CREDENTIAL)?.ok_or_else(|| damaged("is missing"))?;
        let line = key_files::line(&content).ok_or_else(|| damaged("is not text"))?;
        let credential = Credential::new(line).map_err(|_| damaged("is not a credential"))?;
        Ok(Self { facts, credential, place: Place::Folder(folder) })
    }

    /// A profile from the text that [`Profile::export_secret`] returns, in memory only.
    pub fn from_secret_text(text: &str) -> Result<Self, ProfileError> {
        let Content { facts, credential, keys, pins } = secret_text::read(text)?;
        let facts = FactsFile { facts, fingerprint: keys.fingerprint() };
        let place = Place::Memory { secret: Secret(keys.to_secret()), pins: Mutex::new(pins) };
        Ok(Self { facts, credential, place })
    }

    /// The whole profile as one secret text, for a machine without a folder. `keys` are its unlocked keys.
    pub fn export_secret(&self, keys: &DeviceKeys) -> Result<Zeroizing<String>, ProfileError> {
        if keys.fingerprint() != self.facts.fingerprint {
            return Err(ProfileError::ForeignKeys);
        }
        let copy = DeviceKeys::from_secret(&keys.to_secret()).ok_or(ProfileError::ForeignKeys)?;
        let (facts, credential) = (self.facts.facts.clone(), self.credential.clone());
        secret_text::write(&Content { facts, credential, keys: copy, pins: self.pins()? })
    }

    /// Who it is, and which gateway it uses.
    pub fn facts(&self) -> &Facts {
        &self.facts.facts
    }

    /// Which keys it has, without unlocking them.
    pub fn fingerprint(&self) -> Fingerprint {
        self.facts.fingerprint
    }

    /// What it authenticates with at the gateway.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Where the keys are kept; `None` if the profile is in memory only.
    pub fn key_place(&self) -> Result<Option<KeyPlace>, ProfileError> {
        match &self.place {
            Place::Folder(folder) => Ok(Some(key_files::current(folder)?.place())),
            Place::Memory { .. } => Ok(None),
        }
    }

    /// The private keys. A passphrase is needed where [`Profile::key_place`] is [`KeyPlace::Passphrase`]; deriving the
    /// key from it takes a fraction of a second of computing.
    pub fn unlock(&self, passphrase: Option<&Passphrase>) -> Result<DeviceKeys, ProfileError> {
        match &self.place {
            Place::Folder(folder) => key_files::fetch(&key_files::current(folder)?, passphrase),
            Place::Memory { secret, .. } => {
                DeviceKeys::from_secret(&secret.0).ok_or(ProfileError::SecretText)
            }
        }
    }

    /// The private keys before a rotation that is not confirmed, which open what was sealed to them; `None` without one.
    /// They are locked as they were before the rotation, perhaps with another passphrase.
    pub fn unlock_previous(
        &self,
        passphrase: Option<&Passphrase>,
    ) -> Result<Option<DeviceKeys>, ProfileError> {
        match &self.place {
            Place::Folder(folder) => {
                key_files::previous(folder)?.map(|file| key_files::fetch(&file, passphrase)).transpose()
            }
            Place::Memory { .. } => Ok(None),
        }
    }

    /// The pins as they are now.
    pub fn pins(&self) -> Result<Pins, ProfileError> {
        match &self.place {
            Place::Folder(folder) => read_pins(folder),
            Place::Memory { pins, .. } => Ok(pins.lock().clone()),
        }
    }

    /// Changes the pins, while nobody else does. If the change fails, nothing is written.
    pub fn update_pins<T, E>(&self, change: impl FnOnce(&mut Pins) -> Result<T, E>) -> Result<T, ProfileError>
    where
        ProfileError: From<E>,
    {
        match &self.place {
            Place::Folder(folder) => {
                let locked = folder.lock()?;
                let before = read_pins(folder)?;
                let mut after = before.clone();
                let result = change(&mut after)?;
                if after != before {
                    write_pins(&locked, folder, &after)?;
                }
                Ok(result)
            }
            Place::Memory { pins, .. } => {
                let mut pins = pins.lock();
                let mut after = pins.clone();
                let result = change(&mut after)?;
                *pins = after;
                Ok(result)
            }
        }
    }

    /// Takes another credential, such as a renewed API key.
    pub fn replace_credential(&mut self, credential: Credential) -> Result<(), ProfileError> {
        self.folder()?.lock()?.write(CREDENTIAL, credential.expose().as_bytes())?;
        self.credential = credential;
        Ok(())
    }

    /// Gives the profile new keys. The old ones stay beside them, so that what was sealed to them can still be opened,
    /// until [`Profile::confirm_rotation`].
    pub fn rotate(&mut self, keys: &DeviceKeys, store: &dyn KeyStore) -> Result<(), ProfileError> {
        self.facts = key_files::rotate(self.folder()?, self.facts.clone(), keys, store)?;
        Ok(())
    }

    /// Whether the keys before the last rotation are still there.
    pub fn is_rotation_pending(&self) -> Result<bool, ProfileError> {
        match &self.place {
            Place::Folder(folder) => Ok(key_files::previous(folder)?.is_some()),
            Place::Memory { .. } => Ok(false),
        }
    }

    /// Removes the old keys, when everybody has pinned the new ones.
    pub fn confirm_rotation(&mut self) -> Result<(), ProfileError> {
        key_files::confirm_rotation(self.folder()?)
    }

    /// Takes the old keys again and removes the new ones, when nobody has pinned those.
    pub fn revert_rotation(&mut self) -> Result<(), ProfileError> {
        self.facts = key_files::revert_rotation(self.folder()?, self.facts.clone())?;
        Ok(())
    }

    /// Keeps the same keys in another way: under a passphrase, under another one, or without. `keys` are the unlocked
    /// keys. The disk may still have the old content where nobody but its administrator can read it; who fears that
    /// rotates the keys instead.
    pub fn protect(&mut self, keys: &DeviceKeys, store: &dyn KeyStore) -> Result<(), ProfileError> {
        key_files::protect(self.folder()?, keys, store)
    }

    /// The path of the journal; `None` if the profile is in memory only.
    pub fn journal(&self) -> Option<PathBuf> {
        self.folder().ok().map(|folder| folder.path().join(JOURNAL))
    }

    fn folder(&self) -> Result<&PrivateFolder, ProfileError> {
        match &self.place {
            Place::Folder(folder) => Ok(folder),
            Place::Memory { .. } => Err(ProfileError::InMemory),
        }
    }
}

fn write_new(
    path: &Path,
    facts: &FactsFile,
    credential: &Credential,
    keys: &DeviceKeys,
    store: &dyn KeyStore,
) -> Result<(), ProfileError> {
    let folder = PrivateFolder::create(path)?;
    let locked = folder.lock()?;
    locked.write(key_files::KEYS, store.keep(keys)?.content())?;
    locked.write(CREDENTIAL, credential.expose().as_bytes())?;
    write_pins(&locked, &folder, &Pins::default())?;
    key_files::write_facts(&locked, &folder, facts)
}

fn read_pins(folder: &PrivateFolder) -> Result<Pins, ProfileError> {
    let path = folder.path().join(PINS);
    match folder.read(PINS)? {
        Some(content) => versioned::read(&path, &content, pins::text::VERSION),
        // Without its pins a profile would trust whoever pairs next.
        None => Err(ProfileError::damaged(&path)(WireError::missing("pins"))),
    }
}

fn write_pins(locked: &Locked<'_>, folder: &PrivateFolder, pins: &Pins) -> Result<(), ProfileError> {
    let text = pins
        .to_json()
        .map_err(|error| ProfileError::io(folder.path().join(PINS), "written")(error.into()))?;
    locked.write(PINS, text.as_bytes())
}
