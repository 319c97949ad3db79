//! Bringing what waits to a device that was connected later.
//!
//! A request is sealed to the devices of its time, so it is taken back and the same is asked anew, for what is left of its time.
//! In this order, so that whoever dies in between leaves what the next one completes, and no two answers are acted on:
//!
//! 1. The journal says that the request is being moved. It counts as before: whoever waits takes an answer to it.
//! 2. The gateway takes it back. If an answer was faster, that answer counts and nothing else is done.
//! 3. One commit ends the old request and opens the new one. From then on an answer to the old one is refused.
//! 4. The new one is submitted; whoever waits for the old one finds it with [`Enforcer::follow`], and submits it too.

use std::time::Duration;

use countersign_wire::{exchange::ExchangeState, id::RequestId};
use tokio::time::Instant;

use crate::{
    acting::{
        again::MAX_BROUGHT,
        open::{Manner, OpenRequest},
    },
    ends::enforcer::{AskError, Enforcer},
    exchange::{reply::Rejected, request::Request, taken::Settled},
    gateway::http::CallError,
    identity::profile::Pins,
    journal::{Change, Commit, Kind, off_thread},
};

/// What has less time left is not brought: whoever looks at it now must not lose it.
const MIN_LEFT: Duration = Duration::from_secs(5);

/// How long the gateway has to take a request back.
const CALL_TIME: Duration = Duration::from_secs(10);

impl Enforcer {
    /// The requests that wait and that some device of those who are asked can't open, also of other processes; and those that
    /// were brought before and may not have been submitted. The oldest to expire first.
    pub async fn to_bring(&self, pins: &Pins) -> Result<Vec<RequestId>, AskError> {
        let records = off_thread(&self.journal, |journal| journal.list(Kind::Open)).await?;
        let mut found = Vec::new();
        for record in &records {
            let (request, manner) = OpenRequest::read(record)?;
            let is_waiting = self.clock.now() < request.expires_at;
            if is_waiting && (manner.brought > 0 || self.is_to_bring(&request, &manner, pins)) {
                found.push((request.expires_at, request.request_id));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, request_id)| request_id).collect())
    }

    /// Takes a request back and asks for the same anew, of every device that counts by these pins, for the rest of its time.
    /// `None` if there was no need: it has an answer or has ended, or every device can open it.
    ///
    /// Whoever drops this, or dies, leaves a request that whoever waits for it completes, or this when it is called again.
    pub async fn bring(&self, request_id: &RequestId, pins: &Pins) -> Result<Option<Request>, AskError> {
        let (old, manner) = match self.open_request(request_id).await {
            Err(AskError::NotOpen) => return Ok(None),
            open => open?,
        };
        if !self.is_to_bring(&old, &manner, pins) {
            if manner.brought > 0 && self.clock.now() < old.expires_at {
                self.submit_recorded(&old).await?;
            }
            return Ok(None);
        }
        // What can't be sealed anew is not taken back.
        Request::build(&manner.draft(&old)?, &self.id, &self.keys, pins, self.clock.now())?;
        if !self.mark_moving(&old, &manner).await? {
            return Ok(None);
        }
        match self.withdraw_at_gateway(&old, Instant::now() + CALL_TIME).await {
            // Somebody has answered, or it has ended.
            Err(CallError::Refused { status: 409, .. }) => return Ok(None),
            withdrawn => withdrawn?,
        }
        let Some(new) = self.move_on(&old, manner, pins).await? else { return Ok(None) };
        self.submit_recorded(&new).await?;
        if self.is_withdrawn(&new.request_id).await? {
            // Whoever waited has gone before the gateway knew of it.
            self.withdraw_at_gateway(&new, Instant::now() + CALL_TIME).await?;
            return Ok(None);
        }
        Ok(Some(new))
    }

    /// The request to wait for after [`AskError::Replaced`], with the pins of now. It completes what another process has begun.
    pub async fn follow(&self, request_id: &RequestId, pins: &Pins) -> Result<Request, AskError> {
        // Each round in which another process was faster finds a newer request.
        for _ in 0..=MAX_BROUGHT {
            let newest = self.newest(request_id).await?;
            let (open, manner) = match self.open_request(&newest).await {
                // It was answered to another process, or taken back.
                Err(AskError::NotOpen) => return Err(AskError::TakenBack),
                open => open?,
            };
            if newest != *request_id {
                return Ok(open);
            }
            if let Some(new) = self.complete(&open, manner, pins).await? {
                return Ok(new);
            }
        }
        Err(AskError::TakenBack)
    }

    /// Whether the end of a request is not the end of what it asks for.
    pub(crate) async fn is_replaced(&self, request_id: &RequestId) -> Result<bool, AskError> {
        if self.newest(request_id).await? != *request_id {
            return Ok(true);
        }
        match self.open_request(request_id).await {
            Ok((_, manner)) => Ok(manner.is_moving),
            // It was replaced since, or has ended.
            Err(AskError::NotOpen) => Ok(self.newest(request_id).await? != *request_id),
            Err(error) => Err(error),
        }
    }

    /// Takes back what has taken the place of a request. It is recorded first: whoever is about to submit it sees that.
    pub(crate) async fn withdraw_newest(&self, request: &Request) -> Result<(), AskError> {
        let newest = self.newest(&request.request_id).await?;
        if newest == request.request_id {
            return Err(Rejected::Settled.into());
        }
        let (open, _) = match self.open_request(&newest).await {
            Err(AskError::NotOpen) => return Err(Rejected::Settled.into()),
            open => open?,
        };
        self.record_withdrawal(&open).await?;
        match self.withdraw_at_gateway(&open, self.deadline(open.expires_at)).await {
            Err(CallError::Refused { status: 404, .. }) => Ok(()),
            withdrawn => Ok(withdrawn?),
        }
    }

    fn is_to_bring(&self, request: &Request, manner: &Manner, pins: &Pins) -> bool {
        let now = self.clock.now();
        now.plus(MIN_LEFT) < request.expires_at
            && manner.brought < MAX_BROUGHT
            // What a device has changed is for that device.
            && manner.device.is_none()
            && request.misses_device(&manner.people, pins, now)
    }

    /// Records that a request is being moved; false if it has ended.
    async fn mark_moving(&self, request: &Request, manner: &Manner) -> Result<bool, AskError> {
        let now = self.clock.now();
        let manner = Manner { is_moving: true, ..manner.clone() };
        let changes = [
            Change::Present(Kind::Open, request.request_id.as_str().to_owned()),
            Change::Put(OpenRequest::record(request, manner)),
        ];
        let done = off_thread(&self.journal, move |journal| journal.commit(&changes, now)).await?;
        Ok(done == Commit::Done)
    }

    /// Completes what another process has begun, if the gateway says that it came as far as that; `None` if yet another one
    /// was faster.
    async fn complete(
        &self,
        old: &Request,
        manner: Manner,
        pins: &Pins,
    ) -> Result<Option<Request>, AskError> {
        if self.clock.now() >= old.expires_at {
            return Err(AskError::Expired);
        }
        // Only this enforcer withdraws. What an operator has cancelled stays cancelled.
        let is_withdrawn = manner.is_moving && {
            let word = self.http.exchange(&old.request_id, self.deadline(old.expires_at)).await?;
            word.state == ExchangeState::Withdrawn
        };
        if !is_withdrawn {
            self.abandon(&old.request_id).await?;
            return Err(AskError::TakenBack);
        }
        match self.move_on(old, manner, pins).await {
            Err(error @ AskError::Request(_)) => {
                self.abandon(&old.request_id).await?;
                Err(error)
            }
            moved => moved,
        }
    }

    /// Ends the old request and opens the new one; `None` if the old one has ended otherwise.
    async fn move_on(&self, old: &Request, manner: Manner, pins: &Pins) -> Result<Option<Request>, AskError> {
        let whole = manner.draft(old)?.valid_for;
        let brought = Manner {
            brought: manner.brought + 1,
            whole_millis: Some(u64::try_from(whole.as_millis()).unwrap_or(u64::MAX)),
            ..manner
        };
        self.replace(old, brought, |now| old.expires_at.since(now), pins).await
    }

    async fn is_withdrawn(&self, request_id: &RequestId) -> Result<bool, AskError> {
        let key = request_id.as_str().to_owned();
        let settled = off_thread(&self.journal, move |journal| journal.get(Kind::Settled, &key)).await?;
        Ok(matches!(settled.as_ref().map(Settled::read).transpose()?, Some(Settled::Withdrawn)))
    }
}
