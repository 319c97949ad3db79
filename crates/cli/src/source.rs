//! Where requests come from.

use std::{
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    home::failed,
};
use countersign_client::{
    approver::{Approver, InboxItem},
    channel::{Channel, Event, Settings, Transport},
    profile::{Party, Profile},
};
use countersign_wire::{exchange::ExchangeState, id::RequestId};
use tokio::time::{Instant, sleep_until, timeout};

/// The pause between two readings of the inbox.
const PAUSE: Duration = Duration::from_secs(2);

/// Two readings are at least this far apart, however much arrives.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// How long the first reading may take before that is said. Each that fails has twice the time, up to the longest.
const FIRST_PATIENCE: Duration = Duration::from_millis(2_500);

/// The longest time for a reading.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// What a source tells.
#[derive(Debug)]
pub enum Incoming {
    /// Everything that waits at the time of a reading.
    Inbox(Vec<InboxItem>),
    /// A request has ended like this. It is the gateway's word, and closes the request here; nothing else.
    Ended(RequestId, ExchangeState),
}

/// Something that tells what waits.
pub trait Source: Send {
    /// Waits until there is something to tell. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Incoming, Failure>> + Send;
}

/// Reads the inbox every two seconds, and hears at once what ends and what is new.
pub struct Live {
    approver: Arc<Approver>,
    profile: Profile,
    due: Instant,
    read_at: Option<Instant>,
    patience: Duration,
    hearing: Hearing,
}

/// What is pushed, for as long as the gateway takes the credential for that. The readings find the same, a little later.
enum Hearing {
    /// A channel belongs to the runtime that it is opened on, so it is opened by whoever first waits.
    NotYet,
    Open(Box<Channel>),
    Closed,
}

impl Live {
    /// The first reading is at once.
    pub fn new(approver: Arc<Approver>, profile: Profile) -> Self {
        let (due, patience) = (Instant::now(), FIRST_PATIENCE);
        Self { approver, profile, due, read_at: None, patience, hearing: Hearing::NotYet }
    }

    fn open(&self) -> Hearing {
        let Approver { http, id, clock, .. } = &*self.approver;
        let settings = Settings { transports: vec![Transport::Websocket], ..Settings::default() };
        let party = Party::Approver(id.clone());
        Hearing::Open(Box::new(Channel::open(http.clone(), party, Arc::clone(clock), settings)))
    }

    async fn read(&mut self) -> Result<Vec<InboxItem>, Failure> {
        // Pins are read each time: a machine that was revoked meanwhile does not count any more.
        let items = match self.profile.pins().map_err(failed) {
            // A call is tried again for half a minute. Whoever looks at the screen is told sooner.
            Ok(pins) => match timeout(self.patience, self.approver.inbox(&pins)).await {
                Ok(items) => items.map_err(|error| describe(&error)),
                Err(_) => Err(self.no_answer()),
            },
            Err(failure) => Err(failure),
        };
        self.patience = match &items {
            Ok(_) => FIRST_PATIENCE,
            Err(_) => (self.patience * 2).min(LAST_PATIENCE),
        };
        let now = Instant::now();
        (self.read_at, self.due) = (Some(now), now + PAUSE);
        items
    }

    fn no_answer(&self) -> Failure {
        let gateway = self.approver.http.gateway().as_str();
        Failure::new(Exit::Unreachable, format!("the gateway at {gateway} does not answer"))
    }

    /// What an event tells. A new request is opened and checked by the reading, which is due then.
    fn take(&mut self, event: &Event) -> Option<Incoming> {
        let Hearing::Open(channel) = &self.hearing else { return None };
        match event {
            Event::Request(pushed) => {
                channel.acknowledge(pushed, "received");
                let soon = self.read_at.map_or_else(Instant::now, |at| at + MIN_PAUSE);
                self.due = self.due.min(soon);
                None
            }
            Event::Withdrawn(pushed) => {
                channel.acknowledge(pushed, "received");
                Some(Incoming::Ended(pushed.request_id.clone(), ExchangeState::Withdrawn))
            }
            Event::Status(pushed) => Some(Incoming::Ended(pushed.request_id.clone(), pushed.ended()?)),
            // The gateway may be gone, or back: the next reading says which.
            Event::Connected { .. } | Event::Disconnected { .. } => {
                self.due = self.due.min(self.read_at.map_or_else(Instant::now, |at| at + MIN_PAUSE));
                None
            }
            _ => None,
        }
    }
}

impl Source for Live {
    async fn next(&mut self) -> Result<Incoming, Failure> {
        if let Hearing::NotYet = self.hearing {
            self.hearing = self.open();
        }
        loop {
            let heard = async {
                match &mut self.hearing {
                    Hearing::Open(channel) => channel.next().await,
                    Hearing::NotYet | Hearing::Closed => pending().await,
                }
            };
            let event = tokio::select! {
                () = sleep_until(self.due) => None,
                event = heard => Some(event),
            };
            match event {
                None => return self.read().await.map(Incoming::Inbox),
                Some(Ok(event)) => {
                    if let Some(incoming) = self.take(&event) {
                        return Ok(incoming);
                    }
                }
                // The readings say what is wrong.
                Some(Err(_)) => self.hearing = Hearing::Closed,
            }
        }
    }
}
