//! Whom to ask, one after the other: the next person when nobody of those before has seen it for some time.
//!
//! A request is sealed to the people whom it is for, so each turn is a request of its own. The first answer counts; the
//! others are taken back.

use std::{pin::Pin, time::Duration};

use countersign_client::{
    enforcer::Enforcer,
    profile::Pins,
    request::{Draft, Request},
    taken::Taken,
};
use countersign_wire::id::RequestId;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::{
    asking::{self, Attendance, Interruption},
    rules::Turn,
    tool::{exit::Failure, home::Identity},
};

/// How long it may take to take a request back.
const WITHDRAW_TIME: Duration = Duration::from_secs(1);

/// What was asked about one call.
pub(super) struct Turns<'a> {
    pub(super) identity: &'a Identity,
    pub(super) enforcer: &'a Enforcer,
    pub(super) pins: &'a Pins,
    pub(super) draft: &'a Draft,
    asked: Mutex<Vec<Request>>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(
        identity: &'a Identity,
        enforcer: &'a Enforcer,
        pins: &'a Pins,
        draft: &'a Draft,
    ) -> Self {
        Self { identity, enforcer, pins, draft, asked: Mutex::default() }
    }

    /// Waits for the answer to a request that was asked before.
    pub(super) async fn pick_up(&self, request: Request) -> Result<Taken, Failure> {
        let mut interruption = Interruption::watch()?;
        self.note(&request);
        asking::wait_unwatched(self.identity, self.enforcer, request, &mut interruption).await
    }

    /// Asks these people in their turns; everybody who is paired, if there are none.
    pub(super) async fn ask(&self, turns: &[Turn]) -> Result<Taken, Failure> {
        let now = turns.iter().map(|turn| turn.after).min().unwrap_or_default();
        self.ask_from(turns, now).await
    }

    fn ask_from<'b>(
        &'b self,
        turns: &'b [Turn],
        now: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Taken, Failure>> + Send + 'b>> {
        Box::pin(async move {
            let people: Vec<String> =
                turns.iter().filter(|turn| turn.after == now).map(|turn| turn.person.clone()).collect();
            let draft = Draft { people, ..self.draft.clone() };
            let mut interruption = Interruption::watch()?;
            let request =
                asking::submit(self.enforcer, self.pins, &draft, Attendance::Attended, &mut interruption)
                    .await?;
            self.note(&request);
            let answer =
                asking::wait_unwatched(self.identity, self.enforcer, request.clone(), &mut interruption);
            let Some(next) = turns.iter().map(|turn| turn.after).filter(|after| *after > now).min() else {
                return answer.await;
            };
            tokio::select! {
                answer = answer => answer,
                answer = self.ask_later(turns, next, next.saturating_sub(now), &request) => answer,
            }
        })
    }

    /// Asks the next people when it is their turn, unless somebody has seen it by then.
    async fn ask_later(
        &self,
        turns: &[Turn],
        next: Duration,
        wait: Duration,
        before: &Request,
    ) -> Result<Taken, Failure> {
        tokio::time::sleep(wait).await;
        // It may have been brought to a device that was connected meanwhile.
        let newest = self.enforcer.newest(&before.request_id).await;
        let progress = self.enforcer.progress(newest.as_ref().unwrap_or(&before.request_id)).await;
        let is_seen = progress.is_ok_and(|progress| progress.approvers.iter().any(|it| it.seen.is_some()));
        if is_seen {
            return std::future::pending().await;
        }
        match self.ask_from(turns, next).await {
            Ok(taken) => Ok(taken),
            // Those who were asked before may still answer.
            Err(_) => std::future::pending().await,
        }
    }

    fn note(&self, request: &Request) {
        self.asked.lock().push(request.clone());
    }

    /// The request that was asked first.
    pub(super) fn first(&self) -> Option<Request> {
        self.asked.lock().first().cloned()
    }

    /// Takes back what was asked, apart from the request that was answered. If that fails, it expires by itself.
    pub(super) async fn withdraw(&self, except: Option<&RequestId>) {
        let asked = self.asked.lock().clone();
        for request in asked.iter().filter(|request| Some(&request.request_id) != except) {
            let until = Instant::now() + WITHDRAW_TIME;
            drop(timeout_at(until, self.enforcer.withdraw(request)).await);
        }
    }
}
