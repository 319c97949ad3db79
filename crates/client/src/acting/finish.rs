//! What follows an answer: a receipt for whoever decided, a bundle for whoever asks later.

use std::time::Duration;

use countersign_wire::{
    base64url,
    decision::{DecisionOutcome, Scope},
    id::RequestId,
};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    ends::enforcer::Enforcer,
    exchange::{
        seal::Recipient,
        taken::{FINISHED, Settled, Taken, number_of, use_key},
    },
    gateway::http::{Call, CallError},
    identity::profile::{Pin, Pins},
    journal::{Change, Journal, JournalError, Kind, Record, off_thread},
    reports::{
        bundle::{Bundle, BundleError},
        receipt::{Outcome, Receipt, ReceiptError},
        session::SessionError,
    },
};

/// For how long a receipt that can't be sent is tried again.
pub(super) const RECEIPT_TIME: Duration = Duration::from_hours(7 * 24);

/// How long sending a receipt may take: at first, when somebody waits for the end, and later.
const CALL_TIME: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));

/// Why there is no receipt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// It can't be signed.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// It can't be sealed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// It can't be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A bundle in the journal can't be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// A use of a decision that is over.
#[derive(Debug)]
pub struct Finished {
    /// What the enforcer has signed.
    pub receipt: Receipt,
    /// Whether the gateway has it. If not, [`Enforcer::send_receipts`] sends it later.
    pub is_sent: bool,
}

impl Enforcer {
    /// Says what became of a decision: signs a receipt, keeps the exchange as a bundle, and sends the receipt to every
    /// paired device of whoever decided. If it can't be sent now, it is kept and sent later.
    pub async fn finish(&self, taken: Taken, outcome: Outcome, pins: &Pins) -> Result<Finished, FinishError> {
        let now = self.clock.now();
        let receipt = Receipt::sign(&taken, outcome.clone(), &self.id, &self.keys, now)?;
        let approver = taken.approver();
        let pinned: Vec<&Pin> = pins.active(&approver, now).collect();
        let recipients: Vec<Recipient<'_>> =
            pinned.iter().map(|pin| Recipient { id: pin.party().id(), bundle: pin.bundle() }).collect();
        // Whoever decided may have been revoked since: then nobody is there who could read it.
        let event = match recipients.is_empty() {
            true => None,
            false => Some(receipt.to_event(&taken, &self.id, &self.keys, &recipients, now)?),
        };
        let remembered = self.remember(&taken, &outcome, &recipients, now).await;
        let (remembered, share) = remembered.unwrap_or_else(|error| {
            tracing::warn!(%error, "an answer is not remembered for other devices");
            (Vec::new(), None)
        });
        let person = taken.decision.approver.clone();
        let bundle = Bundle::of(&taken, &taken.decision.words, self.id.as_str(), &self.keys, receipt.clone())
            .to_json();
        let key = use_key(&taken.request_id, taken.number);
        let has_event = event.is_some();
        let pending = event.map(|event| Record {
            kind: Kind::Receipt,
            key: key.clone(),
            value: Zeroizing::new(event),
            keep_until: now.plus(RECEIPT_TIME),
        });
        let use_key = key.clone();
        off_thread(&self.journal, move |journal| {
            let name =
                format!("{}-{}", base64url::encode(taken.request_id.as_str().as_bytes()), taken.number);
            let kept = journal.keep_bundle(&name, &bundle, now);
            let mut changes: Vec<Change> = pending.into_iter().map(Change::Put).collect();
            let keep_until = taken.decision.keep_until(now);
            if let Some(used) = journal.get(Kind::Use, &use_key)? {
                let value = Zeroizing::new(FINISHED.to_owned());
                changes.push(Change::Put(Record { value, ..used }));
            }
            let settled = journal.get(Kind::Settled, taken.request_id.as_str())?;
            if !is_grant(&taken) {
                // The artifact is in the bundle now; that the request was settled is remembered.
                let keep_until = settled.map_or(keep_until, |settled| settled.keep_until);
                changes.push(Change::Put(Settled::Finished.record(&taken.request_id, keep_until)));
            }
            changes.extend(remembered);
            let _done = journal.commit(&changes, now)?;
            // Without room for the bundle the receipt is still sent.
            kept
        })
        .await?;
        let is_sent = has_event && self.send_receipt(&key).await?;
        if let Some(share) = share.filter(|_| is_sent)
            && let Err(error) = self.share(share, &person, &recipients).await
        {
            tracing::warn!(%error, "other devices are not told of an answer");
        }
        Ok(Finished { receipt, is_sent })
    }

    /// Sends the receipts that could not be sent before. Returns how many still wait.
    pub async fn send_receipts(&self) -> Result<usize, FinishError> {
        let pending = off_thread(&self.journal, |journal| journal.list(Kind::Receipt)).await?;
        for (position, record) in pending.iter().enumerate() {
            // What stops one stops the others too: the gateway can't be reached, or does not know this enforcer.
            if !self.send_receipt_within(&record.key, CALL_TIME.1).await? {
                return Ok(pending.len() - position);
            }
        }
        Ok(0)
    }

    /// Sends one receipt while somebody waits for the end; false if it must be tried again.
    pub(super) async fn send_receipt(&self, key: &str) -> Result<bool, FinishError> {
        self.send_receipt_within(key, CALL_TIME.0).await
    }

    /// As [`Enforcer::send_receipt`], for so long. Sending the same event twice is harmless.
    async fn send_receipt_within(&self, key: &str, time: Duration) -> Result<bool, FinishError> {
        let wanted = key.to_owned();
        let record = off_thread(&self.journal, move |journal| journal.get(Kind::Receipt, &wanted)).await?;
        let Some(record) = record else { return Ok(true) };
        let call = Call::post("/v1/session/event", (*record.value).clone());
        match self.http.send_until(&call, Instant::now() + time).await {
            Err(error) if !is_final(&error) => {
                tracing::debug!(%error, "a receipt will be sent later");
                return Ok(false);
            }
            Err(error) => tracing::warn!(%error, "a receipt was not accepted"),
            Ok(_) => {}
        }
        let (key, now) = (record.key.clone(), self.clock.now());
        let change = Change::Remove(Kind::Receipt, key);
        off_thread(&self.journal, move |journal| journal.commit(&[change], now).map(|_| ())).await?;
        Ok(true)
    }

    /// The uses that were recorded and have no receipt: their process is still at it, or has ended without one. Whether it
    /// has acted is not known, so nobody else does.
    pub async fn unfinished(&self) -> Result<Vec<(RequestId, u64)>, FinishError> {
        let uses = off_thread(&self.journal, |journal| journal.list(Kind::Use)).await?;
        let unfinished = uses.iter().filter(|record| *record.value != FINISHED).filter_map(|record| {
            let (id, _) = record.key.rsplit_once('/')?;
            Some((RequestId::new(id).ok()?, number_of(&record.key)?))
        });
        Ok(unfinished.collect())
    }

    /// The names of the finished exchanges that are kept, oldest first.
    pub async fn bundles(&self) -> Result<Vec<String>, FinishError> {
        Ok(off_thread(&self.journal, Journal::bundles).await?)
    }

    /// A finished exchange, by a name that [`Enforcer::bundles`] returned.
    pub async fn bundle(&self, name: &str) -> Result<Option<Bundle>, FinishError> {
        let name = name.to_owned();
        let text = off_thread(&self.journal, move |journal| journal.bundle(&name)).await?;
        Ok(text.map(|text| Bundle::read(&text)).transpose()?)
    }
}

/// Whether the gateway will never take this event, for example because it has another one.
fn is_final(error: &CallError) -> bool {
    matches!(error, CallError::Refused { status: 400 | 404 | 409 | 413 | 422, retryable: false, .. })
}

fn is_grant(taken: &Taken) -> bool {
    taken.decision.outcome == DecisionOutcome::Approve && taken.decision.scope != Scope::Once
}
