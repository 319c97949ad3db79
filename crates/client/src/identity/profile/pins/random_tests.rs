//! Random statements of random devices: whatever is said, some things always hold.

use countersign_wire::{
    id::ApproverId,
    statement::{Claim, Issue},
};

use super::{apply::Applied, *};
use crate::identity::keys::DeviceKeys;

const DAY: i64 = 86_400;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_790_000_000_000_000 + seconds * 1_000_000)
}

fn party(id: &str) -> Party {
    Party::Approver(ApproverId::new(id).unwrap())
}

/// Choices that are the same in each run.
struct Dice(u64);

impl Dice {
    fn next(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// What holds whatever anybody has said: every device that counts leads back to a pairing, nobody was given a device by
/// somebody else beside their own, and no code was used twice.
fn check_invariants(pins: &Pins, now: Timestamp) {
    let active: Vec<&Pin> = pins.iter().filter(|pin| pins.is_active(pin.fingerprint(), now)).collect();
    for pin in &active {
        assert!(pin.revoked_at().is_none() && pin.source().until().is_none_or(|until| now < until));
        let voucher = pin.source().by().map(|by| pins.get(by).unwrap());
        match (pin.source(), voucher) {
            (PinSource::Paired, None) => {}
            (PinSource::Vouched { .. }, Some(voucher)) => {
                assert!(active.iter().any(|known| known.fingerprint() == voucher.fingerprint()));
                assert!(!matches!(voucher.source(), PinSource::Vouched { .. }));
                if voucher.party() != pin.party() {
                    let added_before =
                        |known: &&Pin| known.party() == pin.party() && known.since() < pin.since();
                    assert!(
                        pins.iter().filter(added_before).all(|known| known.source() != PinSource::Paired)
                    );
                }
            }
            (PinSource::Recovered { by, .. }, Some(code)) => {
                assert_eq!(code.party(), pin.party());
                let same = pins.iter().filter(
                    |known| matches!(known.source(), PinSource::Recovered { by: other, .. } if other == by),
                );
                assert_eq!(same.count(), 1, "used once");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn whatever_is_said_every_device_that_counts_leads_back_to_a_pairing() {
    let people = ["ada", "bob", "cy", "dan"];
    let devices: Vec<DeviceKeys> =
        (1..61).map(|number| DeviceKeys::from_secret(&[number; 64]).unwrap()).collect();
    let fingerprints: Vec<Fingerprint> = devices.iter().map(DeviceKeys::fingerprint).collect();
    let (mut paired, mut taken, mut refused, mut recovered) = (0, 0, 0, 0);
    for seed in 0..20 {
        let (mut dice, mut pins, mut seconds) = (Dice(seed), Pins::default(), 0);
        for number in 0..200 {
            seconds += i64::try_from(dice.next(12 * 3_600)).unwrap();
            let device = |dice: &mut Dice| u8::try_from(dice.next(60)).unwrap();
            let name_of = |number: u8| {
                pins.get(fingerprints[usize::from(number)]).map(|pin| pin.party().id().to_owned())
            };
            let (mut signer, target) = (device(&mut dice), device(&mut dice));
            // Mostly a device that is known, which speaks in its own name of its own person: the rest is refused at once.
            while name_of(signer).is_none() && dice.next(200) > 0 {
                signer = device(&mut dice);
            }
            let anybody = people[usize::try_from(dice.next(4)).unwrap()].to_owned();
            let by = name_of(signer).filter(|_| dice.next(10) > 0).unwrap_or_else(|| anybody.clone());
            let who = if dice.next(3) > 0 { by.as_str() } else { anybody.as_str() };
            let until = seconds + i64::try_from(dice.next(40) + 1).unwrap() * DAY;
            let claim = match dice.next(20) {
                0 => {
                    let pin = Pin::new(
                        party(who),
                        devices[usize::from(target)].bundle(),
                        PinSource::Paired,
                        at(seconds),
                    );
                    paired += usize::from(pins.insert(pin).is_ok());
                    continue;
                }
                1 => Claim::revoke(fingerprints[usize::from(target)]),
                kind => Claim::vouch(who, devices[usize::from(target)].bundle(), "", at(until), kind < 4),
            };
            let issue = Issue { enforcer_id: "robot", id: &number.to_string(), by: &by, at: at(seconds) };
            let signer = &devices[usize::from(signer)];
            let statement = signer.sign_statement(issue, claim).unwrap();
            let before = pins.clone();
            if let Ok(applied) = pins.apply(&statement, "robot", at(seconds)) {
                taken += 1;
                let signer = before.get(signer.fingerprint()).unwrap();
                if let Applied::Recovered { lost, .. } = applied {
                    assert!(at(seconds) >= signer.since().plus(RECOVERY_WAIT));
                    assert!(!pins.is_active(lost, at(seconds)));
                }
            } else {
                refused += 1;
                assert_eq!(pins, before, "an error changes nothing");
            }
            check_invariants(&pins, at(seconds));
        }
        let is_recovered = |pin: &&Pin| matches!(pin.source(), PinSource::Recovered { .. });
        recovered += pins.iter().filter(is_recovered).count();
    }
    assert!(taken > 300 && refused > 300, "{taken} taken, {refused} refused");
    assert!(paired > 50 && recovered > 10, "{paired} paired, {recovered} recovered");
}
