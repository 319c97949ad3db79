//! Who may be pinned, by whom, and until when.

use countersign_wire::{
    id::{ApproverId, EnforcerId},
    lock::LockAlgorithm,
    parse,
};

use super::{text::PinText, *};
use crate::identity::keys::DeviceKeys;

fn keys(number: u8) -> DeviceKeys {
    DeviceKeys::from_secret(&[number; 64]).unwrap()
}

fn ada() -> Party {
    Party::Approver(ApproverId::new("ada").unwrap())
}

fn bob() -> Party {
    Party::Approver(ApproverId::new("bob").unwrap())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_790_000_000_000_000 + seconds * 1_000_000)
}

fn paired(party: Party, number: u8) -> Pin {
    Pin::new(party, keys(number).bundle(), PinSource::Paired, at(0))
}

fn vouched(party: Party, number: u8, by: u8, until: i64) -> Pin {
    let source = PinSource::Vouched { by: keys(by).fingerprint(), until: at(until) };
    Pin::new(party, keys(number).bundle(), source, at(0))
}

fn active(pins: &Pins, party: &Party, seconds: i64) -> Vec<Fingerprint> {
    pins.active(party, at(seconds)).map(Pin::fingerprint).collect()
}

#[test]
fn devices_are_paired_or_vouched_for_until_a_time() {
    let mut pins = Pins::default();
    assert_eq!(pins.insert(vouched(ada(), 2, 1, 100)), Err(PinError::VoucherNotPaired));
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100)).unwrap();
    pins.insert(paired(ada(), 3)).unwrap();
    assert_eq!(active(&pins, &ada(), 0).len(), 3);
    assert_eq!(active(&pins, &ada(), 100).len(), 2, "vouched for until then");
    assert_eq!(pins.active_in_role(Role::Approver, at(0)).count(), 3);
    assert_eq!(pins.active_in_role(Role::Enforcer, at(0)).count(), 0);
}

#[test]
fn only_a_paired_device_vouches() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 3, 1, 100)).unwrap();
    assert_eq!(pins.insert(vouched(ada(), 4, 3, 100)), Err(PinError::VoucherNotPaired), "vouched for itself");
    assert_eq!(pins.insert(vouched(ada(), 4, 4, 100)), Err(PinError::VoucherNotPaired), "itself");
    assert_eq!(pins.insert(vouched(ada(), 4, 9, 100)), Err(PinError::VoucherNotPaired), "unknown");
    assert_eq!(pins.insert(vouched(ada(), 4, 1, 0)), Err(PinError::VouchEnded));
    pins.revoke(keys(1).fingerprint(), at(1)).unwrap();
    assert_eq!(pins.insert(vouched(ada(), 4, 1, 100)), Err(PinError::VoucherNotPaired), "revoked");
}

#[test]
fn a_teammate_s_first_device_can_be_vouched_for_and_no_other() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(bob(), 2, 1, 100)).unwrap();
    pins.insert(vouched(bob(), 2, 1, 200)).unwrap();
    assert_eq!(active(&pins, &bob(), 150), [keys(2).fingerprint()], "for longer, the same device");
    assert_eq!(pins.insert(vouched(bob(), 3, 1, 100)), Err(PinError::OthersDevice), "a second one");
    let robot = Party::Enforcer(EnforcerId::new("robot").unwrap());
    assert_eq!(pins.insert(vouched(robot, 3, 1, 100)), Err(PinError::OthersDevice), "of another role");
    pins.revoke(keys(2).fingerprint(), at(0)).unwrap();
    pins.insert(vouched(bob(), 3, 1, 100)).unwrap();
    assert_eq!(active(&pins, &bob(), 0), [keys(3).fingerprint()], "in place of the lost one");
    pins.revoke(keys(1).fingerprint(), at(1)).unwrap();
    assert_eq!(active(&pins, &bob(), 2), [], "its voucher does not count any more");
    // Whoever has paired a device once adds others alone, also when it is revoked.
    pins.insert(paired(bob(), 4)).unwrap();
    pins.insert(paired(ada(), 5)).unwrap();
    assert_eq!(pins.insert(vouched(bob(), 6, 5, 100)), Err(PinError::OthersDevice));
    pins.revoke(keys(4).fingerprint(), at(2)).unwrap();
    assert_eq!(pins.insert(vouched(bob(), 6, 5, 100)), Err(PinError::OthersDevice));
}

#[test]
fn a_device_whose_voucher_is_revoked_can_be_vouched_for_by_another() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(paired(ada(), 2)).unwrap();
    pins.insert(vouched(ada(), 3, 1, 200)).unwrap();
    pins.revoke(keys(1).fingerprint(), at(0)).unwrap();
    assert!(!pins.is_active(keys(3).fingerprint(), at(1)));
    pins.insert(vouched(ada(), 3, 2, 100)).unwrap();
    assert!(pins.is_active(keys(3).fingerprint(), at(99)) && !pins.is_active(keys(3).fingerprint(), at(100)));
}

#[test]
fn changed_keys_never_take_a_pin_s_place_silently() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    let before = pins.clone();
    assert_eq!(pins.insert(paired(bob(), 1)), Err(PinError::OtherParty));
    let enforcer = Party::Enforcer(EnforcerId::new("ada").unwrap());
    assert_eq!(pins.insert(paired(enforcer, 1)), Err(PinError::OtherParty), "the other role");
    let half = KeyBundle { signing: keys(2).bundle().signing, ..keys(1).bundle().clone() };
    let half = Pin::new(ada(), &half, PinSource::Paired, at(0));
    assert_eq!(pins.insert(half), Err(PinError::SharesAKey));
    assert_eq!(pins, before);
    pins.insert(paired(ada(), 2)).unwrap();
    assert_eq!(pins.get(keys(1).fingerprint()), before.get(keys(1).fingerprint()), "another pin beside it");
}

#[test]
fn the_same_device_again_keeps_the_stronger_source() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 50)).unwrap();
    assert!(pins.is_active(keys(2).fingerprint(), at(99)));
    pins.insert(vouched(ada(), 2, 1, 200)).unwrap();
    assert!(pins.is_active(keys(2).fingerprint(), at(199)));
    pins.insert(paired(ada(), 2)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 300)).unwrap();
    assert_eq!(pins.get(keys(2).fingerprint()).unwrap().source(), PinSource::Paired);
    assert_eq!(pins.iter().count(), 2);
}

#[test]
fn a_revoked_device_takes_those_that_it_vouched_for_with_it_and_never_comes_back() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100)).unwrap();
    pins.insert(paired(ada(), 3)).unwrap();
    pins.revoke(keys(1).fingerprint(), at(5)).unwrap();
    pins.revoke(keys(1).fingerprint(), at(9)).unwrap();
    assert_eq!(pins.get(keys(1).fingerprint()).unwrap().revoked_at(), Some(at(5)), "the first time stays");
    assert_eq!(active(&pins, &ada(), 10), [keys(3).fingerprint()]);
    assert_eq!(pins.insert(paired(ada(), 1)), Err(PinError::Revoked));
    assert_eq!(pins.revoke(keys(9).fingerprint(), at(5)), Err(PinError::Unknown));
}

#[test]
fn a_replaced_device_keeps_its_source_and_what_it_vouched_for() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100)).unwrap();
    let new = pins.replace(keys(1).fingerprint(), keys(5).bundle(), at(7)).unwrap();
    assert_eq!(new, keys(5).fingerprint());
    assert_eq!(active(&pins, &ada(), 10), [keys(2).fingerprint(), new]);
    assert_eq!(pins.get(keys(1).fingerprint()).unwrap().revoked_at(), Some(at(7)));
    let replace = |old, bundle: &DeviceKeys| {
        pins.clone().replace(keys(old).fingerprint(), bundle.bundle(), at(8)).err()
    };
    assert_eq!(replace(1, &keys(6)), Some(PinError::Revoked));
    assert_eq!(replace(9, &keys(6)), Some(PinError::Unknown));
    assert_eq!(replace(5, &keys(2)), Some(PinError::SharesAKey), "another device's keys");
    assert_eq!(replace(5, &keys(1)), Some(PinError::SharesAKey), "revoked keys");
    assert_eq!(replace(5, &keys(5)), Some(PinError::SharesAKey), "its own keys");
}

fn lock(id: u8) -> LockKey {
    let device = keys(1);
    let key =
        [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0", device.bundle().signing.as_bytes().as_slice()];
    LockKey::new(LockAlgorithm::EdDsa, vec![id], key.concat(), "gw.example", "https://gw.example").unwrap()
}

#[test]
fn a_lock_comes_with_its_device_and_changes_by_a_pairing_only() {
    let mut pins = Pins::default();
    let lock_of = |pins: &Pins, number| pins.get(keys(number).fingerprint()).unwrap().lock().cloned();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100).with_lock(Some(lock(2)))).unwrap();
    assert_eq!(lock_of(&pins, 2), Some(lock(2)), "another device has vouched for it");
    // A device that is paired vouches for it again, with a lock of its own: keys that were stolen could.
    pins.insert(vouched(ada(), 2, 1, 200).with_lock(Some(lock(9)))).unwrap();
    pins.insert(vouched(ada(), 2, 1, 300)).unwrap();
    assert_eq!(lock_of(&pins, 2), Some(lock(2)), "neither replaced nor taken away");
    pins.insert(paired(ada(), 3)).unwrap();
    pins.insert(vouched(ada(), 3, 1, 300).with_lock(Some(lock(9)))).unwrap();
    assert_eq!(lock_of(&pins, 3), None, "not added either");
    let itself = vouched(ada(), 1, 1, 100).with_lock(Some(lock(9)));
    assert_eq!(pins.insert(itself), Err(PinError::VoucherNotPaired));
    // A person has confirmed these on both sides.
    pins.insert(paired(ada(), 3).with_lock(Some(lock(3)))).unwrap();
    assert_eq!(lock_of(&pins, 3), Some(lock(3)));
    pins.insert(paired(ada(), 3).with_lock(Some(lock(4)))).unwrap();
    assert_eq!(lock_of(&pins, 3), Some(lock(4)));
    pins.insert(paired(ada(), 3)).unwrap();
    assert_eq!(lock_of(&pins, 3), Some(lock(4)), "a pairing without one takes none away");
    let new = pins.replace(keys(3).fingerprint(), keys(5).bundle(), at(7)).unwrap();
    assert_eq!(pins.get(new).unwrap().lock(), Some(&lock(4)), "new keys are those of the same device");
    let text = pins.to_json().unwrap();
    assert_eq!(parse::<Pins>(text.as_bytes()).unwrap().into_view(), pins);
    assert!(parse::<Pins>(text.replace("v1.EdDSA", "v1.EdDsa").as_bytes()).is_err());
}

#[test]
fn pins_survive_being_written() {
    let mut pins = Pins::default();
    pins.insert(paired(ada(), 1)).unwrap();
    pins.insert(vouched(ada(), 2, 1, 100)).unwrap();
    pins.insert(paired(Party::Enforcer(EnforcerId::new("robot").unwrap()), 3)).unwrap();
    pins.revoke(keys(1).fingerprint(), at(5)).unwrap();
    let text = pins.to_json().unwrap();
    assert_eq!(parse::<Pins>(text.as_bytes()).unwrap().into_view(), pins);
    let other = keys(9).fingerprint().to_string();
    let changed = text.replace(
        &format!("\"fingerprint\":\"{}\"", keys(3).fingerprint()),
        &format!("\"fingerprint\":\"{other}\""),
    );
    assert_ne!(changed, text);
    assert!(parse::<Pins>(changed.as_bytes()).is_err(), "a fingerprint that is not that of the bundle");
    let one = PinText::of(pins.get(keys(3).fingerprint()).unwrap());
    let one = serde_json::to_string(&one).unwrap();
    let twice = format!("{{\"version\":1,\"pins\":[{one},{one}]}}");
    assert!(parse::<Pins>(twice.as_bytes()).is_err(), "the same device twice");
    let first = format!("{{\"version\":1,\"pins\":[{one}]}}");
    assert_eq!(parse::<Pins>(first.as_bytes()).unwrap().into_view().iter().count(), 1, "the first version");
}
