//! Keeps one connection open, over the best transport that works, and passes on each message once.

use std::{future::pending, pin::Pin, sync::Arc, time::Duration};

use countersign_wire::msg_type::MsgType;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    acks::Acks,
    ladder::{Ladder, Outcome},
    lister::{Listed, Pace},
    memory::{Memory, Seen},
    message::{ChannelError, Event, Interrupted, Pushed, Settings, Transport},
    open_requests::OpenRequests,
    socket::Socket,
    stream::Stream,
};
use crate::{
    gateway::{
        http::{CallError, Http, OpenError},
        trouble::Trouble,
    },
    identity::profile::Party,
};

/// A connection that messages arrive on.
enum Connection {
    // Boxed: it is by far the largest.
    Socket(Box<Socket>),
    Stream(Box<Stream>),
    Poll,
}

/// A message and, of a stream, the position after it.
struct Received {
    text: String,
    position: Option<String>,
}

impl Connection {
    async fn open(
        http: &Http,
        party: &Party,
        transport: Transport,
        settings: &Settings,
        last: Option<&str>,
    ) -> Result<Self, OpenError> {
        let silence = settings.silence;
        Ok(match transport {
            Transport::Websocket => Self::Socket(Box::new(Socket::open(http, party, settings).await?)),
            Transport::Sse => Self::Stream(Box::new(Stream::open(http, party, silence, last).await?)),
            Transport::Poll => Self::Poll,
        })
    }

    /// The next message; `None` for anything else that was heard. It may be dropped and called again at any time.
    async fn next(&mut self) -> Result<Option<Received>, Interrupted> {
        match self {
            Self::Socket(socket) => Ok(socket.next().await?.map(|text| Received { text, position: None })),
            Self::Stream(stream) => {
                let event = stream.next().await?;
                Ok(event.map(|event| Received { text: event.data, position: event.id }))
            }
            Self::Poll => pending().await,
        }
    }

    /// Nothing could be heard while a message was passed on.
    fn touch(&mut self) {
        match self {
            Self::Socket(socket) => socket.touch(),
            Self::Stream(stream) => stream.touch(),
            Self::Poll => {}
        }
    }
}

/// Why the driver stops.
pub(super) enum Stop {
    /// Nobody reads the events.
    Unheard,
    /// The credential is not accepted.
    Refused(CallError),
}

/// How a connection has ended.
struct Ended {
    outcome: Outcome,
    reason: Trouble,
    lived: Duration,
    /// The gateway asked to come back after this time.
    retry_after: Duration,
}

type Probe = Pin<Box<dyn Future<Output = Option<(usize, Transport, Connection)>> + Send>>;

/// Owns the connection of one channel.
pub(super) struct Driver {
    pub(super) http: Http,
    pub(super) party: Party,
    pub(super) settings: Settings,
    pub(super) ladder: Ladder,
    pub(super) memory: Arc<Memory>,
    pub(super) acks: Acks,
    pub(super) pace: watch::Sender<Pace>,
    pub(super) listed: mpsc::Receiver<Listed>,
    pub(super) events: mpsc::Sender<Result<Event, ChannelError>>,
    pub(super) open_requests: OpenRequests,
    /// Whether the last word was that there is a connection; `None` before the first.
    pub(super) is_connected: Option<bool>,
    /// The position in the stream of events; `None` before the first.
    pub(super) position: Option<String>,
}

impl Driver {
    /// Runs until nobody listens or the credential is refused.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(stop) = self.connect_and_serve().await {
                if let Stop::Refused(error) = stop {
                    drop(self.events.send(Err(ChannelError::Refused(error))).await);
                }
                return;
            }
        }
    }

    async fn connect_and_serve(&mut self) -> Result<(), Stop> {
        let transport = self.ladder.transport();
        let (settings, last) = (&self.settings, self.position.as_deref());
        let ended = match Connection::open(&self.http, &self.party, transport, settings, last).await {
            Ok(connection) => self.serve(connection, transport).await?,
            Err(error) => not_opened(error)?,
        };
        self.pace.send_modify(|pace| pace.every = None);
        if self.is_connected != Some(false) {
            self.is_connected = Some(false);
            self.report(Event::Disconnected { reason: ended.reason }).await?;
        }
        let pause = self.ladder.ended(ended.outcome, ended.lived).max(ended.retry_after);
        tracing::debug!(reason = %ended.reason, ?pause, "a channel is not connected");
        sleep(pause).await;
        Ok(())
    }

    async fn report(&self, event: Event) -> Result<(), Stop> {
        self.events.send(Ok(event)).await.map_err(|_| Stop::Unheard)
    }

    /// Serves a connection until it ends. A better one takes its place as soon as there is one.
    async fn serve(&mut self, mut connection: Connection, transport: Transport) -> Result<Ended, Stop> {
        self.connected(transport).await?;
        let mut opened_at = Instant::now();
        let (mut was_heard, mut probe) = (false, self.probe());
        let (outcome, reason) = loop {
            tokio::select! {
                received = connection.next() => {
                    let understood = match received {
                        Ok(Some(received)) => self.received(received).await?,
                        Ok(None) => true,
                        Err(Interrupted::NotUnderstood) => false,
                        Err(Interrupted::Ended(reason)) if was_heard => break (Outcome::Worked, reason),
                        Err(Interrupted::Ended(reason)) => break (Outcome::Useless, reason),
                    };
                    if !understood {
                        break (Outcome::Useless, Trouble::NotUnderstood);
                    }
                    was_heard = true;
                    connection.touch();
                }
                Some(listed) = self.listed.recv() => {
                    match self.found(listed).await? {
                        None => was_heard = was_heard || matches!(connection, Connection::Poll),
                        Some(error) if matches!(connection, Connection::Poll) => {
                            let outcome = if was_heard { Outcome::Worked } else { outcome(&error) };
                            break (outcome, trouble(&error));
                        }
                        Some(error) => tracing::debug!(%error, "a listing failed"),
                    }
                    connection.touch();
                }
                better = &mut probe => {
                    match better {
                        Some((level, transport, better)) => {
                            connection = better;
                            (was_heard, opened_at) = (false, Instant::now());
                            self.ladder.went_up(level);
                            self.connected(transport).await?;
                        }
                        None => self.ladder.stays_down(),
                    }
                    probe = self.probe();
                }
            }
        };
        Ok(Ended { outcome, reason, lived: opened_at.elapsed(), retry_after: Duration::ZERO })
    }

    async fn connected(&mut self, transport: Transport) -> Result<(), Stop> {
        let every = match transport {
            Transport::Poll => self.settings.poll_every,
            Transport::Websocket | Transport::Sse => self.settings.list_every,
        };
        self.pace.send_modify(|pace| pace.every = Some(every));
        self.is_connected = Some(true);
        self.report(Event::Connected { transport }).await
    }

    /// Opens a better connection when it is time to try.
    fn probe(&self) -> Probe {
        let Some((at, better)) = self.ladder.better() else { return Box::pin(pending()) };
        let (http, party, settings) = (self.http.clone(), self.party.clone(), self.settings.clone());
        let position = self.position.clone();
        Box::pin(async move {
            sleep_until(at).await;
            for (level, transport) in better {
                let opened = Connection::open(&http, &party, transport, &settings, position.as_deref()).await;
                if let Ok(connection) = opened {
                    return Some((level, transport, connection));
                }
            }
            None
        })
    }

    /// Returns whether what was received is understood.
    async fn received(&mut self, received: Received) -> Result<bool, Stop> {
        let Some(pushed) = Pushed::read(received.text) else { return Ok(false) };
        self.pass_on(pushed, true).await?;
        if received.position.is_some() {
            self.position = received.position;
        }
        Ok(true)
    }

    /// Passes on a message that was not passed on before. One that is pushed again although it was acknowledged is
    /// acknowledged again; what is listed stays in the list.
    async fn pass_on(&mut self, pushed: Pushed, is_pushed: bool) -> Result<(), Stop> {
        let Some(event) = Event::of(pushed.clone()) else { return Ok(()) };
        // A refresh without an id looks like every other one of its request; heard twice, it has no effect again.
        let is_known = pushed.given_id().is_some() || pushed.msg_type != MsgType::RefreshRequest;
        match self.memory.see(&pushed.msg_id) {
            Seen::Never => {}
            Seen::Before(_) if !is_known => {}
            Seen::Before(acknowledged) => {
                if let Some(status) = acknowledged.filter(|_| is_pushed) {
                    self.acks.acknowledge(&pushed, status);
                }
                return Ok(());
            }
        }
        match &event {
            Event::Request(_) => self.open_requests.insert(pushed.request_id),
            Event::Withdrawn(_) => self.open_requests.remove(&pushed.request_id),
            // It can close a request and nothing else: one that says that it waits is not passed on.
            Event::Status(status) if status.ended().is_some() => {
                self.open_requests.remove(&pushed.request_id);
            }
            Event::Status(_) => return Ok(()),
            _ => {}
        }
        self.report(event).await
    }

    /// Takes what a listing found; returns the error if it failed.
    async fn found(&mut self, listed: Listed) -> Result<Option<CallError>, Stop> {
        match listed {
            Listed::Begun(number) => self.open_requests.listing_begun(number),
            Listed::Item(pushed) => {
                self.open_requests.found(pushed.request_id.clone());
                self.pass_on(pushed, false).await?;
            }
            Listed::Ended(request_id, state) => self.report(Event::Gone { request_id, state }).await?,
            Listed::Done(is_complete) => {
                for request_id in self.open_requests.listing_done(is_complete) {
                    self.report(Event::Gone { request_id, state: None }).await?;
                }
            }
            Listed::Failed(error) => {
                return is_final(&error).map_or(Ok(Some(error)), |error| Err(Stop::Refused(error)));
            }
        }
        Ok(None)
    }
}

/// The same error, if the credential is not accepted.
fn is_final(error: &CallError) -> Option<CallError> {
    matches!(error, CallError::Refused { status: 401 | 403, .. }).then(|| error.clone())
}

/// A call that failed, as what is wrong with the connection.
fn trouble(error: &CallError) -> Trouble {
    match error {
        CallError::Unreachable { reason, .. } => *reason,
        CallError::Refused { status, code, .. } => Trouble::Refused { status: *status, code: *code },
        CallError::NotUnderstood => Trouble::NotUnderstood,
    }
}

fn outcome(error: &CallError) -> Outcome {
    if error.is_retryable() { Outcome::NoGateway } else { Outcome::Useless }
}

/// A connection was not opened. That the credential is not known is final, and so is a denial of the gateway's own, whatever
/// its code; something between may deny one transport and let another one pass.
fn not_opened(error: OpenError) -> Result<Ended, Stop> {
    let (outcome, reason, retry_after) = match error {
        OpenError::Unreachable(reason) => (Outcome::NoGateway, reason, None),
        OpenError::Failed(reason) => (Outcome::Useless, reason, None),
        OpenError::Refused { error, is_of_protocol } => {
            let is_denied = matches!(error, CallError::Refused { status: 403, .. });
            if matches!(error, CallError::Refused { status: 401, .. }) || (is_denied && is_of_protocol) {
                return Err(Stop::Refused(error));
            }
            let retry_after = match &error {
                CallError::Refused { retry_after, .. } => *retry_after,
                _ => None,
            };
            (outcome(&error), trouble(&error), retry_after)
        }
    };
    Ok(Ended { outcome, reason, lived: Duration::ZERO, retry_after: retry_after.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use countersign_wire::failure::Code;

    use super::*;

    fn refused(status: u16, code: &str, retryable: bool) -> OpenError {
        let retry_after = Some(Duration::from_secs(7));
        let error = CallError::Refused { status, code: Code::of(code), retryable, retry_after };
        OpenError::Refused { error, is_of_protocol: !code.is_empty() }
    }

    #[test]
    fn only_the_gateway_itself_can_end_a_channel() {
        for (status, code) in [
            (401, "PROTO_ERR_UNAUTHENTICATED"),
            (403, "PROTO_ERR_FORBIDDEN"),
            // The codes of other gateways.
            (401, "PROTO_ERR_NO_CREDENTIAL"),
            (401, ""),
            (403, "PROTO_ERR_ACCESS_DENIED"),
        ] {
            assert!(matches!(not_opened(refused(status, code, false)), Err(Stop::Refused(_))), "{code}");
        }
        let outcome =
            |error| not_opened(error).map_or(None, |ended| Some((ended.outcome, ended.retry_after)));
        let later = Duration::from_secs(7);
        // Something between that lets no WebSocket pass.
        assert_eq!(outcome(refused(403, "", false)), Some((Outcome::Useless, later)));
        assert_eq!(outcome(refused(404, "PROTO_ERR_NOT_FOUND", false)), Some((Outcome::Useless, later)));
        assert_eq!(outcome(refused(429, "PROTO_ERR_RATE_LIMITED", true)), Some((Outcome::NoGateway, later)));
        let unreachable = OpenError::Unreachable(Trouble::ConnectionRefused);
        assert_eq!(outcome(unreachable), Some((Outcome::NoGateway, Duration::ZERO)));
    }
}
