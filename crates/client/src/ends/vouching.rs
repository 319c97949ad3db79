//! What a paired device says of others, and how a device that was vouched for presents itself at the gateway.

use countersign_wire::{
    Error, FromMembers, Members,
    id::{ApproverId, EnforcerId},
    keys::KeyBundle,
    lock::{Assertion, LockKey},
    statement::{Claim, Issue, Statement, StatementError},
    timestamp::Timestamp,
};
use serde_json::json;

use crate::{
    ends::approver::Approver,
    gateway::http::{Call, CallError},
    identity::keys::{DeviceKeys, Fingerprint},
    random::{self, NoRandomness},
};

/// Who is vouched for.
#[derive(Debug, Clone, Copy)]
pub struct Newcomer<'a> {
    /// Whose device it is: one's own id for a further device, or a teammate's for their first.
    pub approver_id: &'a ApproverId,
    /// Its keys, compared by people over another channel than the gateway.
    pub bundle: &'a KeyBundle,
    /// Its name for people.
    pub label: &'a str,
    /// From then on it counts for nothing; at most a year from now.
    pub until: Timestamp,
    /// The lock of the device, from the same channel as its keys; `None` if it has none.
    pub lock: Option<&'a LockKey>,
}

/// Why nothing was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VouchError {
    /// The statement can't be written.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// Without randomness there is no id for it.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// A voucher that the gateway has accepted. Whether the device counts is for the enforcer to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedVoucher {
    /// Names the pair at the gateway; `None` for a recovery code, which is no device.
    pub pair_id: Option<String>,
    /// The enforcer that it is for.
    pub enforcer_id: EnforcerId,
    /// Whose device it is.
    pub approver_id: ApproverId,
    /// The time until which the gateway accepts its decisions.
    pub until: Timestamp,
}

impl FromMembers<'_> for AcceptedVoucher {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            pair_id: members.optional("pairId")?,
            enforcer_id: members.required("enforcerId")?,
            approver_id: members.required("approverId")?,
            until: members.required("vouchedUntil")?,
        })
    }
}

impl Approver {
    /// Vouches for a further device of one's own or for a teammate's first one, at one enforcer. Only what a paired device
    /// says counts there.
    pub fn vouch_for(&self, enforcer: &EnforcerId, newcomer: Newcomer<'_>) -> Result<Statement, VouchError> {
        self.vouch_for_with(enforcer, newcomer, |_| None)
    }

    /// As [`Approver::vouch_for`], with what the lock of this device signs for exactly this voucher: it is asked with the
    /// challenge. An enforcer that knows the lock takes no voucher without it.
    pub fn vouch_for_with(
        &self,
        enforcer: &EnforcerId,
        newcomer: Newcomer<'_>,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<Statement, VouchError> {
        self.say_with(&self.keys, enforcer, vouch(newcomer, false), lock)
    }

    /// Vouches for the keys of one's own recovery code, which vouch once and do not decide. An enforcer takes what they sign
    /// from a day later on.
    pub fn vouch_for_recovery(
        &self,
        enforcer: &EnforcerId,
        code: &KeyBundle,
        until: Timestamp,
    ) -> Result<Statement, VouchError> {
        self.vouch_for_recovery_with(enforcer, code, until, |_| None)
    }

    /// As [`Approver::vouch_for_recovery`], with what the lock of this device signs for exactly this voucher.
    pub fn vouch_for_recovery_with(
        &self,
        enforcer: &EnforcerId,
        code: &KeyBundle,
        until: Timestamp,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<Statement, VouchError> {
        let newcomer = Newcomer { approver_id: &self.id, bundle: code, label: "", until, lock: None };
        self.say_with(&self.keys, enforcer, vouch(newcomer, true), lock)
    }

    /// Vouches for this device with the keys of one's recovery code, in place of a device that is lost.
    pub fn recover(
        &self,
        enforcer: &EnforcerId,
        code: &DeviceKeys,
        label: &str,
        until: Timestamp,
    ) -> Result<Statement, VouchError> {
        let bundle = self.keys.bundle();
        let newcomer = Newcomer { approver_id: &self.id, bundle, label, until, lock: None };
        // A code on paper has no lock.
        self.say_with(code, enforcer, vouch(newcomer, false), |_| None)
    }

    /// Revokes a device: a further one of one's own, one that this device vouched for, or this one itself.
    pub fn revoke_statement(
        &self,
        enforcer: &EnforcerId,
        device: Fingerprint,
    ) -> Result<Statement, VouchError> {
        self.say_with(&self.keys, enforcer, Claim::revoke(device), |_| None)
    }

    fn say_with(
        &self,
        keys: &DeviceKeys,
        enforcer: &EnforcerId,
        claim: Claim,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<Statement, VouchError> {
        let id = random::id()?;
        let (by, at) = (self.id.as_str(), self.clock.now());
        let issue = Issue { enforcer_id: enforcer.as_str(), id: &id, by, at };
        Ok(keys.sign_statement_with(issue, claim, lock)?)
    }

    /// Presents a voucher for a device of one's own, so that the gateway accepts its decisions and delivers requests to it.
    /// The same again is harmless.
    pub async fn present(&self, voucher: &Statement) -> Result<AcceptedVoucher, CallError> {
        let body = json!({ "voucher": voucher }).to_string();
        self.http.send(&Call::post("/platform/v1/pairs", body)).await?.object()
    }
}

fn vouch(newcomer: Newcomer<'_>, recovery: bool) -> Claim {
    let Newcomer { approver_id, bundle, label, until, lock } = newcomer;
    Claim::vouch(approver_id.as_str(), bundle, label, until, recovery).with_lock(lock)
}
