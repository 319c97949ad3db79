//! An approver through the client library: hears requests and decides them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_client::{
    approver::{Approver as Client, DecideError},
    channel::{ApproverEvent, Settings},
    clock::{Clock as _, SystemClock},
    http::CallError,
    profile::Pins,
    reply::{Choice, Words, decide},
    request::OpenedRequest,
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use tokio::time::timeout;

use super::{
    super::{
        super::history::{Answer, Call, Caller, Hash, Message, Push, Transport},
        rest::{Rest, Sent},
        texts,
        world::{Rng, World},
    },
    enforcer,
    life::{Life, call_time},
    people,
};
use crate::Failure;

#[derive(Clone)]
pub(in super::super) struct Approver {
    pub(in super::super) world: Arc<World>,
    pub(in super::super) tenant: usize,
    pub(in super::super) id: String,
    pub(in super::super) folder: PathBuf,
}

/// One life of an approver.
struct Living {
    of: Approver,
    client: Client,
    /// The same person on another node, for races.
    other: Client,
    pins: Pins,
    rest: Rest,
    rng: Rng,
}

impl Life for Approver {
    async fn live(self, node: String, number: u64) -> Result<(), Failure> {
        let mut rng = self.world.rng(&format!("{} {number}", self.id));
        let (client, profile) = people::approver(&self.folder, &node)?;
        let (other, _) = people::approver(&self.folder, &self.world.node(&mut rng))?;
        let rest = Rest::new(&self.world, self.tenant, &self.id, profile.credential().expose());
        let (by, pins) = (rest.caller(node), profile.pins()?);
        let living = Living { of: self, client, other, pins, rest, rng };
        living.listen(by).await
    }

    fn name(&self) -> &str {
        &self.id
    }
}

impl Living {
    async fn listen(mut self, by: Caller) -> Result<(), Failure> {
        let world = Arc::clone(&self.of.world);
        let settings = Settings {
            up_again: Duration::from_secs(5),
            list_every: Duration::from_secs(5),
            poll_every: Duration::from_secs(1),
            ..Settings::default()
        };
        let client = people::approver(&self.of.folder, &by.node)?.0;
        let mut listener = client.listen(settings);
        let call = Call::Listen { reader: self.of.id.clone(), transport: Transport::Sdk };
        let (mut open, mut connection) = (Some(world.recorder.invoke(&by, call)), 0);
        while !world.needs_no_answers() {
            let Ok(event) = timeout(Duration::from_millis(500), listener.next(&self.pins)).await else {
                continue;
            };
            match event? {
                ApproverEvent::Connected { .. } => {
                    if let Some(open) = open.take() {
                        connection = open.number();
                        open.ok(Answer { status: 200, ..Answer::default() });
                    }
                }
                ApproverEvent::Request(item) => {
                    let request = item.request_id.as_str().to_owned();
                    world.learn(self.of.tenant, &request);
                    let message = Message {
                        id: format!("sdk {request}"),
                        kind: "approval.request".to_owned(),
                        request,
                        ..Message::default()
                    };
                    let (by, reader, transport) = (by.clone(), self.of.id.clone(), Transport::Sdk);
                    world.recorder.pushed(Push { by, reader, connection, transport, message });
                    // What bare enforcers ask everybody for can't be opened.
                    if let Ok(request) = item.opened {
                        self.decide(&request, &by_of(&self.rest, &self.client)).await;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn decide(&mut self, request: &OpenedRequest, by: &Caller) {
        let approves = self.rng.is_one_of(70);
        if self.of.world.setup.is_steady {
            if !enforcer::is_withdrawn_later(request) {
                self.send(&self.client, by, request, approves).await;
            }
            return;
        }
        match self.rng.below(100) {
            0..4 => {}
            4..20 => {
                let there = by_of(&self.rest, &self.other);
                tokio::join!(
                    self.send(&self.client, by, request, approves),
                    self.send(&self.other, &there, request, !approves)
                );
            }
            20..35 => self.send_text_twice(request, approves).await,
            _ => self.send(&self.client, by, request, approves).await,
        }
    }

    /// Decides with the client library, which chooses the text.
    async fn send(&self, client: &Client, by: &Caller, request: &OpenedRequest, approves: bool) {
        let call = Call::Decide {
            request: request.request_id.as_str().to_owned(),
            approver: self.of.id.clone(),
            decision: None,
            approves,
        };
        let open = self.of.world.recorder.invoke(by, call);
        match timeout(call_time(&self.of.world), client.decide(request, &choice(approves))).await {
            Ok(Ok(_)) => open.ok(Answer { status: 200, ..Answer::default() }),
            Ok(Err(DecideError::Call(CallError::Refused { status, code, retryable: false, .. }))) => {
                open.fail(Answer { status, code: code.to_string(), ..Answer::default() });
            }
            Ok(Err(DecideError::Choice(error))) => open.fail(Answer::none(error.to_string())),
            Ok(Err(error)) => open.unknown(Answer::none(error.to_string())),
            Err(_) => open.unknown(Answer::none("no answer in time")),
        }
    }

    /// Signs a decision and sends it, twice.
    async fn send_text_twice(&mut self, request: &OpenedRequest, approves: bool) {
        let Client { id, keys, .. } = &self.client;
        let Ok(text) = decide(request, &choice(approves), id, keys, SystemClock.now()) else { return };
        let request = request.request_id.as_str();
        let sent = texts::envelope("decision.submit", request, ("approverId", &self.of.id), None, &text);
        let call = Call::Decide {
            request: request.to_owned(),
            approver: self.of.id.clone(),
            decision: Some(Hash::of(&text)),
            approves,
        };
        let sent = Sent::post("/v1/decisions", sent);
        self.rest.call_until_known(&call, &sent).await;
        self.rest.call(call, &sent).await;
    }
}

fn by_of(rest: &Rest, client: &Client) -> Caller {
    rest.caller(client.http.gateway().as_str().to_owned())
}

fn choice(approves: bool) -> Choice {
    Choice {
        outcome: if approves { DecisionOutcome::Approve } else { DecisionOutcome::Reject },
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(10)),
        words: Words::default(),
    }
}
