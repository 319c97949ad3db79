//! Which statements an enforcer takes, and that every check before it is needed.

use countersign_testkit::authenticator::Authenticator;
use countersign_wire::{
    id::ApproverId,
    lock::{Assertion, LockAlgorithm},
    parse,
    statement::{Claim, Issue, Said, Statement, StatementError},
};

use super::{
    apply::{Applied, Revocation, Signed},
    insert::Candidate,
    *,
};
use crate::{
    checks,
    identity::{keys::DeviceKeys, lock::LockFault, profile::error::ApplyError},
};

const DAY: i64 = 86_400;

fn keys(number: u8) -> DeviceKeys {
    DeviceKeys::from_secret(&[number; 64]).unwrap()
}

fn party(id: &str) -> Party {
    Party::Approver(ApproverId::new(id).unwrap())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_790_000_000_000_000 + seconds * 1_000_000)
}

/// A statement to `robot`, signed at second zero.
fn said(by: &str, number: u8, claim: Claim) -> Statement {
    said_under(by, number, claim, "s-1")
}

fn said_under(by: &str, number: u8, claim: Claim, id: &str) -> Statement {
    keys(number).sign_statement(Issue { enforcer_id: "robot", id, by, at: at(0) }, claim).unwrap()
}

/// The same, of a device that asks its lock.
fn confirmed(
    number: u8,
    claim: Claim,
    id: &str,
    lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
) -> Statement {
    let issue = Issue { enforcer_id: "robot", id, by: "ada", at: at(0) };
    keys(number).sign_statement_with(issue, claim, lock).unwrap()
}

fn vouch(id: &str, number: u8, until: i64) -> Claim {
    Claim::vouch(id, keys(number).bundle(), "a phone", at(until), false)
}

fn recovery(id: &str, number: u8, until: i64) -> Claim {
    Claim::vouch(id, keys(number).bundle(), "", at(until), true)
}

fn revoke(number: u8) -> Claim {
    Claim::revoke(keys(number).fingerprint())
}

/// `ada` has paired device 1 and `bob` device 2; device 3 is one that `ada` vouched for, 9 `ada`'s recovery code.
fn world() -> Pins {
    let mut pins = Pins::default();
    for (id, number) in [("ada", 1), ("bob", 2)] {
        pins.insert(Pin::new(party(id), keys(number).bundle(), PinSource::Paired, at(0))).unwrap();
    }
    take(&mut pins, &said("ada", 1, vouch("ada", 3, 300 * DAY)), 0).unwrap();
    take(&mut pins, &said("ada", 1, recovery("ada", 9, 300 * DAY)), 0).unwrap();
    pins
}

/// The same, where the lock of device 1 is pinned: it was paired again with it.
fn locked_world(lock: &LockKey) -> Pins {
    let mut pins = world();
    let pin = Pin::new(party("ada"), keys(1).bundle(), PinSource::Paired, at(0));
    pins.insert(pin.with_lock(Some(lock.clone()))).unwrap();
    pins
}

fn take(pins: &mut Pins, statement: &Statement, seconds: i64) -> Result<Applied, ApplyError> {
    pins.apply(statement, "robot", at(seconds))
}

/// What would become of the pins without one of the checks.
fn take_without(left_out: &str, pins: &Pins, statement: &Statement, now: i64) -> Result<Pins, ApplyError> {
    let (mut taken, now) = (pins.clone(), at(now));
    let signer = statement.by_fingerprint().and_then(|by| pins.get(by)).unwrap();
    let received = Signed { pin: signer, statement, enforcer_id: "robot", now };
    checks::all_but(left_out, &Signed::CHECKS, &received)?;
    match statement.claim().read()? {
        Said::Revoke(fingerprint) => {
            let target = pins.get(fingerprint).unwrap();
            checks::all_but(left_out, &Revocation::CHECKS, &Revocation { pins, signer, target, now })?;
            taken.revoke(fingerprint, now)?;
        }
        Said::Vouch(vouch) => {
            checks::all_but(left_out, &Signed::VOUCHING, &received)?;
            let pin = signer.vouch(&vouch, now)?;
            checks::all_but(left_out, &Candidate::CHECKS, &Candidate::new(pins, &pin))?;
            taken.add(pin);
        }
    }
    Ok(taken)
}

#[test]
fn a_statement_pins_a_device_once_and_revokes_it_once() {
    let mut pins = world();
    let vouched = said("ada", 1, vouch("cy", 4, 100));
    assert_eq!(take(&mut pins, &vouched, 1), Ok(Applied::Vouched(keys(4).fingerprint())));
    let known = pins.clone();
    assert_eq!(take(&mut pins, &vouched, 2), Ok(Applied::AlreadyKnown));
    let again = said_under("ada", 1, vouch("cy", 4, 50), "s-2");
    assert_eq!(take(&mut pins, &again, 2), Ok(Applied::AlreadyKnown), "for a shorter time");
    let paired = said_under("ada", 1, vouch("ada", 1, 50), "s-3");
    assert_eq!(take(&mut pins, &paired, 2), Err(PinError::VoucherNotPaired.into()), "for itself");
    assert_eq!(pins, known);
    let longer = said_under("ada", 1, vouch("cy", 4, 200), "s-4");
    assert_eq!(take(&mut pins, &longer, 2), Ok(Applied::Vouched(keys(4).fingerprint())));
    let pin = pins.get(keys(4).fingerprint()).unwrap();
    assert_eq!(pin.source(), PinSource::Vouched { by: keys(1).fingerprint(), until: at(200) });
    assert_eq!(pin.party(), &party("cy"));
    let revoked = said("ada", 1, revoke(4));
    assert_eq!(take(&mut pins, &revoked, 3), Ok(Applied::Revoked(keys(4).fingerprint())));
    assert_eq!(take(&mut pins, &revoked, 4), Ok(Applied::AlreadyKnown));
    assert!(!pins.is_active(keys(4).fingerprint(), at(5)));
    let back = said_under("ada", 1, vouch("cy", 4, 300), "s-5");
    assert_eq!(take(&mut pins, &back, 5), Err(PinError::Revoked.into()), "it never comes back");
}

#[test]
fn a_statement_brings_the_lock_of_a_new_device_and_changes_none() {
    let mut pins = world();
    let device = keys(1);
    let key =
        [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0", device.bundle().signing.as_bytes().as_slice()];
    let lock =
        |id| LockKey::new(LockAlgorithm::EdDsa, vec![id], key.concat(), "gw.example", "https://gw.example");
    let with = |number, id| vouch("ada", number, 400 * DAY / 2).with_lock(Some(&lock(id).unwrap()));
    take(&mut pins, &said_under("ada", 1, with(4, 1), "s-1"), 1).unwrap();
    take(&mut pins, &said_under("ada", 1, with(4, 2), "s-2"), 2).unwrap();
    assert_eq!(pins.get(keys(4).fingerprint()).unwrap().lock(), lock(1).ok().as_ref());
    // Of a device that was vouched for without one, and of the device that signs.
    take(&mut pins, &said_under("ada", 1, with(3, 2), "s-3"), 2).unwrap();
    assert_eq!(pins.get(keys(3).fingerprint()).unwrap().lock(), None);
    assert!(take(&mut pins, &said_under("ada", 1, with(1, 2), "s-4"), 2).is_err());
    assert_eq!(pins.get(keys(1).fingerprint()).unwrap().lock(), None);
}

/// Whoever has only the keys of such a device brings no device that decides in its place, and no recovery code.
#[test]
fn a_device_with_a_lock_vouches_with_it_and_revokes_without() {
    let (phone, thiefs) = (Authenticator::new("gw.example"), Authenticator::new("gw.example"));
    let mut pins = locked_world(phone.lock());
    let own_lock = vouch("ada", 4, DAY).with_lock(Some(thiefs.lock()));
    for claim in [vouch("ada", 4, DAY), own_lock.clone(), vouch("cy", 4, DAY), recovery("ada", 8, DAY)] {
        let keys_alone = said("ada", 1, claim.clone());
        assert_eq!(take(&mut pins, &keys_alone, 1), Err(ApplyError::NotConfirmed));
        let by_thief = confirmed(1, claim, "s-1", |asked| thiefs.confirm(asked));
        assert_eq!(take(&mut pins, &by_thief, 1), Err(ApplyError::Lock(LockFault::Signature)));
    }
    let other = confirmed(1, vouch("ada", 5, DAY), "s-1", |asked| phone.confirm(asked));
    let replayed = confirmed(1, own_lock, "s-1", |_| other.confirmed().cloned());
    let refused = take(&mut pins, &replayed, 1);
    assert_eq!(refused, Err(ApplyError::Lock(LockFault::OtherDecision)), "it was for another device");
    let mut stripped = serde_json::to_value(&other).unwrap();
    stripped.as_object_mut().unwrap().remove("confirmed");
    let stripped: Statement = serde_json::from_value(stripped).unwrap();
    assert_eq!(take(&mut pins, &stripped, 1), Err(StatementError::Signature.into()));
    assert_eq!(pins, locked_world(phone.lock()));

    assert_eq!(take(&mut pins, &other, 1), Ok(Applied::Vouched(keys(5).fingerprint())));
    let code = confirmed(1, recovery("ada", 8, 300 * DAY), "s-2", |asked| phone.confirm(asked));
    assert_eq!(take(&mut pins, &code, 1), Ok(Applied::Vouched(keys(8).fingerprint())));
    // What is trusted less needs nobody. A code on paper has no lock.
    let revoked = Ok(Applied::Revoked(keys(5).fingerprint()));
    assert_eq!(take(&mut pins, &said("ada", 1, revoke(5)), 1), revoked);
    let recovered = take(&mut pins, &said("ada", 8, vouch("ada", 6, 200 * DAY)), 2 * DAY);
    assert!(matches!(recovered, Ok(Applied::Recovered { .. })), "{recovered:?}");
    // What a lock says that is not pinned counts for nothing.
    let unknown = confirmed(1, vouch("ada", 4, DAY), "s-3", |asked| thiefs.confirm(asked));
    assert_eq!(take(&mut world(), &unknown, 1), Ok(Applied::Vouched(keys(4).fingerprint())));
}

#[test]
fn what_was_taken_is_remembered_across_a_restart_and_until_its_end() {
    let mut pins = world();
    let vouched = said("ada", 1, vouch("cy", 4, 100));
    take(&mut pins, &vouched, 1).unwrap();
    take(&mut pins, &said("ada", 9, vouch("ada", 5, 3 * DAY)), 2 * DAY).unwrap();
    let mut read = parse::<Pins>(pins.to_json().unwrap().as_bytes()).unwrap().into_view();
    assert_eq!(read, pins);
    assert_eq!(read.taken.len(), 3, "the one that has ended is forgotten");
    let spent = said_under("ada", 9, vouch("ada", 6, 3 * DAY), "s-2");
    assert_eq!(take(&mut read, &spent, 2 * DAY), Err(PinError::RecoverySpent.into()));
    for number in 0..apply::MAX_TAKEN {
        let until = 4 * DAY + i64::try_from(number).unwrap();
        take(&mut read, &said_under("bob", 2, vouch("bob", 7, until), "s"), DAY).unwrap();
    }
    assert_eq!(read.taken.len(), apply::MAX_TAKEN);
}

#[test]
fn who_may_revoke_whom() {
    for (who, by, whom, may) in [
        ("ada", 1, 3, true),
        ("ada", 1, 9, false),
        ("ada", 1, 1, true),
        ("ada", 3, 3, true),
        ("ada", 9, 9, true),
        ("ada", 3, 1, false),
        ("ada", 9, 1, false),
        ("ada", 1, 2, false),
        ("bob", 2, 3, false),
    ] {
        let mut pins = world();
        let taken = take(&mut pins, &said(who, by, revoke(whom)), 1);
        let expected = if may {
            Ok(Applied::Revoked(keys(whom).fingerprint()))
        } else {
            Err(PinError::MayNotRevoke.into())
        };
        assert_eq!(taken, expected, "{by} revokes {whom}");
    }
    let mut pins = world();
    assert_eq!(take(&mut pins, &said("ada", 1, revoke(8)), 1), Err(PinError::Unknown.into()));
    take(&mut pins, &said("ada", 1, vouch("cy", 4, DAY)), 1).unwrap();
    let revoked = take(&mut pins, &said("ada", 1, revoke(4)), 1);
    assert_eq!(revoked, Ok(Applied::Revoked(keys(4).fingerprint())), "who vouched for a teammate");
    let mut pins = world();
    take(&mut pins, &said("ada", 1, revoke(1)), 1).unwrap();
    let late = take(&mut pins, &said("ada", 1, revoke(3)), 2);
    assert_eq!(late, Err(PinError::MayNotRevoke.into()), "a device that is revoked");
}

#[test]
fn a_recovery_code_decides_nothing_and_is_never_sealed_to() {
    let pins = world();
    assert!(!pins.is_active(keys(9).fingerprint(), at(1)));
    assert!(pins.active(&party("ada"), at(1)).all(|pin| pin.fingerprint() != keys(9).fingerprint()));
    assert!(pins.active_in_role(Role::Approver, at(1)).all(|pin| pin.fingerprint() != keys(9).fingerprint()));
    let mut pins = world();
    let another = said("ada", 9, recovery("ada", 8, 5 * DAY));
    assert_eq!(take(&mut pins, &another, 2 * DAY), Err(PinError::VoucherNotPaired.into()), "only a device");
    let bobs = said("ada", 1, recovery("bob", 8, 5 * DAY));
    assert_eq!(take(&mut pins, &bobs, 1), Err(PinError::OthersRecovery.into()));
    let replaced = pins.replace(keys(9).fingerprint(), keys(8).bundle(), at(1));
    assert_eq!(replaced, Err(PinError::RecoveryKeys));
    let paired = Pin::new(party("ada"), keys(9).bundle(), PinSource::Paired, at(1));
    assert_eq!(pins.insert(paired), Err(PinError::RecoveryKeys));
}

#[test]
fn a_recovered_device_stands_in_for_the_lost_one() {
    let new = keys(5).fingerprint();
    let lost = |pins: &mut Pins, seconds: i64| pins.revoke(keys(1).fingerprint(), at(seconds)).unwrap();
    let recover = |pins: &mut Pins, seconds| take(pins, &said("ada", 9, vouch("ada", 5, 200 * DAY)), seconds);
    let replaced = Ok(Applied::Recovered { device: new, lost: keys(1).fingerprint() });
    // Recovered first, or revoked first: the code was known for a day either way.
    let mut pins = world();
    assert_eq!(recover(&mut pins, DAY), replaced);
    let lost_at = |pins: &Pins| pins.get(keys(1).fingerprint()).unwrap().revoked_at();
    assert_eq!(lost_at(&pins), Some(at(DAY)), "the lost device can't revoke the one in its place");
    lost(&mut pins, DAY + 1);
    let mut revoked_first = world();
    lost(&mut revoked_first, DAY);
    assert_eq!(recover(&mut revoked_first, DAY + 1), replaced);
    assert_eq!(lost_at(&revoked_first), Some(at(DAY)), "the first time stays");
    for mut pins in [pins, revoked_first] {
        assert!(pins.is_active(new, at(100 * DAY)) && !pins.is_active(new, at(200 * DAY)));
        assert!(!pins.is_active(keys(3).fingerprint(), at(2 * DAY)), "the lost device vouched for it");
        take(&mut pins, &said("ada", 5, vouch("ada", 6, 250 * DAY)), 2 * DAY).unwrap();
        assert!(pins.is_active(keys(6).fingerprint(), at(199 * DAY)), "it vouches as a paired one");
        assert!(!pins.is_active(keys(6).fingerprint(), at(200 * DAY)), "and ends with it");
        take(&mut pins, &said("ada", 5, recovery("ada", 8, 250 * DAY)), 2 * DAY).unwrap();
        assert_eq!(recover(&mut pins, 2 * DAY), Ok(Applied::AlreadyKnown), "the same statement");
        let longer = said_under("ada", 9, vouch("ada", 5, 250 * DAY), "s-2");
        assert_eq!(take(&mut pins, &longer, 2 * DAY), Err(PinError::RecoverySpent.into()), "another");
    }
}

#[test]
fn a_thief_with_the_device_can_not_undo_a_recovery() {
    let mut pins = world();
    let revoked = take(&mut pins, &said("ada", 1, revoke(9)), 2 * DAY);
    assert_eq!(revoked, Err(PinError::MayNotRevoke.into()), "before");
    let recovered = take(&mut pins, &said("ada", 9, vouch("ada", 5, 200 * DAY)), 2 * DAY);
    assert!(matches!(recovered, Ok(Applied::Recovered { .. })));
    let revoked = take(&mut pins, &said("ada", 1, revoke(5)), 2 * DAY);
    assert_eq!(revoked, Err(PinError::MayNotRevoke.into()), "after");
    let known = take(&mut pins, &said("ada", 5, revoke(1)), 2 * DAY);
    assert_eq!(known, Ok(Applied::AlreadyKnown), "the lost one is revoked");
    assert!(pins.is_active(keys(5).fingerprint(), at(2 * DAY)));
}

#[test]
fn a_code_that_is_vouched_for_again_lasts_longer_and_stays_that_of_its_device() {
    let mut pins = world();
    pins.insert(Pin::new(party("ada"), keys(4).bundle(), PinSource::Paired, at(0))).unwrap();
    let longer = said_under("ada", 4, recovery("ada", 9, 350 * DAY), "s-2");
    assert_eq!(take(&mut pins, &longer, 2 * DAY), Ok(Applied::Vouched(keys(9).fingerprint())));
    let used = take(&mut pins, &said("ada", 9, vouch("ada", 5, 360 * DAY)), 340 * DAY);
    let (device, lost) = (keys(5).fingerprint(), keys(1).fingerprint());
    assert_eq!(used, Ok(Applied::Recovered { device, lost }));
    assert!(pins.is_active(keys(4).fingerprint(), at(340 * DAY)), "it was not lost");
}

#[test]
fn a_code_that_is_used_for_the_device_that_made_it_or_a_paired_one_changes_nothing() {
    let mut pins = world();
    for number in [1, 4] {
        if number == 4 {
            pins.insert(Pin::new(party("ada"), keys(4).bundle(), PinSource::Paired, at(0))).unwrap();
        }
        let used = said("ada", 9, vouch("ada", number, 200 * DAY));
        assert_eq!(take(&mut pins, &used, 2 * DAY), Ok(Applied::AlreadyKnown), "{number}");
    }
    let code = pins.get(keys(9).fingerprint()).unwrap().source();
    assert!(matches!(code, PinSource::Recovery { spent_on: None, .. }));
    assert!(pins.is_active(keys(1).fingerprint(), at(2 * DAY)));
}

#[test]
fn a_thief_s_recovery_code_dies_with_the_stolen_device() {
    let mut pins = world();
    take(&mut pins, &said("ada", 1, recovery("ada", 8, 300 * DAY)), 10 * DAY).unwrap();
    let thiefs = said("ada", 8, vouch("ada", 5, 200 * DAY));
    assert_eq!(take(&mut pins, &thiefs, 11 * DAY - 1), Err(PinError::RecoveryTooNew.into()), "at once");
    pins.revoke(keys(1).fingerprint(), at(11 * DAY - 1)).unwrap();
    for later in [11 * DAY, 100 * DAY] {
        assert_eq!(take(&mut pins, &thiefs, later), Err(PinError::RecoveryTooNew.into()), "{later}");
    }
    let owners = said("ada", 9, vouch("ada", 6, 200 * DAY));
    let lost = keys(1).fingerprint();
    let recovered = Ok(Applied::Recovered { device: keys(6).fingerprint(), lost });
    assert_eq!(take(&mut pins, &owners, 12 * DAY), recovered);
}

#[test]
fn a_code_that_ended_or_was_revoked_vouches_for_nothing() {
    let recovered = said("ada", 9, vouch("ada", 5, 360 * DAY));
    let mut pins = world();
    assert_eq!(take(&mut pins, &recovered, 300 * DAY), Err(PinError::VoucherNotPaired.into()), "ended");
    take(&mut pins, &said("ada", 9, revoke(9)), 1).unwrap();
    assert_eq!(take(&mut pins, &recovered, 2 * DAY), Err(PinError::VoucherNotPaired.into()), "revoked");
}

#[test]
fn a_statement_is_of_the_pin_that_it_names() {
    let statement = said("ada", 1, vouch("cy", 4, 100));
    let pin = |party: Party, number: u8| Pin::new(party, keys(number).bundle(), PinSource::Paired, at(0));
    let verify = |pin: Pin| pin.verify_statement(&statement, "robot", at(1)).map(drop);
    assert_eq!(verify(pin(party("ada"), 1)), Ok(()));
    let enforcer = Party::Enforcer("ada".parse().unwrap());
    for other in [pin(party("bob"), 1), pin(party("ada"), 3), pin(enforcer, 1)] {
        assert_eq!(verify(other.clone()), Err(StatementError::Signature), "{other:?}");
    }
    let unknown = said("eve", 7, vouch("eve", 4, 100));
    assert_eq!(take(&mut world(), &unknown, 1), Err(ApplyError::UnknownSigner));
}

#[test]
fn every_check_catches_what_no_other_catches() {
    let forged = {
        let text = serde_json::to_string(&said("ada", 1, vouch("cy", 4, 100))).unwrap();
        let other = serde_json::to_string(&said("ada", 1, vouch("cy", 5, 100))).unwrap();
        let signature = |text: &str| text[text.find("\"signature\"").unwrap()..].to_owned();
        serde_json::from_str(&text.replace(&signature(&text), &signature(&other))).unwrap()
    };
    let elsewhere = {
        let issue = Issue { enforcer_id: "crane", id: "s", by: "ada", at: at(0) };
        keys(1).sign_statement(issue, vouch("cy", 4, 100)).unwrap()
    };
    let stolen = {
        let bundle = KeyBundle { signing: keys(4).bundle().signing, ..keys(2).bundle().clone() };
        said("ada", 1, Claim::vouch("cy", &bundle, "", at(100), false))
    };
    let mut spent = world();
    take(&mut spent, &said("ada", 9, vouch("ada", 5, 9 * DAY)), 2 * DAY).unwrap();
    let mut full = world();
    for number in 10..u8::try_from(10 + MAX_VOUCHED - 2).unwrap() {
        take(&mut full, &said("ada", 1, vouch("ada", number, 9 * DAY)), 1).unwrap();
    }
    let recovered = || said("ada", 9, vouch("ada", 4, 9 * DAY));
    let (phone, thiefs) = (Authenticator::new("gw.example"), Authenticator::new("gw.example"));
    let locked = locked_world(phone.lock());
    let by_thief = confirmed(1, vouch("ada", 4, 100), "s-1", |asked| thiefs.confirm(asked));
    let keys_alone = said("ada", 1, vouch("ada", 4, 100));
    let pin = |error: PinError| ApplyError::Pin(error);
    let attacks = [
        ("signer", world(), said("bob", 1, vouch("cy", 4, 100)), 1, StatementError::Signature.into()),
        ("signature", world(), forged, 1, StatementError::Signature.into()),
        ("enforcer", world(), elsewhere, 1, StatementError::OtherEnforcer.into()),
        ("time", world(), said("ada", 1, vouch("cy", 4, 366 * DAY)), 1, StatementError::Time.into()),
        ("lock", locked.clone(), by_thief, 1, ApplyError::Lock(LockFault::Signature)),
        ("person", locked, keys_alone, 1, ApplyError::NotConfirmed),
        ("keys", world(), stolen, 1, pin(PinError::SharesAKey)),
        ("voucher", world(), said("ada", 3, vouch("ada", 4, 100)), 1, pin(PinError::VoucherNotPaired)),
        ("recovery once", spent, recovered(), 2 * DAY, pin(PinError::RecoverySpent)),
        ("recovery wait", world(), recovered(), 1, pin(PinError::RecoveryTooNew)),
        ("own recovery", world(), said("ada", 1, recovery("cy", 4, 100)), 1, pin(PinError::OthersRecovery)),
        ("third person", world(), said("bob", 2, vouch("ada", 4, 100)), 1, pin(PinError::OthersDevice)),
        ("limit", full, said("ada", 1, vouch("ada", 200, 100)), 1, pin(PinError::TooMany)),
        ("recovery keys", world(), said("ada", 1, vouch("ada", 9, 100)), 1, pin(PinError::RecoveryKeys)),
        ("revoker", world(), said("bob", 2, revoke(1)), 1, pin(PinError::MayNotRevoke)),
    ];
    let listed = [
        checks::names(&Signed::CHECKS),
        checks::names(&Signed::VOUCHING),
        checks::names(&Candidate::CHECKS),
        checks::names(&Revocation::CHECKS),
    ];
    assert_eq!(attacks.each_ref().map(|(check, ..)| *check).as_slice(), listed.concat());
    for (check, pins, statement, now, reason) in attacks {
        assert_eq!(take(&mut pins.clone(), &statement, now), Err(reason), "{check}");
        let won = take_without(check, &pins, &statement, now);
        assert!(won.is_ok_and(|taken| taken != pins), "without {check} the attack succeeds");
    }
}
