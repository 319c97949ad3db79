//! Who may be pinned: the rules before a device is added.

use countersign_wire::{keys::KeyBundle, timestamp::Timestamp};

use super::{MAX_VOUCHED, Pin, PinSource, Pins, RECOVERY_WAIT};
use crate::{
    keys::Fingerprint,
    profile::{
        error::PinError,
        party::{Party, Role},
    },
};

/// A check before a device is pinned or revoked. The tests take each out once, to show that nothing else catches what it
/// catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Who signed is pinned, under the name that the statement says.
    Signer,
    Signature,
    Enforcer,
    Time,
    /// The keys are those of no other device, and were not revoked.
    Keys,
    /// Who vouches is a paired device that counts.
    Voucher,
    /// Nobody adds a device to the name of somebody who has one.
    ThirdPerson,
    /// A recovery code is made for, and used for, its own party.
    OwnRecovery,
    /// A recovery code is used once.
    RecoveryOnce,
    /// A recovery code is used a day after it was made.
    RecoveryWait,
    /// The keys of a recovery code are never those of a device.
    RecoveryKeys,
    /// A device vouches for a limited number of others.
    Limit,
    /// Who revokes has the right to.
    Revoker,
}

impl Pins {
    /// Adds a device. A pin that is there already stays, and gets the stronger of both sources.
    pub fn insert(&mut self, pin: Pin) -> Result<(), PinError> {
        self.insert_except(pin, None)
    }

    pub(super) fn insert_except(&mut self, pin: Pin, except: Option<Check>) -> Result<(), PinError> {
        if except != Some(Check::Keys) {
            self.check_keys(&pin.party, &pin.bundle)?;
        }
        self.check_source(&pin, except)?;
        let (fingerprint, source, since) = (pin.fingerprint, pin.source, pin.since);
        // What does not count any more, because its voucher does not, is no reason to prefer it.
        let counts = self.is_active(fingerprint, pin.since);
        let known = self.list.iter_mut().find(|known| known.fingerprint == fingerprint);
        let now_source = if let Some(known) = known {
            let is_code = known.source.is_recovery();
            if except != Some(Check::RecoveryKeys) && is_code != source.is_recovery() {
                return Err(PinError::RecoveryKeys);
            }
            let keeps = counts || is_code && source.is_recovery();
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
        Ok(())
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

    fn check_source(&self, pin: &Pin, except: Option<Check>) -> Result<(), PinError> {
        let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
        let now = pin.since;
        let (Some(by), Some(until)) = (pin.source.by(), pin.source.until()) else { return Ok(()) };
        if until <= now {
            return Err(PinError::VouchEnded);
        }
        let voucher = self.get(by).filter(|_| by != pin.fingerprint).ok_or(PinError::VoucherNotPaired)?;
        let is_own = voucher.party == pin.party;
        if let PinSource::Recovered { .. } = pin.source {
            self.check_recovery(voucher, now, except)?;
        } else if fails(Check::Voucher, !self.counts_as_paired(by, now)) {
            return Err(PinError::VoucherNotPaired);
        }
        let is_vouched = matches!(pin.source, PinSource::Vouched { .. });
        if fails(Check::OwnRecovery, !is_vouched && !is_own) {
            return Err(PinError::OthersRecovery);
        }
        if fails(Check::ThirdPerson, is_vouched && !is_own && !self.is_first_of_teammate(voucher, pin)) {
            return Err(PinError::OthersDevice);
        }
        let others = |known: &&Pin| known.source.by() == Some(by) && known.fingerprint != pin.fingerprint;
        if fails(Check::Limit, self.list.iter().filter(others).count() >= MAX_VOUCHED) {
            return Err(PinError::TooMany);
        }
        Ok(())
    }

    /// A recovery code that is not ended, revoked or spent, and that is no thief's: it was known for a day before it is
    /// used, and before the device that vouched for it was revoked.
    fn check_recovery(&self, code: &Pin, now: Timestamp, except: Option<Check>) -> Result<(), PinError> {
        let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
        let PinSource::Recovery { by, until, spent_on } = code.source else {
            return Err(PinError::VoucherNotPaired);
        };
        if code.revoked_at.is_some() || now >= until {
            return Err(PinError::VoucherNotPaired);
        }
        if fails(Check::RecoveryOnce, spent_on.is_some()) {
            return Err(PinError::RecoverySpent);
        }
        let settled_at = code.since.plus(RECOVERY_WAIT);
        let voucher_revoked_at = self.get(by).and_then(Pin::revoked_at);
        let is_settled = now >= settled_at && voucher_revoked_at.is_none_or(|at| at >= settled_at);
        if fails(Check::RecoveryWait, !is_settled) {
            return Err(PinError::RecoveryTooNew);
        }
        Ok(())
    }

    /// Whether it is a teammate's device, and that person has no other. Whoever ever had a paired device, also one that is
    /// revoked, adds devices alone: otherwise somebody could decide in the name of somebody else.
    fn is_first_of_teammate(&self, voucher: &Pin, pin: &Pin) -> bool {
        let mut others =
            self.list.iter().filter(|known| known.party == pin.party && known.fingerprint != pin.fingerprint);
        voucher.party.role() == Role::Approver
            && pin.party.role() == Role::Approver
            && others.all(|known| {
                matches!(known.source, PinSource::Vouched { .. })
                    && !self.is_active(known.fingerprint, pin.since)
            })
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
