//! The caller's end of a channel.

use std::sync::{Arc, atomic::AtomicU64};

use countersign_wire::id::RequestId;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::{
    acks::Acks,
    driver::Driver,
    ladder::Ladder,
    lister::{Lister, Pace, Watched},
    memory::Memory,
    message::{ChannelError, Event, Pushed, Settings},
    open_requests::OpenRequests,
};
use crate::{
    clock::Clock,
    gateway::http::{Call, Http},
    identity::profile::Party,
};

/// Events that may wait for the caller. A gateway that sends faster is not read, so it can't fill the memory.
const QUEUE: usize = 4;

/// A task that ends when this is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a gateway pushes to one party, for as long as this lives. Reconnects without end; drop it to stop.
///
/// Each message is handed out once. The gateway sends it again until it is acknowledged, also to a later process.
pub struct Channel {
    events: mpsc::Receiver<Result<Event, ChannelError>>,
    error: Option<ChannelError>,
    watched: Watched,
    pace: watch::Sender<Pace>,
    acks: Acks,
    _tasks: [Task; 2],
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("error", &self.error).finish_non_exhaustive()
    }
}

impl Channel {
    /// Connects as a party, on tokio's runtime. The credential must be that party's.
    pub fn open(http: Http, party: Party, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let memory = Arc::new(Memory::default());
        let (watched, begun) = (Watched::default(), Arc::new(AtomicU64::new(0)));
        let (pace, listing_pace) = watch::channel(Pace::default());
        let (found, findings) = mpsc::channel(1);
        let (sender, events) = mpsc::channel(QUEUE);
        let acks = Acks::start(http.clone(), party.clone(), clock, memory.clone());
        let lister = Lister {
            http: http.clone(),
            party: party.clone(),
            watched: watched.clone(),
            begun: begun.clone(),
            pace: listing_pace,
            found,
        };
        let driver = Driver {
            http,
            party,
            ladder: Ladder::new(&settings),
            settings,
            memory,
            acks: acks.clone(),
            pace: pace.clone(),
            listed: findings,
            events: sender,
            open_requests: OpenRequests::new(begun),
            is_connected: None,
            position: None,
        };
        let tasks = [tokio::spawn(lister.run()), tokio::spawn(driver.run())].map(Task);
        Self { events, error: None, watched, pace, acks, _tasks: tasks }
    }

    /// The next event. After an error there is only that error. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Event, ChannelError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let event = self.events.recv().await.unwrap_or(Err(ChannelError::Stopped));
        event.inspect_err(|error| self.error = Some(error.clone()))
    }

    /// Acknowledges a message, in the background: the gateway does not send it again. If it does, because this was
    /// lost, it is acknowledged again.
    pub fn acknowledge(&self, pushed: &Pushed, status: &'static str) {
        self.acks.acknowledge(pushed, status);
    }

    /// Hands out a message once more when it comes again.
    pub fn forget(&self, pushed: &Pushed) {
        self.acks.forget(&pushed.msg_id);
    }

    /// Also asks for the answer to this request: now, from time to time, and whenever there is no connection that pushes.
    pub fn watch(&self, request_id: RequestId) {
        self.watched.lock().insert(request_id);
        self.list();
    }

    /// Asks now for what waits, and not only from time to time.
    pub fn list(&self) {
        self.pace.send_modify(|pace| pace.asked_for += 1);
    }

    /// Does not ask for it any more.
    pub fn unwatch(&self, request_id: &RequestId) {
        self.watched.lock().remove(request_id);
    }

    pub(super) fn send(&self, call: Call) {
        self.acks.send(call);
    }
}
