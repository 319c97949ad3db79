//! What an enforcer makes of a statement: a device is pinned or revoked, or the statement is refused with the reason.

use countersign_wire::{
    statement::{Said, Statement, StatementError, Vouch},
    timestamp::Timestamp,
};

use super::{Pin, PinSource, Pins, Taken};
use crate::{
    checks::{self, Check, ensure},
    identity::{
        keys::Fingerprint,
        lock,
        profile::{
            error::{ApplyError, PinError},
            party::Party,
        },
    },
};

/// Statements that are remembered. One that is forgotten before its end does no harm: what it says is in the pins.
pub(super) const MAX_TAKEN: usize = 1_000;

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// This device, or recovery code, is pinned now, or for longer than before.
    Vouched(Fingerprint),
    /// A recovery code has put a device in the place of the one that made the code.
    Recovered {
        /// The device that counts now.
        device: Fingerprint,
        /// The device that does not count any more, and whoever it had vouched for with it.
        lost: Fingerprint,
    },
    /// This device does not count any more.
    Revoked(Fingerprint),
    /// Nothing has changed: it was taken before, or what it says is so already.
    AlreadyKnown,
}

impl Pin {
    /// Verifies a statement of this device for one enforcer: that it names this device and whose it is, and is signed by
    /// it. Whether the device may say this, and has confirmed it where it must, is for [`Pins::apply`].
    pub fn verify_statement<'a>(
        &self,
        statement: &'a Statement,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<Said<'a>, StatementError> {
        let signed = Signed { pin: self, statement, enforcer_id, now };
        checks::all(&Signed::CHECKS, &signed)?;
        statement.claim().read()
    }

    /// The device that this one vouches for.
    pub(super) fn vouch(&self, vouch: &Vouch<'_>, now: Timestamp) -> Result<Self, StatementError> {
        let (by, until) = (self.fingerprint, vouch.until);
        let source = match self.source {
            _ if vouch.recovery => PinSource::Recovery { by, until, spent_on: None },
            PinSource::Recovery { .. } => PinSource::Recovered { by, until },
            _ => PinSource::Vouched { by, until },
        };
        let approver = vouch.approver_id.parse().map_err(|_| StatementError::Malformed)?;
        Ok(Self::new(Party::Approver(approver), &vouch.bundle, source, now).with_lock(vouch.lock.clone()))
    }
}

/// A statement beside the pin that must have signed it.
pub(super) struct Signed<'a> {
    pub(super) pin: &'a Pin,
    pub(super) statement: &'a Statement,
    pub(super) enforcer_id: &'a str,
    pub(super) now: Timestamp,
}

impl Signed<'_> {
    pub(super) const CHECKS: [Check<Self, StatementError>; 4] = [
        ("signer", |it| {
            let by = it.statement.by();
            let is_named = matches!(&it.pin.party, Party::Approver(approver) if approver.as_str() == by)
                && it.statement.by_fingerprint() == Some(it.pin.fingerprint);
            ensure(is_named, StatementError::Signature)
        }),
        ("signature", |it| it.statement.check_signature(&it.pin.bundle.signing)),
        ("enforcer", |it| {
            ensure(it.statement.enforcer_id() == it.enforcer_id, StatementError::OtherEnforcer)
        }),
        ("time", |it| it.statement.check_time(it.now)),
    ];

    /// A device with a lock brings further devices only with it: otherwise its keys alone would bring one whose lock is
    /// another's, or that has none. What an unknown lock says counts for nothing.
    pub(super) const VOUCHING: [Check<Self, ApplyError>; 2] = [
        ("lock", |it| match (it.pin.lock(), it.statement.confirmed()) {
            (Some(lock), Some(assertion)) => {
                let gesture = lock::verify_challenge(lock, assertion, it.statement.challenge()?);
                gesture.map(drop).map_err(ApplyError::Lock)
            }
            _ => Ok(()),
        }),
        ("person", |it| {
            let is_confirmed = it.pin.lock().is_none() || it.statement.confirmed().is_some();
            ensure(is_confirmed, ApplyError::NotConfirmed)
        }),
    ];
}

/// A device that another one revokes.
pub(super) struct Revocation<'a> {
    pub(super) pins: &'a Pins,
    pub(super) signer: &'a Pin,
    pub(super) target: &'a Pin,
    pub(super) now: Timestamp,
}

impl Revocation<'_> {
    pub(super) const CHECKS: [Check<Self, PinError>; 1] =
        [("revoker", |it| ensure(it.is_allowed(), PinError::MayNotRevoke))];

    /// A device that was paired, or stands in for one, revokes any device of its own party, and any that it vouched for.
    /// Every device, and every recovery code, may revoke itself. Nobody else revokes anything: a code is also there for
    /// the case that a device is in the hands of a thief, whose first act would be to revoke it.
    fn is_allowed(&self) -> bool {
        let Self { signer, target, .. } = self;
        let is_responsible = signer.party == target.party || target.source.by() == Some(signer.fingerprint);
        let is_device = !target.source.is_recovery();
        signer.fingerprint == target.fingerprint
            || is_device && is_responsible && self.pins.counts_as_paired(signer.fingerprint, self.now)
    }
}

impl Pins {
    /// Takes a statement for this enforcer. The same again changes nothing. Nothing has changed where there is an error.
    pub fn apply(
        &mut self,
        statement: &Statement,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<Applied, ApplyError> {
        let digest = statement.digest()?;
        if self.taken.iter().any(|taken| taken.statement == digest) {
            return Ok(Applied::AlreadyKnown);
        }
        let signer =
            statement.by_fingerprint().and_then(|by| self.get(by)).ok_or(ApplyError::UnknownSigner)?.clone();
        match signer.verify_statement(statement, enforcer_id, now)? {
            Said::Revoke(fingerprint) => self.revoke_by(&signer, fingerprint, now),
            Said::Vouch(vouch) => {
                checks::all(&Signed::VOUCHING, &Signed { pin: &signer, statement, enforcer_id, now })?;
                let taken = Taken { statement: digest, until: vouch.until };
                let applied = self.vouch_by(&signer, &vouch, now)?;
                if applied != Applied::AlreadyKnown {
                    self.remember(taken, now);
                }
                Ok(applied)
            }
        }
    }

    fn vouch_by(&mut self, signer: &Pin, vouch: &Vouch<'_>, now: Timestamp) -> Result<Applied, ApplyError> {
        let pin = signer.vouch(vouch, now)?;
        let fingerprint = pin.fingerprint;
        let before = self.get(fingerprint).map(Pin::source);
        self.insert(pin)?;
        Ok(match (signer.source, self.get(fingerprint).map(Pin::source)) {
            (_, after) if before == after => Applied::AlreadyKnown,
            (PinSource::Recovery { by: lost, .. }, _) => Applied::Recovered { device: fingerprint, lost },
            _ => Applied::Vouched(fingerprint),
        })
    }

    fn revoke_by(
        &mut self,
        signer: &Pin,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Applied, ApplyError> {
        let target = self.get(fingerprint).ok_or(PinError::Unknown)?;
        if target.revoked_at.is_some() {
            return Ok(Applied::AlreadyKnown);
        }
        checks::all(&Revocation::CHECKS, &Revocation { pins: self, signer, target, now })?;
        self.revoke(fingerprint, now)?;
        Ok(Applied::Revoked(fingerprint))
    }

    fn remember(&mut self, taken: Taken, now: Timestamp) {
        self.taken.retain(|known| now < known.until);
        if self.taken.len() >= MAX_TAKEN {
            self.taken.remove(0);
        }
        self.taken.push(taken);
    }
}
