//! The key files of a profile: the current keys, and until a rotation is confirmed the ones before.
//!
//! | after a crash in a rotation | what is there | what counts |
//! |---|---|---|
//! | before the new keys | `keys.previous` equal to `keys` | no rotation |
//! | after the new keys | both, and `profile.json` names the previous | the rotation; opening completes `profile.json` |

use countersign_wire::Error as WireError;
use zeroize::Zeroizing;

#[cfg(feature = "system-key-store")]
use super::system::SystemKeys;
use super::{
    error::ProfileError,
    facts::{self, FactsFile},
    key_store::{FileKeys, KeyFile, KeyPlace, KeyStore},
    passphrase::{Passphrase, PassphraseKeys},
    private_folder::{Locked, PrivateFolder},
    versioned,
};
use crate::identity::keys::DeviceKeys;

pub(super) const FACTS: &str = "profile.json";
pub(super) const KEYS: &str = "keys";
pub(super) const PREVIOUS: &str = "keys.previous";

/// The public facts of a folder, whose fingerprint is that of its keys.
pub(super) fn read_facts(folder: &PrivateFolder) -> Result<FactsFile, ProfileError> {
    let facts = read_facts_file(folder)?;
    let keys = current(folder)?;
    if facts.fingerprint == keys.fingerprint() {
        return Ok(facts);
    }
    // A rotation may have crashed, or is under way in another process.
    let locked = folder.lock()?;
    let (facts, keys) = (read_facts_file(folder)?, current(folder)?);
    if facts.fingerprint == keys.fingerprint() {
        return Ok(facts);
    }
    match previous(folder)? {
        Some(previous) if previous.fingerprint() == facts.fingerprint => {
            let completed = FactsFile { fingerprint: keys.fingerprint(), ..facts };
            write_facts(&locked, folder, &completed)?;
            Ok(completed)
        }
        _ => Err(ProfileError::Mismatch { path: folder.path().to_owned() }),
    }
}

fn read_facts_file(folder: &PrivateFolder) -> Result<FactsFile, ProfileError> {
    let content =
        folder.read(FACTS)?.ok_or_else(|| ProfileError::Missing { path: folder.path().to_owned() })?;
    versioned::read(&folder.path().join(FACTS), &content, facts::VERSION)
}

/// Replaces the public facts.
pub(super) fn write_facts(
    locked: &Locked<'_>,
    folder: &PrivateFolder,
    facts: &FactsFile,
) -> Result<(), ProfileError> {
    let text = serde_json::to_vec(facts)
        .map_err(|error| ProfileError::io(folder.path().join(FACTS), "written")(error.into()))?;
    locked.write(FACTS, &text)
}

/// The file with the keys that count.
pub(super) fn current(folder: &PrivateFolder) -> Result<KeyFile, ProfileError> {
    read(folder, KEYS)?
        .ok_or_else(|| ProfileError::damaged(folder.path().join(KEYS))(WireError::missing("secret")))
}

/// The file with the keys before an unconfirmed rotation.
pub(super) fn previous(folder: &PrivateFolder) -> Result<Option<KeyFile>, ProfileError> {
    let Some(previous) = read(folder, PREVIOUS)? else { return Ok(None) };
    // A rotation that crashed before it wrote the new keys is none.
    Ok(Some(previous)
        .filter(|previous| current(folder).is_ok_and(|keys| keys.fingerprint() != previous.fingerprint())))
}

fn read(folder: &PrivateFolder, name: &str) -> Result<Option<KeyFile>, ProfileError> {
    folder.read(name)?.map(|content| KeyFile::read(folder.path().join(name), content)).transpose()
}

/// The keys behind a file, from wherever they are kept.
pub(super) fn fetch(file: &KeyFile, passphrase: Option<&Passphrase>) -> Result<DeviceKeys, ProfileError> {
    match file.place() {
        KeyPlace::File => FileKeys.fetch(file),
        KeyPlace::Passphrase => match passphrase {
            Some(passphrase) => PassphraseKeys::new(passphrase.clone()).fetch(file),
            None => Err(ProfileError::PassphraseNeeded { path: file.path().clone() }),
        },
        #[cfg(feature = "system-key-store")]
        KeyPlace::System => SystemKeys.fetch(file),
        #[cfg(not(feature = "system-key-store"))]
        KeyPlace::System => Err(no_system_key_store()),
    }
}

/// Removes what a place keeps outside of its file.
fn forget(file: &KeyFile) -> Result<(), ProfileError> {
    match file.place() {
        KeyPlace::File | KeyPlace::Passphrase => Ok(()),
        #[cfg(feature = "system-key-store")]
        KeyPlace::System => SystemKeys.forget(file),
        #[cfg(not(feature = "system-key-store"))]
        KeyPlace::System => Err(no_system_key_store()),
    }
}

#[cfg(not(feature = "system-key-store"))]
fn no_system_key_store() -> ProfileError {
    ProfileError::SystemKeyStore { reason: "this program was built without support for it".to_owned() }
}

/// Writes new keys beside the old ones.
pub(super) fn rotate(
    folder: &PrivateFolder,
    facts: FactsFile,
    keys: &DeviceKeys,
    store: &dyn KeyStore,
) -> Result<FactsFile, ProfileError> {
    let locked = folder.lock()?;
    if previous(folder)?.is_some() {
        return Err(ProfileError::RotationPending);
    }
    let old = current(folder)?;
    if old.fingerprint() == keys.fingerprint() {
        return Err(ProfileError::ForeignKeys);
    }
    let new = store.keep(keys)?;
    locked.write(PREVIOUS, old.content())?;
    locked.write(KEYS, new.content())?;
    let facts = FactsFile { fingerprint: keys.fingerprint(), ..facts };
    write_facts(&locked, folder, &facts)?;
    Ok(facts)
}

/// Removes the old keys: what was sealed to them can't be opened any more.
pub(super) fn confirm_rotation(folder: &PrivateFolder) -> Result<(), ProfileError> {
    let locked = folder.lock()?;
    let old = previous(folder)?.ok_or(ProfileError::NoRotation)?;
    locked.remove(PREVIOUS)?;
    forget(&old)
}

/// Removes the new keys and takes the old ones again.
pub(super) fn revert_rotation(folder: &PrivateFolder, facts: FactsFile) -> Result<FactsFile, ProfileError> {
    let locked = folder.lock()?;
    let old = previous(folder)?.ok_or(ProfileError::NoRotation)?;
    let new = current(folder)?;
    let facts = FactsFile { fingerprint: old.fingerprint(), ..facts };
    // After a crash between these two, the folder is one with a rotation.
    write_facts(&locked, folder, &facts)?;
    locked.rename(PREVIOUS, KEYS)?;
    forget(&new)?;
    Ok(facts)
}

/// Keeps the same keys in another way, such as under another passphrase.
pub(super) fn protect(
    folder: &PrivateFolder,
    keys: &DeviceKeys,
    store: &dyn KeyStore,
) -> Result<(), ProfileError> {
    let locked = folder.lock()?;
    if previous(folder)?.is_some() {
        return Err(ProfileError::RotationPending);
    }
    let old = current(folder)?;
    if old.fingerprint() != keys.fingerprint() {
        return Err(ProfileError::ForeignKeys);
    }
    let new = store.keep(keys)?;
    locked.write(KEYS, new.content())?;
    // A copy from a rotation that crashed is in the old place.
    if folder.read(PREVIOUS)?.is_some() {
        locked.remove(PREVIOUS)?;
    }
    if old.place() == new.place() { Ok(()) } else { forget(&old) }
}

/// The text of a file without the line break at its end.
pub(super) fn line(content: &[u8]) -> Option<Zeroizing<String>> {
    let text = std::str::from_utf8(content).ok()?;
    Some(Zeroizing::new(text.strip_suffix('\n').unwrap_or(text).to_owned()))
}
