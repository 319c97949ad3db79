//! What an enforcer makes of a statement: a device is pinned or revoked, or the statement is refused with the reason.

use countersign_wire::{
    statement::{Said, Statement, StatementError, Vouch},
    timestamp::Timestamp,
};

use super::{Pin, PinSource, Pins, Taken, insert::Check};
use crate::{
    keys::Fingerprint,
    profile::{
        error::{ApplyError, PinError},
        party::Party,
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
    /// it. Whether the device may say this is for [`Pins::apply`].
    pub fn verify_statement<'a>(
        &self,
        statement: &'a Statement,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<Said<'a>, StatementError> {
        self.verify_except(statement, enforcer_id, now, None)
    }

    fn verify_except<'a>(
        &self,
        statement: &'a Statement,
        enforcer_id: &str,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<Said<'a>, StatementError> {
        let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
        let is_named = matches!(&self.party, Party::Approver(approver) if approver.as_str() == statement.by())
            && statement.by_fingerprint() == Some(self.fingerprint);
        if fails(Check::Signer, !is_named) {
            return Err(StatementError::Signature);
        }
        match statement.check_signature(&self.bundle.signing) {
            Err(error) if fails(Check::Signature, true) => return Err(error),
            _ => {}
        }
        if fails(Check::Enforcer, statement.enforcer_id() != enforcer_id) {
            return Err(StatementError::OtherEnforcer);
        }
        let said = statement.claim().read()?;
        match statement.check_time(now) {
            Err(error) if fails(Check::Time, true) => Err(error),
            _ => Ok(said),
        }
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
        self.apply_except(statement, enforcer_id, now, None)
    }

    pub(super) fn apply_except(
        &mut self,
        statement: &Statement,
        enforcer_id: &str,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<Applied, ApplyError> {
        let digest = statement.digest()?;
        if self.taken.iter().any(|taken| taken.statement == digest) {
            return Ok(Applied::AlreadyKnown);
        }
        let signer =
            statement.by_fingerprint().and_then(|by| self.get(by)).ok_or(ApplyError::UnknownSigner)?;
        match signer.verify_except(statement, enforcer_id, now, except)? {
            Said::Revoke(fingerprint) => {
                let signer = signer.fingerprint;
                self.revoke_by(signer, fingerprint, now, except)
            }
            Said::Vouch(vouch) => {
                let (taken, signer) = (Taken { statement: digest, until: vouch.until }, signer.clone());
                let applied = self.vouch_by(&signer, &vouch, now, except)?;
                if applied != Applied::AlreadyKnown {
                    self.remember(taken, now);
                }
                Ok(applied)
            }
        }
    }

    fn vouch_by(
        &mut self,
        signer: &Pin,
        vouch: &Vouch<'_>,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<Applied, ApplyError> {
        let (by, until) = (signer.fingerprint, vouch.until);
        let source = match signer.source {
            _ if vouch.recovery => PinSource::Recovery { by, until, spent_on: None },
            PinSource::Recovery { .. } => PinSource::Recovered { by, until },
            _ => PinSource::Vouched { by, until },
        };
        let approver = vouch.approver_id.parse().map_err(|_| StatementError::Malformed)?;
        let pin = Pin::new(Party::Approver(approver), &vouch.bundle, source, now);
        let fingerprint = pin.fingerprint;
        let before = self.get(fingerprint).map(Pin::source);
        self.insert_except(pin, except)?;
        Ok(match (signer.source, self.get(fingerprint).map(Pin::source)) {
            (_, after) if before == after => Applied::AlreadyKnown,
            (PinSource::Recovery { by: lost, .. }, _) => Applied::Recovered { device: fingerprint, lost },
            _ => Applied::Vouched(fingerprint),
        })
    }

    /// A device that was paired, or stands in for one, revokes any device of its own party, and any that it vouched for.
    /// Every device, and every recovery code, may revoke itself. Nobody else revokes anything: a code is also there for
    /// the case that a device is in the hands of a thief, whose first act would be to revoke it.
    fn revoke_by(
        &mut self,
        signer: Fingerprint,
        fingerprint: Fingerprint,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<Applied, ApplyError> {
        let target = self.get(fingerprint).ok_or(PinError::Unknown)?;
        if target.revoked_at.is_some() {
            return Ok(Applied::AlreadyKnown);
        }
        let is_responsible = self.get(signer).is_some_and(|signer| {
            signer.party == target.party || target.source.by() == Some(signer.fingerprint)
        });
        let is_device = !target.source.is_recovery();
        let may_revoke =
            signer == fingerprint || is_device && is_responsible && self.counts_as_paired(signer, now);
        if !may_revoke && except != Some(Check::Revoker) {
            return Err(PinError::MayNotRevoke.into());
        }
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
