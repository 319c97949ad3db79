//! The texts that people carry between devices when one vouches for another: the card of a device or of a machine, and a
//! voucher.
//!
//! Neither is a secret. What matters is that they come from the right device: people copy or scan them from one screen to the
//! other, past the gateway, and compare the digits that both show.

use std::str::FromStr;

use countersign_client::{keys::Fingerprint, pairing::statement::Statement};
use countersign_wire::{
    base64url, fingerprint,
    id::{ApproverId, EnforcerId},
    keys::KeyBundle,
    lock::LockKey,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const CARD: &str = "countersign-device#";
const MACHINE: &str = "countersign-machine#";
const VOUCHER: &str = "countersign-voucher#";

/// Who a new device is: shown there, read by the device that vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Whose device it is.
    pub approver: ApproverId,
    /// Its public keys, without a proof.
    pub keys: KeyBundle,
    /// Its lock; `None` if it has none.
    pub lock: Option<LockKey>,
}

impl std::fmt::Display for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{CARD}{}.{}", base64url::encode(self.approver.as_str().as_bytes()), self.keys)?;
        self.lock.iter().try_for_each(|lock| write!(f, ".{lock}"))
    }
}

impl FromStr for Card {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "this is no card; `countersign vouch card` shows one on the new device".to_owned();
        // What follows the three parts of the keys is the lock.
        let text = text.trim();
        let end = text.match_indices('.').nth(3).map_or(text.len(), |(end, _)| end);
        let (id, keys) = read_card(&text[..end], CARD).ok_or_else(wrong)?;
        let lock = text[end..].strip_prefix('.').map(str::parse).transpose().map_err(|_| wrong())?;
        Ok(Self { approver: id.parse().map_err(|_| wrong())?, keys, lock })
    }
}

/// The id and the keys on a card that begins like this.
fn read_card(text: &str, start: &str) -> Option<(String, KeyBundle)> {
    let (id, keys) = text.trim().strip_prefix(start)?.split_once('.')?;
    let id = base64url::decode_all(id).and_then(|id| String::from_utf8(id).ok())?;
    let keys: KeyBundle = keys.parse().ok()?;
    keys.proof.is_none().then_some((id, keys))
}

/// Who an agent's machine is: shown there, read by a device that was not paired with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCard {
    pub machine: EnforcerId,
    /// Its public keys, without a proof.
    pub keys: KeyBundle,
}

impl std::fmt::Display for MachineCard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{MACHINE}{}.{}", base64url::encode(self.machine.as_str().as_bytes()), self.keys)
    }
}

impl FromStr for MachineCard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "this is no card of a machine; `countersign recovery accept` shows one there".to_owned();
        let (id, keys) = read_card(text, MACHINE).ok_or_else(wrong)?;
        Ok(Self { machine: id.parse().map_err(|_| wrong())?, keys })
    }
}

impl Card {
    /// By which machines name the device, whatever its lock is.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.keys)
    }

    /// How people compare the device on two screens: the digits of its keys, or of its keys and its lock.
    pub fn digits(&self) -> String {
        if self.lock.is_none() {
            return self.fingerprint().digits();
        }
        let mut hash = Sha256::new_with_prefix(b"countersign device card v1\0");
        hash.update(self.to_string());
        fingerprint::digits(&hash.finalize().into())
    }
}

/// What the new device gets: that it is vouched for, and the machine's own keys.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Voucher {
    machine: String,
    keys: String,
    statement: String,
}

impl Voucher {
    /// A voucher for one machine.
    pub fn new(machine: &EnforcerId, keys: &KeyBundle, statement: &Statement) -> Option<Self> {
        let keys = KeyBundle { proof: None, ..keys.clone() }.to_string();
        let statement = serde_json::to_string(statement).ok()?;
        Some(Self { machine: machine.as_str().to_owned(), keys, statement })
    }

    /// The text to carry to the new device.
    pub fn text(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{VOUCHER}{}", base64url::encode(&json))
    }

    /// The machine, its keys and the statement; an error if it is none.
    pub fn read(text: &str) -> Result<(EnforcerId, KeyBundle, Statement), String> {
        let wrong =
            || "this is no voucher; `countersign vouch sign` shows one on the device that vouches".to_owned();
        let json = text.trim().strip_prefix(VOUCHER).and_then(base64url::decode_all).ok_or_else(wrong)?;
        let voucher: Self = serde_json::from_slice(&json).map_err(|_| wrong())?;
        let statement: Statement = serde_json::from_str(&voucher.statement).map_err(|_| wrong())?;
        let (machine, keys) =
            (voucher.machine.parse().map_err(|_| wrong())?, voucher.keys.parse().map_err(|_| wrong())?);
        Ok((machine, keys, statement))
    }
}

#[cfg(test)]
mod tests {
    use countersign_client::keys::DeviceKeys;
    use countersign_wire::lock::LockAlgorithm;

    use super::*;

    #[test]
    fn a_card_survives_being_copied() {
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        let card = Card { approver: "ada.b c".parse().unwrap(), keys: keys.bundle().clone(), lock: None };
        assert_eq!(format!(" {card}\n").parse::<Card>().unwrap(), card);
        assert_eq!(card.digits(), card.fingerprint().digits());
        let spki =
            [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0", keys.bundle().signing.as_bytes().as_slice()];
        let lock =
            LockKey::new(LockAlgorithm::EdDsa, vec![1], spki.concat(), "gw.example", "https://gw.example");
        let locked = Card { lock: Some(lock.unwrap()), ..card.clone() };
        assert_eq!(format!(" {locked}\n").parse::<Card>().unwrap(), locked);
        assert_ne!(locked.digits(), card.digits(), "people compare the lock too");
        assert!(format!("{card}.v1.EdDSA.AQ").parse::<Card>().is_err());
        for wrong in ["", "countersign-device#", "countersign-device#x", "https://gateway.example/join#x"] {
            wrong.parse::<Card>().unwrap_err();
        }
        assert!(Voucher::read("countersign-voucher#e30").is_err());
        let machine = MachineCard { machine: "robot".parse().unwrap(), keys: keys.bundle().clone() };
        assert_eq!(format!(" {machine}\n").parse::<MachineCard>().unwrap(), machine);
        card.to_string().parse::<MachineCard>().unwrap_err();
        machine.to_string().parse::<Card>().unwrap_err();
    }
}
