//! What an enforcer did with a decision: signed by it, sealed to the approver who decided, and sent as a snapshot in a
//! session of its own, so that nothing takes its place (docs/receipts.md).

use countersign_wire::{
    RawObject, canonical,
    id::{EnforcerId, RequestId, SessionId},
    keys::VerifyingKey,
    session::SnapshotType,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    checks::{self, Check, ensure},
    ends::approver::Approver,
    exchange::{reply::SentDecision, seal::Recipient, taken::Taken},
    gateway::http::CallError,
    identity::{
        keys::DeviceKeys,
        profile::{Party, Pins},
    },
    json,
    reports::session::{
        OpenedSnapshot, SessionError, SnapshotDraft, SnapshotError, named_session, seal_snapshot,
    },
};

/// The id of the only snapshot in the session of a receipt.
const SNAPSHOT_ID: &str = "receipt";

/// The namespace of the sessions of receipts: the UUID of version 5 of the name `countersign receipt v1` in the namespace
/// for URLs.
const NAMESPACE: [u8; 16] =
    [0x27, 0x3a, 0x0f, 0x09, 0x8e, 0x0d, 0x50, 0x6d, 0xa9, 0xef, 0x1d, 0x4c, 0xb5, 0x78, 0x7b, 0xdc];

/// What became of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "outcome", rename_all = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// The decision was obeyed: what was approved was done, or what was rejected was not done.
    #[serde(rename_all = "camelCase")]
    Applied {
        /// The exit status of a command that was executed; absent if there was none, or it was ended by a signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_status: Option<i32>,
    },
    /// It was approved, and the enforcer did not do it all the same; or it was changed, and it does not ask for that.
    Refused {
        /// Why, for people.
        reason: String,
    },
    /// What would have been done was not any more what was shown, so it was not done.
    Drifted,
    /// The decision came after its time, so it was not done.
    TooLate,
}

/// What an enforcer says that it did, with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    v: u8,
    /// The request that was decided.
    pub request_id: String,
    /// The number of the use, from 1.
    #[serde(rename = "use")]
    pub number: u64,
    /// The hash of the canonical decision.
    pub decision_hash: String,
    /// The nonce of the decision.
    pub decision_nonce: String,
    /// What was done, or would have been: see docs/grants.md.
    pub effect_hash: String,
    /// Who did it.
    pub enforcer_id: String,
    /// When, by the enforcer's clock, in RFC 3339.
    pub at: String,
    /// What became of the decision.
    pub outcome: Outcome,
    signature: String,
}

json::objects!(Outcome, Receipt);

/// Why a receipt is not accepted, or not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// The gateway refused, or can't be reached.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The snapshot that it is in does not open.
    #[error("the receipt does not open: {0}")]
    Snapshot(#[from] SnapshotError),
    /// It is not of this format, or of another version of it.
    #[error("the receipt is not in a format that is known here")]
    Malformed,
    /// It is not of the enforcer that asked.
    #[error("the receipt is of another machine than asked")]
    OtherEnforcer,
    /// Who claims to have signed it did not, or it was changed.
    #[error("the signature of the receipt does not verify")]
    Signature,
    /// It is about another request.
    #[error("the receipt is about another request")]
    OtherRequest,
    /// It is about another use of the decision.
    #[error("the receipt is about another use of the decision")]
    OtherUse,
    /// It is about another decision.
    #[error("the receipt is about another decision")]
    OtherDecision,
}

/// A receipt beside what it has to agree with.
struct Received<'a> {
    receipt: Receipt,
    snapshot: &'a OpenedSnapshot,
    sent: &'a SentDecision,
    number: u64,
}

impl<'a> Received<'a> {
    const CHECKS: [Check<Self, ReceiptError>; 5] = [
        ("enforcer", |it| {
            let is_own = *it.snapshot.sent_by.party() == Party::Enforcer(it.sent.enforcer.clone())
                && it.receipt.enforcer_id == it.sent.enforcer.as_str();
            ensure(is_own, ReceiptError::OtherEnforcer)
        }),
        ("signature", |it| {
            let key = &it.snapshot.sent_by.bundle().signing;
            ensure(it.receipt.is_signed_by(key), ReceiptError::Signature)
        }),
        ("request", |it| {
            ensure(it.receipt.request_id == it.sent.request_id.as_str(), ReceiptError::OtherRequest)
        }),
        ("use", |it| ensure(it.receipt.number == it.number, ReceiptError::OtherUse)),
        ("decision", |it| {
            let is_own = it.receipt.decision_hash == it.sent.hash.to_string()
                && it.receipt.decision_nonce == it.sent.nonce;
            ensure(is_own, ReceiptError::OtherDecision)
        }),
    ];

    fn read(snapshot: &'a OpenedSnapshot, sent: &'a SentDecision, number: u64) -> Result<Self, ReceiptError> {
        let receipt = serde_json::from_str(&snapshot.payload).map_err(|_| ReceiptError::Malformed)?;
        Ok(Self { receipt, snapshot, sent, number })
    }
}

/// The session that has the receipt of one use: a UUID of version 5 (RFC 9562), so that both ends know it.
pub fn receipt_session(request_id: &RequestId, number: u64) -> SessionId {
    named_session(NAMESPACE, &format!("{}/{number}", request_id.as_str()))
}

impl Receipt {
    /// Signs what was done with a decision.
    pub(crate) fn sign(
        taken: &Taken,
        outcome: Outcome,
        enforcer: &EnforcerId,
        keys: &DeviceKeys,
        now: Timestamp,
    ) -> Result<Self, ReceiptError> {
        let mut receipt = Self {
            v: 1,
            request_id: taken.request_id.as_str().to_owned(),
            number: taken.number,
            decision_hash: taken.decision.hash.to_string(),
            decision_nonce: taken.decision.nonce.clone(),
            effect_hash: taken.effect.to_string(),
            enforcer_id: enforcer.as_str().to_owned(),
            at: now.to_string(),
            outcome,
            signature: String::new(),
        };
        receipt.signature = keys.signing_key().sign(&receipt.signed_bytes()?);
        Ok(receipt)
    }

    /// What the signature covers: a prefix that no other signature of ours has, and the canonical receipt without its
    /// signature.
    fn signed_bytes(&self) -> Result<Vec<u8>, ReceiptError> {
        let text = serde_json::to_vec(self).map_err(|_| ReceiptError::Malformed)?;
        let object = RawObject::parse(&text).map_err(|_| ReceiptError::Malformed)?;
        let form = canonical::form_without(object, "signature").map_err(|_| ReceiptError::Malformed)?;
        Ok([b"countersign receipt v1\0", form.as_slice()].concat())
    }

    /// Whether this key has signed it. Whose key it is, and whether the receipt is about the right decision, is not checked.
    pub fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        self.v == 1 && self.signed_bytes().is_ok_and(|bytes| key.verify(&bytes, &self.signature).is_ok())
    }

    /// The event that sends it to these devices, as JSON.
    pub(crate) fn to_event(
        &self,
        taken: &Taken,
        enforcer: &EnforcerId,
        keys: &DeviceKeys,
        recipients: &[Recipient<'_>],
        now: Timestamp,
    ) -> Result<String, SessionError> {
        let Ok(payload) = serde_json::to_string(self) else { unreachable!("texts can be written as JSON") };
        let draft = SnapshotDraft {
            session_id: &receipt_session(&taken.request_id, taken.number),
            snapshot_id: SNAPSHOT_ID,
            snapshot_type: SnapshotType::Summary,
            payload: &payload,
        };
        seal_snapshot(draft, enforcer, keys, recipients, now)
    }

    /// The receipt in a snapshot that was opened, checked in this order: shape, enforcer, signature, request, use, decision.
    pub fn open(snapshot: &OpenedSnapshot, sent: &SentDecision, number: u64) -> Result<Self, ReceiptError> {
        let received = Received::read(snapshot, sent, number)?;
        checks::all(&Received::CHECKS, &received)?;
        Ok(received.receipt)
    }
}

impl Approver {
    /// The receipt of one use of a decision that this device has sent; `None` if the gateway has none yet.
    pub async fn receipt(
        &self,
        sent: &SentDecision,
        number: u64,
        pins: &Pins,
    ) -> Result<Option<Receipt>, ReceiptError> {
        let session = match self.session(&receipt_session(&sent.request_id, number)).await {
            Err(CallError::Refused { status: 404, .. }) => return Ok(None),
            session => session?,
        };
        let Some(event) = session.snapshots.get(SnapshotType::Summary.as_str()) else { return Ok(None) };
        let now = self.clock.now();
        let snapshot = OpenedSnapshot::open(event, self.id.as_str(), &self.keys, pins, now)?;
        Receipt::open(&snapshot, sent, number).map(Some)
    }
}

#[cfg(test)]
mod tests;
