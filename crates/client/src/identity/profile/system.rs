//! Private keys in the key store of the operating system: the Keychain, the Credential Manager, or a Secret Service over
//! D-Bus, which machines without a desktop lack.

use keyring::Entry;
use zeroize::Zeroizing;

use super::{
    error::ProfileError,
    key_store::{KeyFile, KeyPlace, KeyStore},
};
use crate::identity::keys::{DeviceKeys, Fingerprint};

/// Under which our entries are listed.
const SERVICE: &str = "countersign";

/// Keeps the keys in the system's key store, under their fingerprint.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemKeys;

fn entry(fingerprint: Fingerprint) -> Result<Entry, ProfileError> {
    Entry::new(SERVICE, &fingerprint.to_string()).map_err(|error| failed(&error))
}

fn failed(error: &keyring::Error) -> ProfileError {
    // Some variants carry what was stored, and their Debug output prints it. Display does not.
    ProfileError::SystemKeyStore { reason: error.to_string() }
}

impl KeyStore for SystemKeys {
    fn keep(&self, keys: &DeviceKeys) -> Result<KeyFile, ProfileError> {
        let fingerprint = keys.fingerprint();
        let secret = keys.to_secret();
        entry(fingerprint)?.set_secret(secret.as_slice()).map_err(|error| failed(&error))?;
        let content = format!(
            r#"{{"version":{},"place":"{}","fingerprint":"{fingerprint}"}}"#,
            KeyFile::VERSION,
            KeyPlace::System
        );
        Ok(KeyFile::new(KeyPlace::System, fingerprint, Zeroizing::new(content.into_bytes())))
    }

    fn fetch(&self, file: &KeyFile) -> Result<DeviceKeys, ProfileError> {
        let secret = entry(file.fingerprint())?.get_secret().map_err(|error| failed(&error))?;
        file.keys(&Zeroizing::new(secret))
    }

    fn forget(&self, file: &KeyFile) -> Result<(), ProfileError> {
        match entry(file.fingerprint())?.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is a key store the keys come back; where there is none, it is said in words.
    #[test]
    fn the_system_keeps_the_keys_or_says_that_it_can_not() {
        let keys = DeviceKeys::generate().unwrap();
        match SystemKeys.keep(&keys) {
            Ok(file) => {
                let fetched = SystemKeys.fetch(&file);
                SystemKeys.forget(&file).unwrap();
                assert_eq!(fetched.unwrap().bundle(), keys.bundle());
                assert!(SystemKeys.fetch(&file).is_err(), "forgotten");
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("the key store of the operating system can't be used: "), "{text}");
                assert!(text.ends_with("Keep the keys in a file instead"), "{text}");
            }
        }
    }
}
