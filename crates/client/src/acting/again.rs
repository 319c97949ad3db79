//! Asking once more for what has expired, because an approver wants to answer after all.
//!
//! It is the gateway that says so, and nothing of it is proven. So all that it can bring about is that the same people are
//! shown the same call again, one request at a time, each for its whole time, and only so often.

use std::time::Duration;

use countersign_wire::{id::RequestId, timestamp::Timestamp};

use crate::{
    acting::open::{Manner, OpenRequest, removed},
    ends::enforcer::{AskError, Enforcer},
    exchange::{
        audience::{self, Audience},
        request::{Before, Draft, Request},
        taken::{OPEN_TIME, Settled},
    },
    gateway::http::CallError,
    identity::profile::Pins,
    journal::{Change, Commit, JournalError, Kind, off_thread},
};

/// How often the same is asked again.
pub const MAX_AGAIN: u32 = 10;

/// How often the same is brought to devices that were connected while it waits.
pub const MAX_BROUGHT: u32 = 10;

impl Enforcer {
    /// Asks for the same as a request that has expired, under a new id, and acknowledges that an approver wanted that. Waiting
    /// for the answer is [`Enforcer::pick_up_or_keep`]. If another process was faster, its request is returned.
    pub async fn ask_again(&self, request_id: &RequestId, pins: &Pins) -> Result<Request, AskError> {
        let asked = self.record_again(request_id, pins).await;
        if let Ok(_) | Err(AskError::AskedTooOften | AskError::NotOpen) = asked {
            self.acknowledge(request_id).await;
        }
        asked
    }

    /// The request that asks now for what this one asked for: the newest that has taken its place, or itself.
    pub async fn newest(&self, request_id: &RequestId) -> Result<RequestId, AskError> {
        let mut newest = request_id.clone();
        for _ in 0..=MAX_AGAIN + MAX_BROUGHT {
            let key = newest.as_str().to_owned();
            let settled = off_thread(&self.journal, move |journal| journal.get(Kind::Settled, &key)).await?;
            let Some(Settled::Superseded { by }) = settled.as_ref().map(Settled::read).transpose()? else {
                break;
            };
            newest = RequestId::new(by).map_err(|_| JournalError::Record(newest.as_str().to_owned()))?;
        }
        Ok(newest)
    }

    /// Whether a request waits for an answer here and no process does: it was asked with [`Enforcer::ask_detached`].
    pub async fn is_detached(&self, request_id: &RequestId) -> Result<bool, AskError> {
        match self.open_request(&self.newest(request_id).await?).await {
            Ok((_, manner)) => Ok(manner.is_detached),
            Err(AskError::NotOpen) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn record_again(&self, request_id: &RequestId, pins: &Pins) -> Result<Request, AskError> {
        // Each round in which another process was faster finds a newer request.
        for _ in 0..=MAX_AGAIN {
            let newest = self.newest(request_id).await?;
            let (expired, manner) = self.open_request(&newest).await?;
            if self.clock.now() < expired.expires_at {
                return if newest == *request_id { Err(AskError::StillOpen) } else { Ok(expired) };
            }
            // Whoever comes later still picks it up.
            if self.has_answer(&newest).await? {
                return Err(AskError::StillOpen);
            }
            if manner.asked_before >= MAX_AGAIN {
                return Err(AskError::AskedTooOften);
            }
            let valid_for = manner.draft(&expired)?.valid_for;
            let again = Manner { asked_before: manner.asked_before + 1, ..manner };
            if let Some(request) = self.replace(&expired, again, |_| valid_for, pins).await? {
                self.submit_recorded(&request).await?;
                return Ok(request);
            }
        }
        Err(AskError::NotOpen)
    }

    /// Whether the gateway has a decision that nobody here has taken yet.
    async fn has_answer(&self, request_id: &RequestId) -> Result<bool, AskError> {
        match self.http.exchange_once(request_id).await {
            Ok(word) => Ok(word.is_decided()),
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a new request into the place of one that has no answer, in one commit; `None` if another process was faster.
    /// From then on no decision about the old one counts.
    pub(crate) async fn replace(
        &self,
        old: &Request,
        manner: Manner,
        valid_for: impl FnOnce(Timestamp) -> Duration,
        pins: &Pins,
    ) -> Result<Option<Request>, AskError> {
        let (now, id) = (self.clock.now(), &old.request_id);
        let (whole, valid_for) = (manner.draft(old)?, valid_for(now));
        // Whose turn it was before keeps it, and who asks again after all of the time asks everybody.
        let passed = match manner.asked_before {
            0 => whole.valid_for.saturating_sub(valid_for),
            _ => whole.valid_for,
        };
        let to = Audience { people: audience::later(&whole.to.people, passed), ..whole.to };
        let draft = Draft { valid_for, to, ..whole };
        let before = Before { request_id: id, edited_by: manner.device };
        let request = Request::build_after(Some(before), &draft, &self.id, &self.keys, pins, now)?;
        let manner = Manner { is_moving: false, ..manner };
        let by = request.request_id.as_str().to_owned();
        let changes = [
            // Nobody waits for what was given up.
            Change::Present(Kind::Open, id.as_str().to_owned()),
            Change::Add(Settled::Superseded { by }.record(id, request.expires_at.plus(OPEN_TIME))),
            removed(id),
            Change::Add(OpenRequest::record(&request, manner)),
        ];
        match off_thread(&self.journal, move |journal| journal.commit(&changes, now)).await? {
            Commit::Done => Ok(Some(request)),
            Commit::Conflict(_) => Ok(None),
        }
    }
}
