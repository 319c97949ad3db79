//! Asking for what an approver has made of a request before they approve it (docs/edits.md).

use countersign_wire::id::RequestId;

use crate::{
    acting::open::{Manner, OpenRequest},
    ends::enforcer::{AskError, Enforcer},
    exchange::{
        audience::{Audience, Turn},
        reply::{Rejected, VerifiedDecision},
        request::{Before, Draft, Request},
    },
    identity::profile::Pins,
    journal::{Change, Commit, off_thread},
};

impl Enforcer {
    /// Asks for what an edit has made of a request that was rejected with it: the device that has signed the edit, and nobody
    /// else. Whom the draft is for does not count. Waiting for the answer is [`Enforcer::pick_up`].
    pub async fn ask_edited(
        &self,
        rejected: &RequestId,
        by: &VerifiedDecision,
        draft: &Draft,
        pins: &Pins,
    ) -> Result<Request, AskError> {
        let (now, people) = (self.clock.now(), vec![Turn::at_once(by.approver.as_str())]);
        let to = Audience { people: people.clone(), ..draft.to.clone() };
        let draft = Draft { to, ..draft.clone() };
        let before = Before { request_id: rejected, edited_by: Some(by.device) };
        let request = Request::build_after(Some(before), &draft, &self.id, &self.keys, pins, now)?;
        let manner = Manner { people, device: Some(by.device), ..Manner::default() };
        let change = Change::Add(OpenRequest::record(&request, manner));
        let commit = off_thread(&self.journal, move |journal| journal.commit(&[change], now)).await?;
        if commit != Commit::Done {
            return Err(AskError::Rejected(Rejected::Settled));
        }
        self.submit_recorded(&request).await?;
        Ok(request)
    }
}
