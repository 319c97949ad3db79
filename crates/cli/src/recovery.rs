//! The recovery code of an approver: shown once, and its public keys kept so that machines learn of them.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    terminal::Terminal,
};
use countersign_client::{keys::DeviceKeys, pairing::recovery::RecoveryCode};
use countersign_wire::keys::KeyBundle;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The file with the public keys of the code, in the folder of the profile.
const FILE: &str = "recovery.json";

/// What the signature covers begins like this, as no other signature of ours does.
const PREFIX: &str = "countersign recovery keys v1\0";

/// The public keys of a code. The device signs them: whoever can write to the folder must not be able to put a code of their
/// own in their place, for which the device would vouch later.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    keys: String,
    signature: String,
}

fn signed(keys: &str) -> Vec<u8> {
    format!("{PREFIX}{keys}").into_bytes()
}

/// Shows a new code until Enter is pressed, and returns its public keys. Nothing else of it is kept.
pub fn show_new(terminal: &mut Terminal, owner: &str) -> Result<KeyBundle, Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error);
    let code = RecoveryCode::generate().map_err(|error| broken(&error))?;
    let keys = code.keys().ok_or_else(|| broken(&"no recovery code can be made"))?;
    let text = Zeroizing::new(format!(
        "The recovery code of {owner}, shown this once:\n\n    {code}\n\n\
         Write it on paper, and keep it where you keep keys. If you lose every device that can approve,\n\
         it lets one new device take their place, once (`countersign recovery use`).\n\n\
         Enter goes on, and the code is gone from this machine. "
    ));
    terminal.show_secret(&text)?;
    Ok(keys.bundle().clone())
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("{} can't be used: {error}", path.display()))
}

/// Keeps the public keys of a code in the folder of a profile, in place of those before.
pub fn keep(folder: &Path, code: &KeyBundle, device: &DeviceKeys) -> Result<(), Failure> {
    let (path, new) = (path(folder), folder.join(format!("{FILE}.new")));
    let keys = code.to_string();
    let kept = Kept { signature: device.signing_key().sign(&signed(&keys)), keys };
    let text = serde_json::to_string(&kept).map_err(|error| unusable(&path, error))?;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
    file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path))
        .map_err(|error| unusable(&path, error))
}

/// The public keys of the code that this device has made; `None` if it has made none.
pub fn kept(folder: &Path, device: &DeviceKeys) -> Result<Option<KeyBundle>, Failure> {
    let path = path(folder);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| unusable(&path, error))?,
    };
    let changed = || {
        unusable(&path, "it is not what this device has written")
            .next("make a new code with `countersign recovery new`")
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|_| changed())?;
    device.bundle().signing.verify(&signed(&kept.keys), &kept.signature).map_err(|_| changed())?;
    kept.keys.parse().map(Some).map_err(|_| changed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_puts_a_code_of_their_own_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let device = DeviceKeys::generate().unwrap();
        let code = RecoveryCode::generate().unwrap().keys().unwrap();
        assert_eq!(kept(folder.path(), &device).unwrap(), None);
        keep(folder.path(), code.bundle(), &device).unwrap();
        assert_eq!(kept(folder.path(), &device).unwrap().as_ref(), Some(code.bundle()));
        let another = RecoveryCode::generate().unwrap().keys().unwrap();
        keep(folder.path(), another.bundle(), &device).unwrap();
        assert_eq!(kept(folder.path(), &device).unwrap().as_ref(), Some(another.bundle()));
        // Somebody who can write to the folder, and has not the keys of the device.
        let thief = RecoveryCode::generate().unwrap().keys().unwrap();
        let text = fs::read_to_string(path(folder.path())).unwrap();
        let swapped = text.replace(&another.bundle().to_string(), &thief.bundle().to_string());
        assert_ne!(text, swapped);
        fs::write(path(folder.path()), swapped).unwrap();
        assert!(kept(folder.path(), &device).is_err());
        keep(folder.path(), thief.bundle(), &thief).unwrap();
        assert!(kept(folder.path(), &device).is_err());
    }
}
