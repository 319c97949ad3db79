//! What people are asked about one call: by a request of now, or by one that an earlier run has asked.

use std::time::Duration;

use countersign_client::{
    enforcer::Enforcer,
    profile::Pins,
    request::{Draft, Request},
    taken::Taken,
};
use countersign_wire::id::RequestId;
use tokio::{sync::SetOnce, time::timeout};

use crate::{
    asking::{self, Attendance, Interruption, Rejection},
    tool::{exit::Failure, home::Identity},
};

/// How long it may take to take a request back.
const WITHDRAW_TIME: Duration = Duration::from_secs(1);

/// Who asks, and whose answers count.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) identity: &'a Identity,
    pub(super) enforcer: &'a Enforcer,
    pub(super) pins: &'a Pins,
}

/// One inquiry, and its request as soon as there is one.
pub(super) struct Inquiry<'a> {
    asker: Asker<'a>,
    draft: &'a Draft,
    /// The rejection whose edit has made the draft.
    changed: Option<&'a Rejection>,
    request: SetOnce<Request>,
}

impl<'a> Inquiry<'a> {
    pub(super) fn new(asker: Asker<'a>, draft: &'a Draft, changed: Option<&'a Rejection>) -> Self {
        Self { asker, draft, changed, request: SetOnce::new() }
    }

    /// Waits for the answer: to the request that was asked before, if there is one.
    pub(super) async fn ask(
        &self,
        before: Option<Request>,
        mut interruption: Interruption,
    ) -> Result<Taken, Failure> {
        let Asker { identity, enforcer, pins } = self.asker;
        let request = match (before, self.changed) {
            (Some(request), _) => request,
            (None, Some(rejection)) => {
                asking::submit_edited(enforcer, pins, self.draft, rejection, &mut interruption).await?
            }
            (None, None) => {
                asking::submit(enforcer, pins, self.draft, Attendance::Attended, &mut interruption).await?
            }
        };
        // It is asked once.
        drop(self.request.set(request.clone()));
        asking::wait_unwatched(identity, enforcer, request, &mut interruption).await
    }

    /// The request that was asked.
    pub(super) fn request(&self) -> Option<&Request> {
        self.request.get()
    }

    /// Takes back what was asked and not answered, also what is still on its way to the gateway: people may see it before
    /// this end hears that it has arrived. If that fails, it expires by itself.
    pub(super) async fn take_back(&self, asking: impl Future) {
        let taking_back = async {
            if self.request().is_none() {
                tokio::select! {
                    _ = asking => {}
                    _ = self.request.wait() => {}
                }
            }
            self.withdraw(None).await;
        };
        drop(timeout(WITHDRAW_TIME, taking_back).await);
    }

    /// Takes back what was asked, unless this is the answer to it. If that fails, it expires by itself.
    pub(super) async fn withdraw(&self, answered: Option<&RequestId>) {
        if let Some(request) = self.request().filter(|request| Some(&request.request_id) != answered) {
            drop(timeout(WITHDRAW_TIME, self.asker.enforcer.withdraw(request)).await);
        }
    }
}
