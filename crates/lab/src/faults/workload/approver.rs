//! A bare approver: decides what is pushed, alone or in a race, repeats decisions, and walks through the inbox.

use std::{collections::VecDeque, sync::Arc};

use tokio::{sync::mpsc, time::timeout};

use super::{
    super::history::{Call, Hash, Message, Outcome},
    answers,
    rest::{Rest, Sent},
    texts,
};

/// Decisions that are sent again now and then.
const REMEMBERED: usize = 20;

pub(super) struct Approver {
    pub(super) rest: Rest,
    /// Who decides at the same time, for requests to everybody under another id.
    pub(super) rival: Rest,
    pub(super) id: String,
    pub(super) rival_id: String,
    pub(super) requests: mpsc::UnboundedReceiver<(Message, Vec<u8>)>,
    sent: VecDeque<(Call, Sent)>,
}

impl Approver {
    pub(super) fn new(
        rest: Rest,
        rival: Rest,
        ids: (&str, &str),
        requests: mpsc::UnboundedReceiver<(Message, Vec<u8>)>,
    ) -> Self {
        let (id, rival_id) = (ids.0.to_owned(), ids.1.to_owned());
        Self { rest, rival, id, rival_id, requests, sent: VecDeque::new() }
    }

    pub(super) async fn run(mut self) {
        let world = Arc::clone(&self.rest.world);
        while !world.is_stopped() {
            let pause = self.rest.rng.millis(300, 900);
            match timeout(pause, self.requests.recv()).await {
                Ok(Some((message, text))) => self.decide(&message, &text).await,
                Ok(None) => return,
                Err(_) => self.rest.walk(&self.id).await,
            }
            if self.rest.rng.is_one_of(10) {
                self.rest.walk(&self.id).await;
            }
            if self.rest.rng.is_one_of(10) {
                self.again().await;
            }
        }
    }

    async fn decide(&mut self, message: &Message, text: &[u8]) {
        let is_request = message.kind == "approval.request";
        let Some(hash) = answers::artifact_hash(text).filter(|_| is_request) else { return };
        let rng = &mut self.rest.rng;
        let (is_left, is_race, approves) = (rng.is_one_of(5), rng.is_one_of(15), rng.is_one_of(70));
        if is_left {
            return;
        }
        if rng.is_one_of(50) {
            let pause = rng.millis(5, 150);
            self.rest.world.stopped_within(pause).await;
        }
        let (call, sent) = self.decision(message, &hash, &self.id.clone(), approves);
        if is_race {
            // Without a name in the request everybody may decide it; otherwise it is the same person twice.
            let is_shared = !text.windows(self.id.len()).any(|bytes| bytes == self.id.as_bytes());
            let other = if is_shared { self.rival_id.clone() } else { self.id.clone() };
            let (rival_call, rival_sent) = self.decision(message, &hash, &other, !approves);
            tokio::join!(self.rest.call(call.clone(), &sent), self.rival.call(rival_call, &rival_sent));
        }
        let reply = self.rest.call_until_known(&call, &sent).await;
        if reply.outcome == Outcome::Ok {
            self.sent.push_back((call, sent));
            if self.sent.len() > REMEMBERED {
                self.sent.pop_front();
            }
        }
    }

    fn decision(&mut self, message: &Message, hash: &str, by: &str, approves: bool) -> (Call, Sent) {
        let mark = self.rest.world.marked(self.rest.tenant, "");
        let request = &message.request;
        let body = texts::decision(request, hash, &mark, approves, self.rest.rng.next());
        let sent = texts::envelope("decision.submit", request, ("approverId", by), None, &body);
        let request = request.clone();
        let call =
            Call::Decide { request, approver: by.to_owned(), decision: Some(Hash::of(&body)), approves };
        (call, Sent::post("/v1/decisions", sent))
    }

    /// Sends a decision again that was accepted.
    async fn again(&mut self) {
        let Some((call, sent)) = self.sent.pop_front() else { return };
        self.rest.call(call, &sent).await;
    }
}
