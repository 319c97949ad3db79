//! Who may be pinned: the rules before a device is added.

use countersign_wire::{keys::KeyBundle, timestamp::Timestamp};

use super::{MAX_VOUCHED, Pin, PinSource, Pins, RECOVERY_WAIT};
use crate::{
    checks::{self, Check, ensure},
    identity::{
        keys::Fingerprint,
        profile::{
            error::PinError,
            party::{Party, Role},
        },
    },
};

/// A device that is about to be pinned.
pub(super) struct Candidate<'a> {
    pins: &'a Pins,
    pin: &'a Pin,
    /// The other device that signed for it, if that is pinned; `None` also if it was paired.
    voucher: Option<&'a Pin>,
}

impl<'a> Candidate<'a> {
    /// `docs/trust.md` says what each of them prevents.
    pub(super) const CHECKS: [Check<Self, PinError>; 8] = [
        ("keys", |it| it.pins.check_keys(&it.pin.party, &it.pin.bundle)),
        ("voucher", Self::check_voucher),
        ("recovery once", |it| ensure(!it.is_of_a_spent_code(), PinError::RecoverySpent)),
        ("recovery wait", |it| ensure(!it.is_of_a_new_code(), PinError::RecoveryTooNew)),
        ("own recovery", |it| ensure(it.is_vouched() || !it.is_others(), PinError::OthersRecovery)),
        ("third person", |it| {
            let is_allowed = !it.is_vouched() || !it.is_others() || it.is_first_of_teammate();
            ensure(is_allowed, PinError::OthersDevice)
        }),
        ("limit", |it| ensure(it.vouched_by_the_same() < MAX_VOUCHED, PinError::TooMany)),
        ("recovery keys", |it| {
            let known = it.pins.get(it.pin.fingerprint);
            let is_same = known.is_none_or(|known| known.source.is_recovery() == it.pin.source.is_recovery());
            ensure(is_same, PinError::RecoveryKeys)
        }),
    ];

    pub(super) fn new(pins: &'a Pins, pin: &'a Pin) -> Self {
        let voucher = pin.source.by().filter(|by| *by != pin.fingerprint).and_then(|by| pins.get(by));
        Self { pins, pin, voucher }
    }

    /// Who vouches is a paired device that counts, or a recovery code that is not ended or revoked.
    fn check_voucher(&self) -> Result<(), PinError> {
        let now = self.pin.since;
        let Some(until) = self.pin.source.until() else { return Ok(()) };
        ensure(until > now, PinError::VouchEnded)?;
        let voucher = self.voucher.ok_or(PinError::VoucherNotPaired)?;
        let counts = match (self.pin.source, voucher.source) {
            (PinSource::Recovered { .. }, PinSource::Recovery { until, .. }) => {
                voucher.revoked_at.is_none() && now < until
            }
            (PinSource::Recovered { .. }, _) => false,
            _ => self.pins.counts_as_paired(voucher.fingerprint, now),
        };
        ensure(counts, PinError::VoucherNotPaired)
    }

    /// A recovery code is used once.
    fn is_of_a_spent_code(&self) -> bool {
        self.code()
            .is_some_and(|(code, _)| matches!(code.source, PinSource::Recovery { spent_on: Some(_), .. }))
    }

    /// A recovery code that is no thief's was known for a day before it is used, and before the device that vouched for it
    /// was revoked.
    fn is_of_a_new_code(&self) -> bool {
        self.code().is_some_and(|(code, by)| {
            let settled_at = code.since.plus(RECOVERY_WAIT);
            let voucher_revoked_at = self.pins.get(by).and_then(Pin::revoked_at);
            self.pin.since < settled_at || voucher_revoked_at.is_some_and(|at| at < settled_at)
        })
    }

    /// The recovery code that signed for it, and the device that made the code.
    fn code(&self) -> Option<(&'a Pin, Fingerprint)> {
        let PinSource::Recovered { .. } = self.pin.source else { return None };
        self.voucher.and_then(|code| match code.source {
            PinSource::Recovery { by, .. } => Some((code, by)),
            _ => None,
        })
    }

    fn is_vouched(&self) -> bool {
        matches!(self.pin.source, PinSource::Vouched { .. })
    }

    /// Whether somebody else than its own party signed for it.
    fn is_others(&self) -> bool {
        self.voucher.is_some_and(|voucher| voucher.party != self.pin.party)
    }

    /// Whether it is a teammate's device, and that person has no other. Whoever ever had a paired device, also one that is
    /// revoked, adds devices alone: otherwise somebody could decide in the name of somebody else.
    fn is_first_of_teammate(&self) -> bool {
        let pin = self.pin;
        let is_other = |known: &&Pin| known.party == pin.party && known.fingerprint != pin.fingerprint;
        self.voucher.is_some_and(|voucher| voucher.party.role() == Role::Approver)
            && pin.party.role() == Role::Approver
            && self.pins.iter().filter(is_other).all(|known| {
                matches!(known.source, PinSource::Vouched { .. })
                    && !self.pins.is_active(known.fingerprint, pin.since)
            })
    }

    /// How many other devices its voucher has vouched for.
    fn vouched_by_the_same(&self) -> usize {
        let Some(by) = self.pin.source.by() else { return 0 };
        let is_other =
            |known: &&Pin| known.source.by() == Some(by) && known.fingerprint != self.pin.fingerprint;
        self.pins.iter().filter(is_other).count()
    }
}

impl Pins {
    /// Adds a device. A pin that is there already stays, and gets the stronger of both sources. Its lock changes by a pairing
    /// only, which a person has confirmed, and is never taken from it: whoever has stolen keys could vouch with them.
    pub fn insert(&mut self, pin: Pin) -> Result<(), PinError> {
        checks::all(&Candidate::CHECKS, &Candidate::new(self, &pin))?;
        self.add(pin);
        Ok(())
    }

    /// Adds a device whose checks have passed.
    pub(super) fn add(&mut self, pin: Pin) {
        let (fingerprint, source, since) = (pin.fingerprint, pin.source, pin.since);
        // What does not count any more, because its voucher does not, is no reason to prefer it.
        let counts = self.is_active(fingerprint, pin.since);
        let known = self.list.iter_mut().find(|known| known.fingerprint == fingerprint);
        let now_source = if let Some(known) = known {
            if let (PinSource::Paired, Some(lock)) = (source, pin.lock) {
                known.lock = Some(lock);
            }
            let keeps = counts || known.source.is_recovery() && source.is_recovery();
            known.source = if keeps { stronger(known.source, source) } else { source };
            known.source
        } else {
            self.list.push(pin);
            source
        };
        if let PinSource::Recovered { by, .. } = now_source
            && now_source == source
        {
            self.spend(by, fingerprint, since);
        }
    }

    /// The code is used, and the device that made it is lost: it must not be able to revoke the one in its place.
    fn spend(&mut self, code: Fingerprint, on: Fingerprint, at: Timestamp) {
        let mut lost = None;
        for pin in self.list.iter_mut().filter(|pin| pin.fingerprint == code) {
            if let PinSource::Recovery { by, spent_on, .. } = &mut pin.source {
                *spent_on = Some(on);
                lost = Some(*by).filter(|by| *by != on);
            }
        }
        for pin in self.list.iter_mut().filter(|pin| Some(pin.fingerprint) == lost) {
            pin.revoked_at.get_or_insert(at);
        }
    }

    pub(super) fn check_keys(&self, party: &Party, bundle: &KeyBundle) -> Result<(), PinError> {
        let fingerprint = Fingerprint::of(bundle);
        for known in &self.list {
            if known.fingerprint == fingerprint {
                if known.revoked_at.is_some() {
                    return Err(PinError::Revoked);
                }
                if known.party != *party {
                    return Err(PinError::OtherParty);
                }
            } else if known.bundle.signing == bundle.signing || known.bundle.agreement == bundle.agreement {
                return Err(PinError::SharesAKey);
            }
        }
        Ok(())
    }
}

/// The stronger of two reasons: a pairing, then a recovery code, then the longer time. Of a code only the time changes: it
/// stays that of the device that made it, and spent if it is.
fn stronger(one: PinSource, other: PinSource) -> PinSource {
    let rank = |source: PinSource| match source {
        PinSource::Paired => 3,
        PinSource::Recovered { .. } => 2,
        PinSource::Vouched { .. } => 1,
        PinSource::Recovery { .. } => 0,
    };
    let longer = if (rank(other), other.until()) > (rank(one), one.until()) { other } else { one };
    match (one, longer) {
        (PinSource::Recovery { by, spent_on, .. }, PinSource::Recovery { until, .. }) => {
            PinSource::Recovery { by, until, spent_on }
        }
        _ => longer,
    }
}
