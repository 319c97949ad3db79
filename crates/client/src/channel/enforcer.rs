//! What an enforcer hears, live.

use std::{collections::BTreeMap, future::pending, time::Duration};

use countersign_wire::{exchange::ExchangeState, id::RequestId, prompt::PromptSubmit};
use tokio::time::{Instant, sleep_until};

use super::{
    handle::Channel,
    message::{ChannelError, Event, Pushed, Settings, Transport},
};
use crate::{
    ends::{
        enforcer::Enforcer,
        prompt::{self, OpenedPrompt, PromptReader, PromptRefused},
    },
    exchange::{reply::Rejected, request::Request, taken::Taken},
    gateway::trouble::Trouble,
    identity::profile::{Party, Pins},
};

/// When a request has expired, the gateway is asked what became of it after this time.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// What the gateway has not answered this long after it expired has ended.
const END_AFTER: Duration = Duration::from_secs(10);

/// What an enforcer hears.
#[derive(Debug)]
#[non_exhaustive]
pub enum EnforcerEvent {
    /// Messages arrive over this transport from now on. Prompts and refreshes arrive over a WebSocket only.
    Connected {
        /// A WebSocket carries everything; the others carry decisions only.
        transport: Transport,
    },
    /// No messages arrive at the moment.
    Disconnected {
        /// Why, in our own words.
        reason: Trouble,
    },
    /// The answer to a request that is waited for: one that passed every check and is recorded as used, or the check that
    /// it failed. Each request has one answer; only a journal that can't be written is tried again.
    Decided {
        /// The request as it was submitted.
        request: Box<Request>,
        /// One use of the decision. Anything but an approval in here means: do not do what was asked for.
        taken: Result<Box<Taken>, Rejected>,
    },
    /// A request that is waited for has ended without an answer.
    Ended {
        /// The request as it was submitted, which is not waited for any more.
        request: Box<Request>,
        /// Its state, such as `expired`; `None` if the gateway does not know it, or did not say in time.
        state: Option<ExchangeState>,
    },
    /// An approver asks to submit this again, under a new id. It is the gateway's word. It is not acknowledged: whoever waits
    /// for that request, in this process or another one, does so with [`Enforcer::ask_again`].
    Refresh {
        /// The exchange that is meant.
        request_id: RequestId,
        /// Why, in words that anybody could have written.
        reason: Option<String>,
    },
    /// A prompt that passed every check and is recorded as taken. Answer it with [`Enforcer::answer_prompt`].
    Prompt(Box<OpenedPrompt>),
    /// A prompt that failed a check, which has been answered.
    PromptRefused {
        /// The id of the prompt.
        request_id: RequestId,
        /// The check that it failed.
        error: PromptRefused,
    },
}

/// What arrives for an enforcer, live. See [`Enforcer::listen`].
pub struct EnforcerListener<'a> {
    enforcer: &'a Enforcer,
    channel: Channel,
    waited_for: BTreeMap<RequestId, Waiting>,
}

/// A request that is waited for.
struct Waiting {
    request: Request,
    /// When to ask what became of it; `None` once that was done.
    ask_at: Option<Instant>,
    end_at: Instant,
}

impl Waiting {
    fn due_at(&self) -> Instant {
        self.ask_at.unwrap_or(self.end_at)
    }
}

impl Enforcer {
    /// Listens for prompts, refreshes, and the answers to requests that were submitted, also by an earlier process. Who
    /// asks once and ends uses [`Enforcer::ask`], which opens no channel.
    pub fn listen(&self, requests: Vec<Request>, settings: Settings) -> EnforcerListener<'_> {
        let party = Party::Enforcer(self.id.clone());
        let channel = Channel::open(self.http.clone(), party, self.clock.clone(), settings);
        let mut listener = EnforcerListener { enforcer: self, channel, waited_for: BTreeMap::new() };
        for request in requests {
            listener.watch(request);
        }
        listener
    }
}

impl EnforcerListener<'_> {
    /// Waits for the answer to one more request. Other answers are left for whoever waits for them.
    pub fn watch(&mut self, request: Request) {
        let expires = Instant::now() + request.expires_at.since(self.enforcer.clock.now());
        self.channel.watch(request.request_id.clone());
        let waiting = Waiting { ask_at: Some(expires + ASK_AFTER), end_at: expires + END_AFTER, request };
        self.waited_for.insert(waiting.request.request_id.clone(), waiting);
    }

    /// The next event. `pins` are those of now: what arrives is checked when it is handed out. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self, pins: &Pins) -> Result<EnforcerEvent, ChannelError> {
        loop {
            let due_at = self.waited_for.values().map(Waiting::due_at).min();
            let due = async {
                match due_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            let event = tokio::select! {
                event = self.channel.next() => self.take(event?, pins),
                () = due => self.due(),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// A request has expired: the gateway is asked, and if it does not answer, the request has ended all the same.
    fn due(&mut self) -> Option<EnforcerEvent> {
        let now = Instant::now();
        let ended = self.waited_for.values().find(|waiting| waiting.end_at <= now);
        if let Some(request_id) = ended.map(|waiting| waiting.request.request_id.clone()) {
            let request = Box::new(self.stop_waiting(&request_id)?);
            return Some(EnforcerEvent::Ended { request, state: None });
        }
        for waiting in self.waited_for.values_mut() {
            if waiting.ask_at.take_if(|at| *at <= now).is_some() {
                self.channel.list();
            }
        }
        None
    }

    /// What is reported of an event. No waiting, so that an answer that was recorded as used is also handed out.
    fn take(&mut self, event: Event, pins: &Pins) -> Option<EnforcerEvent> {
        match event {
            Event::Connected { transport } => Some(EnforcerEvent::Connected { transport }),
            Event::Disconnected { reason } => Some(EnforcerEvent::Disconnected { reason }),
            Event::Decision(pushed) => self.decided(&pushed, pins),
            Event::Gone { request_id, state } => {
                let request = Box::new(self.stop_waiting(&request_id)?);
                Some(EnforcerEvent::Ended { request, state })
            }
            Event::Refresh(pushed) => {
                let reason = pushed.reason();
                Some(EnforcerEvent::Refresh { request_id: pushed.request_id, reason })
            }
            Event::Prompt(pushed) => Some(self.prompted(&pushed, pins)),
            Event::Request(_)
            | Event::Withdrawn(_)
            | Event::Status(_)
            | Event::PromptAck(_)
            | Event::Session(_) => None,
        }
    }

    fn stop_waiting(&mut self, request_id: &RequestId) -> Option<Request> {
        self.channel.unwatch(request_id);
        Some(self.waited_for.remove(request_id)?.request)
    }

    fn decided(&mut self, pushed: &Pushed, pins: &Pins) -> Option<EnforcerEvent> {
        let waiting = self.waited_for.get(&pushed.request_id);
        let Some(request) = waiting.map(|waiting| waiting.request.clone()) else {
            // Somebody else waits for it, or somebody here does later.
            self.channel.forget(pushed);
            return None;
        };
        let taken = match pushed.envelope() {
            Some(envelope) => self.enforcer.take_now(envelope.body.as_str(), &request, pins),
            None => Err(Rejected::Malformed),
        };
        match &taken {
            // It is recorded, so it may be acknowledged.
            Ok(_) => {
                self.channel.acknowledge(pushed, "processed");
                self.stop_waiting(&request.request_id);
            }
            Err(Rejected::Journal(_)) => self.channel.forget(pushed),
            Err(_) => drop(self.stop_waiting(&request.request_id)),
        }
        Some(EnforcerEvent::Decided { request: Box::new(request), taken: taken.map(Box::new) })
    }

    fn prompted(&self, pushed: &Pushed, pins: &Pins) -> EnforcerEvent {
        let Enforcer { id, keys, clock, journal, .. } = self.enforcer;
        let reader = PromptReader { enforcer: id.as_str(), keys, pins, journal: &**journal };
        let envelope = pushed.envelope();
        let opened = envelope.as_ref().ok_or(PromptRefused::Malformed);
        match opened.and_then(|envelope| reader.open(envelope, clock.now())) {
            Ok(prompt) => EnforcerEvent::Prompt(Box::new(prompt)),
            Err(error) => {
                let body = envelope.and_then(|envelope| envelope.body.view::<PromptSubmit<'_>>().ok());
                let hash = body.map(|body| match body.into_view() {
                    PromptSubmit::Sealed(sealed) => sealed.prompt_hash,
                    PromptSubmit::Open(open) => open.prompt_hash,
                });
                if let Some(hash) = hash {
                    let status = error.status();
                    self.channel.send(prompt::answer(id, &pushed.request_id, hash, status, clock.now()));
                }
                EnforcerEvent::PromptRefused { request_id: pushed.request_id.clone(), error }
            }
        }
    }
}
