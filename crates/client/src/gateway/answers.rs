//! What any gateway of the specification may answer. Where the specification shows no shape, what our own gateway says besides
//! is not needed: a member that it does not promise may be absent, and an answer may be in an envelope or not.
//!
//! Nothing in here is believed. Keys are proven by the pairing, snapshots and decisions by their seals and signatures; the rest
//! is shown as the gateway's word.

use countersign_wire::{
    Error, FromJson, FromMembers, Label, Members, RawObject,
    envelope::Envelope,
    id::{ApproverId, PairingNonce},
    keys::PublicKey,
    lock::{self, RelayedLock},
    prompt::{AckStatus, PromptAck},
    timestamp::Timestamp,
};
use serde_json::value::RawValue;

use crate::{
    gateway::http::{Answer, CallError},
    identity::pairing::code::GivenCode,
};

/// A member that is not promised. One that is null, or not of its kind, counts as absent.
pub(crate) fn loose<'a, T: FromJson<'a>>(members: &mut Members<'a>, name: &'static str) -> Option<T> {
    let value: &'a RawValue = members.optional(name).ok()??;
    T::from_json(value).ok()
}

impl Answer {
    /// The object of an answer whose framing is not specified: the body of an envelope, or the object itself.
    pub(crate) fn content(&self) -> Result<RawObject<'_>, CallError> {
        match self.envelope() {
            Ok(envelope) => Ok(envelope.body),
            Err(_) => RawObject::parse(&self.body).map_err(|_| CallError::NotUnderstood),
        }
    }
}

/// The body of an `inbox.page`.
pub(crate) struct Page<'a> {
    pub(crate) items: Vec<Envelope<'a>>,
    /// The cursor of the next page; `None` on the last one, where it may also be absent or null.
    pub(crate) next_cursor: Option<String>,
}

impl<'a> FromMembers<'a> for Page<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        // A cursor of another kind is an error and no end: what is behind it would never be seen.
        let cursor: Option<&'a RawValue> = members.optional("nextCursor")?;
        let next_cursor = match cursor.filter(|cursor| cursor.get() != "null") {
            Some(cursor) => Some(String::from_json(cursor)?).filter(|cursor| !cursor.is_empty()),
            None => None,
        };
        Ok(Self { items: members.required("items")?, next_cursor })
    }
}

/// A pairing that was started.
pub(crate) struct Started {
    pub(crate) code: GivenCode,
    pub(crate) nonce: PairingNonce,
    pub(crate) expires_at: Timestamp,
}

impl FromMembers<'_> for Started {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            code: members.required("code")?,
            nonce: members.required("nonce")?,
            expires_at: members.required("expiresAt")?,
        })
    }
}

/// Where a pairing stands.
pub(crate) enum PairingProgress {
    /// Nobody has completed it.
    Waiting,
    Completed {
        approver_id: ApproverId,
        public_key: Box<PublicKey>,
        /// What the approver's device calls itself, in the gateway's word; other gateways do not relay it.
        device_label: Option<Label>,
        /// The lock of the device, relayed; the pairing proves it.
        lock: Option<RelayedLock>,
    },
    /// Nobody can complete it any more.
    Expired,
}

impl FromMembers<'_> for PairingProgress {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let status: String = members.required("status")?;
        match status.as_str() {
            "completed" => Ok(Self::Completed {
                approver_id: members.required("approverId")?,
                public_key: Box::new(members.required("publicKey")?),
                device_label: loose(members, "org.countersign.deviceLabel"),
                lock: members.optional(lock::EXTENSION)?,
            }),
            "expired" => Ok(Self::Expired),
            // Whatever the words for it are: the time of the code is known.
            _ => Ok(Self::Waiting),
        }
    }
}

/// What became of a prompt that the gateway has accepted. An answer that can't be read, or is about another prompt, says
/// nothing; but the prompt was accepted, and whoever sent it again would send it twice.
pub(crate) fn prompt_status(answer: &Answer, is_own: impl FnOnce(&PromptAck<'_>) -> bool) -> AckStatus {
    let read = || {
        let ack = answer.content().ok()?.view::<PromptAck<'_>>().ok()?;
        is_own(&ack).then_some(ack.status)
    };
    read().unwrap_or(AckStatus::Queued)
}
