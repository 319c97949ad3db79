//! An enforcer through the client library: asks, hears the answer, and acts at most once.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use countersign_client::{
    audience::Audience,
    authorize::Answer as Authorized,
    channel::{EnforcerEvent, Settings},
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer as Client},
    grant::GrantRules,
    http::CallError,
    payload::{Command, Invocation, Payload},
    profile::Pins,
    receipt::Outcome,
    request::{Draft, OpenedRequest, Request},
    taken::Taken,
};
use countersign_wire::decision::DecisionOutcome;
use tokio::time::timeout;

use super::{
    super::{
        super::history::{Act, Answer, Call, Caller, ExchangeState, Open},
        world::{Rng, World, key_id},
    },
    life::{Life, call_time},
    people,
};
use crate::Failure;

/// Requests that one life waits for at once.
const MAX_OPEN: usize = 5;

/// The end of the name of a repository whose requests nobody decides: they are withdrawn.
const WITHDRAWN_LATER: &str = "withdrawn";

/// Whether the enforcer withdraws it, so that a decision would be a race.
pub(super) fn is_withdrawn_later(request: &OpenedRequest) -> bool {
    request.repo_name.as_deref().is_some_and(|name| name.ends_with(WITHDRAWN_LATER))
}

#[derive(Clone)]
pub(in super::super) struct Enforcer {
    pub(in super::super) world: Arc<World>,
    pub(in super::super) tenant: usize,
    pub(in super::super) id: String,
    pub(in super::super) folder: PathBuf,
}

/// One life of an enforcer.
struct Living {
    of: Enforcer,
    client: Client,
    pins: Pins,
    by: Caller,
    rng: Rng,
    /// Waits that have not ended.
    waits: HashMap<String, Open>,
}

impl Life for Enforcer {
    async fn live(self, node: String, number: u64) -> Result<(), Failure> {
        let is_listening = number.is_multiple_of(2);
        let mut living = self.wake(&node, number)?;
        match is_listening {
            true => living.listen().await,
            false => living.authorize().await,
        }
    }

    fn name(&self) -> &str {
        &self.id
    }
}

impl Enforcer {
    fn wake(&self, node: &str, number: u64) -> Result<Living, Failure> {
        let (client, profile) = people::enforcer(&self.folder, node)?;
        let by = Caller {
            client: self.id.clone(),
            tenant: self.world.tenant(self.tenant).tenant.clone(),
            node: node.to_owned(),
            credential: key_id(profile.credential().expose()),
        };
        let rng = self.world.rng(&format!("{} {number}", self.id));
        Ok(Living { of: self.clone(), client, pins: profile.pins()?, by, rng, waits: HashMap::new() })
    }

    /// Takes the answers that are there to everything that was asked. For the quiet phase.
    pub(in super::super) async fn finish(self, node: String) -> Result<(), Failure> {
        let mut living = self.wake(&node, u64::MAX)?;
        living.pick_up(Duration::from_secs(3)).await
    }
}

impl Living {
    fn draft(&mut self) -> Result<Draft, Failure> {
        let number = self.rng.next().to_string();
        let argv = ["deploy".to_owned(), self.of.world.marked(self.of.tenant, &number)].to_vec();
        let payload = Payload::Command(Command::new(Invocation::Argv(argv), "."));
        let valid_for = match self.of.world.setup.is_steady {
            true => 600,
            false if self.rng.is_one_of(15) => 2,
            false => 40,
        };
        Ok(Draft {
            artifact_type: payload.artifact_type(),
            payload: payload.to_json()?,
            repo_name: self.of.world.marked(self.of.tenant, "repo"),
            valid_for: Duration::from_secs(valid_for),
            session: None,
            actions: Vec::new(),
            edits: Vec::new(),
            to: Audience::everybody(),
        })
    }

    /// Asks one after the other and waits for each.
    async fn authorize(&mut self) -> Result<(), Failure> {
        self.pick_up(Duration::from_secs(2)).await?;
        // Grants are off: every act needs a decision of its own.
        let rules = GrantRules { longest: Duration::ZERO };
        while !self.of.world.is_stopped() {
            let draft = self.draft()?;
            let open = self.of.world.recorder.invoke(&self.by, self.submission(None, &draft));
            match timeout(call_time(&self.of.world), self.client.authorize(&draft, &self.pins, &rules)).await
            {
                Ok(Ok(Authorized::Approved(taken))) => {
                    self.act(&taken);
                    open.ok(answer_of(&taken));
                    self.finish(taken).await;
                }
                Ok(Ok(Authorized::Rejected(taken))) => open.ok(answer_of(&taken)),
                Ok(Err(error)) => {
                    open.unknown(Answer::none(error.to_string()));
                    // The node may be away: the next life uses another one.
                    if let AskError::Call(CallError::Unreachable { .. }) = error {
                        return Ok(());
                    }
                }
                Err(_) => drop(open),
            }
            let pause = self.rng.millis(20, 200);
            self.of.world.stopped_within(pause).await;
        }
        Ok(())
    }

    /// Waits for the answers to what earlier lives have asked for.
    async fn pick_up(&mut self, limit: Duration) -> Result<(), Failure> {
        for request in self.client.open_requests().await? {
            self.of.world.learn_unique(self.of.tenant, request.request_id.as_str());
            // Picking up submits once more.
            let submit = self.resubmission(&request);
            let wait = self.wait(&request);
            match timeout(limit, self.client.pick_up(&request.request_id, &self.pins)).await {
                Ok(Ok(answer)) => {
                    if let Authorized::Approved(taken) = &answer {
                        self.act(taken);
                    }
                    wait.ok(Answer { status: 200, ..Answer::default() });
                }
                Ok(Err(error)) => wait.unknown(Answer::none(error.to_string())),
                Err(_) => wait.unknown(Answer::none("no answer in time")),
            }
            drop(submit);
        }
        Ok(())
    }

    /// Asks for several things and listens for their answers.
    async fn listen(&mut self) -> Result<(), Failure> {
        let settings = Settings {
            up_again: Duration::from_secs(5),
            list_every: Duration::from_secs(5),
            poll_every: Duration::from_secs(1),
            ..Settings::default()
        };
        let client = people::enforcer(&self.of.folder, &self.by.node)?.0;
        let mut listener = client.listen(Vec::new(), settings);
        for request in self.client.open_requests().await? {
            self.of.world.learn_unique(self.of.tenant, request.request_id.as_str());
            self.watch(&request);
            listener.watch(request);
        }
        let world = Arc::clone(&self.of.world);
        while !world.is_stopped() || (world.setup.is_steady && !self.waits.is_empty()) {
            // Requests that are decided at any moment are never withdrawn: that would be a race.
            let is_withdrawn = world.setup.is_steady && self.rng.is_one_of(10);
            if !world.is_stopped()
                && self.waits.len() < MAX_OPEN
                && let Some(request) = self.ask(is_withdrawn).await?
            {
                self.watch(&request);
                listener.watch(request.clone());
                if is_withdrawn {
                    self.withdraw(&request).await;
                }
            }
            let pause = self.rng.millis(100, 500);
            while let Ok(event) = timeout(pause, listener.next(&self.pins)).await {
                self.heard(event?).await;
            }
        }
        Ok(())
    }

    fn watch(&mut self, request: &Request) {
        let wait = self.wait(request);
        self.waits.insert(request.request_id.as_str().to_owned(), wait);
    }

    async fn heard(&mut self, event: EnforcerEvent) {
        match event {
            EnforcerEvent::Decided { request, taken } => {
                let open = self.waits.remove(request.request_id.as_str());
                let answer = match taken {
                    Ok(taken) => {
                        if taken.decision.outcome == DecisionOutcome::Approve {
                            self.act(&taken);
                            self.finish(*taken).await;
                        }
                        Ok(Answer { status: 200, ..Answer::default() })
                    }
                    Err(error) => Err(Answer::none(error.to_string())),
                };
                match (open, answer) {
                    (Some(open), Ok(answer)) => open.ok(answer),
                    (Some(open), Err(answer)) => open.unknown(answer),
                    (None, _) => {}
                }
            }
            EnforcerEvent::Ended { request, state } => {
                let state = state.and_then(|state| ExchangeState::read(state.as_str()));
                match (self.waits.remove(request.request_id.as_str()), state) {
                    (Some(open), Some(state)) => {
                        open.ok(Answer { status: 204, state: Some(state), ..Answer::default() });
                    }
                    (Some(open), None) => open.unknown(Answer::none("nobody says how it has ended")),
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }

    /// Asks for something new; half of it is in the journal before it is sent, so that a later life can pick it up.
    async fn ask(&mut self, is_withdrawn: bool) -> Result<Option<Request>, Failure> {
        let mut draft = self.draft()?;
        let world = Arc::clone(&self.of.world);
        if is_withdrawn {
            draft.repo_name = world.marked(self.of.tenant, WITHDRAWN_LATER);
        }
        if self.rng.is_one_of(50) {
            let open = world.recorder.invoke(&self.by, self.submission(None, &draft));
            let sent = timeout(call_time(&self.of.world), self.client.ask_detached(&draft, &self.pins)).await;
            let request = match sent {
                Ok(Ok(request)) => request,
                Ok(Err(error)) => {
                    open.unknown(Answer::none(error.to_string()));
                    return Ok(None);
                }
                Err(_) => {
                    open.unknown(Answer::none("no answer in time"));
                    return Ok(None);
                }
            };
            let id = request.request_id.as_str().to_owned();
            world.learn_unique(self.of.tenant, &id);
            open.ok(Answer { status: 202, request: Some(id), ..Answer::default() });
            return Ok(Some(request));
        }
        let Client { id, keys, .. } = &self.client;
        let request = Request::build(&draft, id, keys, &self.pins, SystemClock.now())?;
        let id = request.request_id.as_str();
        world.learn_unique(self.of.tenant, id);
        let open = world.recorder.invoke(&self.by, self.submission(Some(id), &draft));
        match timeout(call_time(&self.of.world), self.client.submit(&request)).await {
            Ok(Ok(())) => open.ok(Answer { status: 202, ..Answer::default() }),
            Ok(Err(AskError::Call(CallError::Refused { status, code, retryable: false, .. }))) => {
                open.fail(Answer { status, code: code.to_string(), ..Answer::default() });
                return Ok(None);
            }
            Ok(Err(error)) => open.unknown(Answer::none(error.to_string())),
            Err(_) => open.unknown(Answer::none("no answer in time")),
        }
        Ok(Some(request))
    }

    /// Takes a request back that nobody decides.
    async fn withdraw(&mut self, request: &Request) {
        let pause = self.rng.millis(0, 500);
        self.of.world.stopped_within(pause).await;
        let call = Call::Withdraw { request: request.request_id.as_str().to_owned() };
        let open = self.of.world.recorder.invoke(&self.by, call);
        match timeout(call_time(&self.of.world), self.client.withdraw(request)).await {
            Ok(Ok(())) => open.ok(Answer { status: 200, ..Answer::default() }),
            Ok(Err(AskError::Call(CallError::Refused { status, code, retryable: false, .. }))) => {
                open.fail(Answer { status, code: code.to_string(), ..Answer::default() });
            }
            Ok(Err(error)) => open.unknown(Answer::none(error.to_string())),
            Err(_) => open.unknown(Answer::none("no answer in time")),
        }
    }

    fn wait(&self, request: &Request) -> Open {
        let call = Call::Wait { request: request.request_id.as_str().to_owned(), acknowledges: true };
        self.of.world.recorder.invoke(&self.by, call)
    }

    fn submission(&self, request: Option<&str>, draft: &Draft) -> Call {
        Call::Submit {
            request: request.map(str::to_owned),
            enforcer: self.of.id.clone(),
            approver: self.approver(),
            body: None,
            lifetime_ms: u64::try_from(draft.valid_for.as_millis()).unwrap_or_default(),
        }
    }

    /// The first of those whom it asks: only paired approvers get its requests.
    fn approver(&self) -> Option<String> {
        self.pins.iter().next().map(|pin| pin.party().id().to_owned())
    }

    /// A submission that was made before.
    fn resubmission(&self, request: &Request) -> Open {
        let left = request.expires_at.since(SystemClock.now());
        let call = Call::Submit {
            request: Some(request.request_id.as_str().to_owned()),
            enforcer: self.of.id.clone(),
            approver: self.approver(),
            body: None,
            lifetime_ms: u64::try_from(left.as_millis()).unwrap_or_default(),
        };
        self.of.world.recorder.invoke(&self.by, call)
    }

    /// Does what was approved. The use of the decision is recorded in the enforcer's journal already.
    fn act(&self, taken: &Taken) {
        let request = taken.request_id.as_str().to_owned();
        self.of.world.learn_unique(self.of.tenant, &request);
        let tenant = self.by.tenant.clone();
        self.of.world.recorder.acted(Act { client: self.of.id.clone(), tenant, request, decision: None });
    }

    /// Says what was done, now and then.
    async fn finish(&mut self, taken: Taken) {
        if self.rng.is_one_of(20) {
            let call = Call::Finish { request: taken.request_id.as_str().to_owned() };
            let open = self.of.world.recorder.invoke(&self.by, call);
            let done = Outcome::Applied { exit_status: Some(0) };
            match timeout(call_time(&self.of.world), self.client.finish(taken, done, &self.pins)).await {
                Ok(Ok(_)) => open.ok(Answer { status: 200, ..Answer::default() }),
                Ok(Err(error)) => open.unknown(Answer::none(error.to_string())),
                Err(_) => open.unknown(Answer::none("no answer in time")),
            }
        }
    }
}

/// The answer to something that was asked and decided in one call.
fn answer_of(taken: &Taken) -> Answer {
    Answer { status: 200, request: Some(taken.request_id.as_str().to_owned()), ..Answer::default() }
}
