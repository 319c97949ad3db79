//! A decision that was taken: recorded as used, so that it is acted on at most once for each use.

use std::time::Duration;

use countersign_wire::{
    decision::DecisionOutcome, hash::Sha256Hex, id::RequestId, keys::KeyBundle, timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    exchange::{reply::VerifiedDecision, request::Request},
    identity::{
        keys::Fingerprint,
        profile::{Party, Pin, PinSource, SourceKind},
    },
    journal::{Change, JournalError, Kind, Record, nonce_record},
    json,
};

/// For how long after its expiry a request is remembered.
pub(crate) const OPEN_TIME: Duration = Duration::from_hours(24);

/// The value of a use that has a receipt.
pub(crate) const FINISHED: &str = "finished";

/// Whose keys have signed a decision, and why they were trusted then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Signer {
    /// The approver.
    pub approver_id: String,
    /// The public keys of the device, as `v1.<Ed25519>.<X25519>`.
    pub keys: String,
    /// Why the keys were trusted: `paired`, `vouched` or `recovered`.
    pub source: String,
    /// The fingerprint of the device or recovery code that signed for it.
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    pub vouched_by: Option<String>,
    /// When the keys were pinned.
    pub since: String,
    /// The lock of the device that was pinned with them; absent if there is none.
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
}

json::objects!(Signer);

impl Signer {
    pub(crate) fn of(pin: &Pin) -> Self {
        let source = match pin.source() {
            PinSource::Paired => SourceKind::Paired,
            PinSource::Vouched { .. } => SourceKind::Vouched,
            PinSource::Recovery { .. } => SourceKind::Recovery,
            PinSource::Recovered { .. } => SourceKind::Recovered,
        };
        Self {
            approver_id: pin.party().id().to_owned(),
            keys: pin.bundle().to_string(),
            source: source.as_str().to_owned(),
            vouched_by: pin.source().by().map(|by| by.to_string()),
            since: pin.since().to_string(),
            lock: pin.lock().map(ToString::to_string),
        }
    }

    /// The keys and their fingerprint; `None` if the text is no bundle.
    pub fn bundle(&self) -> Option<(KeyBundle, Fingerprint)> {
        let bundle: KeyBundle = self.keys.parse().ok()?;
        let fingerprint = Fingerprint::of(&bundle);
        Some((bundle, fingerprint))
    }
}

/// How a request ended, as the journal has it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "camelCase")]
pub(crate) enum Settled {
    /// It was taken back, or answered at the desk.
    Withdrawn,
    /// It expired, or was taken back for a device that could not open it, and the same was asked again under another id.
    Superseded {
        /// The id of the request that asks for the same.
        by: String,
    },
    /// A decision was taken, and what was done with it is in its bundle.
    Finished,
    /// A decision was taken.
    Decided(Box<Decided>),
}

/// A decision with everything that it is checked against, also later: a grant is checked again at each use.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decided {
    pub(crate) artifact: Zeroizing<String>,
    /// The text as it was received.
    pub(crate) decision: String,
    pub(crate) signer: Signer,
    pub(crate) taken_at: String,
}

impl Settled {
    pub(crate) fn read(record: &Record) -> Result<Self, JournalError> {
        serde_json::from_str(&record.value).map_err(|_| JournalError::Record(record.key.clone()))
    }

    pub(crate) fn record(&self, request_id: &RequestId, keep_until: Timestamp) -> Record {
        let Ok(value) = serde_json::to_string(self) else { unreachable!("texts can be written as JSON") };
        let value = Zeroizing::new(value);
        Record { kind: Kind::Settled, key: request_id.as_str().to_owned(), value, keep_until }
    }
}

/// The key of a use. Keys of one decision sort by the number.
pub(crate) fn use_key(request_id: &RequestId, number: u64) -> String {
    format!("{}/{number:010}", request_id.as_str())
}

/// The number in the key of a use.
pub(crate) fn number_of(key: &str) -> Option<u64> {
    key.rsplit_once('/')?.1.parse().ok()
}

/// The record of one use.
pub(crate) fn use_record(
    request_id: &RequestId,
    number: u64,
    effect: Sha256Hex,
    keep_until: Timestamp,
) -> Record {
    let value = Zeroizing::new(effect.to_string());
    Record { kind: Kind::Use, key: use_key(request_id, number), value, keep_until }
}

/// One use of a decision. It is in the journal before this exists, so nobody else has the same one.
#[derive(Clone)]
pub struct Taken {
    /// The request that was decided.
    pub request_id: RequestId,
    /// What was decided, and by whom.
    pub decision: VerifiedDecision,
    /// The number of the use, from 1. It is 1 if the decision was asked for, and more if a grant covers it.
    pub number: u64,
    /// The hash of what may be done now (docs/grants.md).
    pub effect: Sha256Hex,
    /// What may be done now, if a pattern covers it and it is not what was shown; a JSON object.
    pub other_payload: Option<Zeroizing<String>>,
    pub(crate) decided: Decided,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Taken({} {} use {})", self.request_id, self.decision.outcome.as_str(), self.number)
    }
}

impl Taken {
    /// What is recorded, all or nothing, when a decision about a request is taken: its nonce, that the request is settled,
    /// and its first use.
    pub(crate) fn changes(&self, now: Timestamp, request: &Request) -> Vec<Change> {
        let (id, keep_until) = (&self.request_id, self.decision.keep_until(now));
        // Another decision about the same request could come as long as the gateway has it.
        let settled_until = keep_until.max(request.expires_at.plus(OPEN_TIME));
        let settled = Settled::Decided(Box::new(self.decided.clone())).record(id, settled_until);
        let mut changes = vec![
            Change::Add(nonce_record(&self.decision.nonce, id.as_str(), keep_until)),
            Change::Add(settled),
            Change::Remove(Kind::Open, id.as_str().to_owned()),
        ];
        if self.decision.outcome == DecisionOutcome::Approve {
            changes.push(Change::Add(use_record(id, self.number, self.effect, settled_until)));
        }
        changes
    }

    /// The party that decided.
    pub(crate) fn approver(&self) -> Party {
        Party::Approver(self.decision.approver.clone())
    }
}
