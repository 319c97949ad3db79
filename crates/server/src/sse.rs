//! SSE streams: `id`, `event`, `data`, each event once per connection and history of the store.

use std::{pin::pin, time::Duration};

use axum::http::{HeaderValue, Response, header};
use countersign_core::{delivery::feed::FeedItem, random::RandomSource};
use countersign_wire::hash::Sha256Hex;
use tokio::time::{Instant, interval_at};
use tracing::Instrument as _;

use crate::{
    auth::{KeyStatus, RevocationWatch},
    cors,
    delivery::{Subscriber, Subscription},
    ids::HttpRequestId,
    metrics::PushMeter,
    net::socket::{Socket, response_head},
    random::SystemRandom,
    secrets::Secret,
    state::SharedState,
    traces::SPANS,
};

/// A keepalive is sent this often.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// The client reconnects after this delay.
const RETRY_MILLIS: u32 = 1_000;

/// At a shutdown, clients are told to reconnect after a delay that is spread over this time.
const RECONNECT_SPREAD_MILLIS: u32 = 4_000;

/// One SSE stream after its head was accepted.
pub(crate) struct SseStream {
    pub(crate) app: SharedState,
    pub(crate) revocation: RevocationWatch,
    pub(crate) subscriber: Subscriber,
    pub(crate) subscription: Subscription,
    pub(crate) http_id: HttpRequestId,
    /// The website that may read the stream, beside the gateway's own.
    pub(crate) origin: Option<HeaderValue>,
    pub(crate) meter: PushMeter,
    /// The last number that was sent, by mailbox.
    pub(crate) positions: Vec<u64>,
}

impl SseStream {
    /// Until the client disconnects or is too slow, or the gateway shuts down.
    pub(crate) async fn run(&mut self, socket: &mut Socket) -> Option<()> {
        socket.limit_send_buffer();
        Box::pin(self.open(socket)).await?;
        let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        let drain = self.app.drain.clone();
        let mut drain_begun = pin!(drain.begun());
        loop {
            // One message at a time: between two of them the stream checks whether it has to end.
            tokio::select! {
                item = self.subscription.next() => match item {
                    Ok(item) => {
                        // Boxed, so that an idle stream does not carry the memory for it.
                        let span = tracing::trace_span!(target: SPANS, "push", otel.kind = "producer");
                        Box::pin(self.send(socket, item).instrument(span)).await?;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "an SSE stream ended; its client will reconnect");
                        return None;
                    }
                },
                _ = pings.tick() => socket.write(b"event: ping\ndata:\n\n").await.ok()?,
                () = &mut drain_begun => {
                    let random: &dyn RandomSource = &SystemRandom;
                    let spread = RETRY_MILLIS + u32::from(random.byte()) * RECONNECT_SPREAD_MILLIS / 256;
                    return socket.write(format!("retry: {spread}\n\n").as_bytes()).await.ok();
                }
                () = self.revocation.changed() => match self.revocation.check().await {
                    KeyStatus::Active | KeyStatus::Unknown => {}
                    KeyStatus::Revoked | KeyStatus::Unconfirmed => return None,
                },
                () = socket.disconnected_for_good() => return None,
            }
        }
    }

    async fn open(&self, socket: &mut Socket) -> Option<()> {
        let mut opening = self.head();
        opening.extend_from_slice(format!("retry: {RETRY_MILLIS}\n\n").as_bytes());
        socket.write(&opening).await.ok()
    }

    fn head(&self) -> Vec<u8> {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // The stream ends with the connection, and proxies must not buffer it.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        if let Some(origin) = &self.origin {
            cors::allow(origin, headers);
        }
        self.http_id.put_on(&mut response);
        response_head(&response)
    }

    /// The event as it is written; nothing else of the message is kept. The outer `None`: store unavailable.
    async fn text(&self, item: &FeedItem) -> Option<Option<Vec<u8>>> {
        let message = match self.subscription.message(item).await {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, "an SSE stream ended; its client will reconnect");
                return None;
            }
        };
        let Some(message) = message else { return Some(None) };
        let envelope = match self.app.message(&message, &self.subscriber.party) {
            Ok(envelope) => envelope,
            Err(error) => {
                error.log(&self.http_id);
                return Some(None);
            }
        };
        let id = EventId { subscriber: &self.subscriber, timeline: self.app.gateway.timeline() }
            .write(&self.app.secret, &self.positions);
        Some(Some(event(&id, message.msg_type.as_str(), &envelope)))
    }

    async fn send(&mut self, socket: &mut Socket, item: FeedItem) -> Option<()> {
        // The body is fetched now and not before: a slow client holds one message in memory, never a queue.
        let started = Instant::now();
        self.positions[item.source] = item.delivery.number;
        match self.text(&item).await? {
            Some(text) => {
                socket.write(&text).await.ok()?;
                let (core, committed) = (self.app.gateway.metrics(), Some(item.delivery.at));
                self.meter.sent(core, &item.delivery.msg_type, committed, started);
                Some(())
            }
            None => Some(()),
        }
    }
}

/// Line breaks between the tokens of a body would end the event, so each line gets its own `data:`. A reader joins
/// them with LF, which changes no token.
fn event(id: &str, name: &str, data: &[u8]) -> Vec<u8> {
    let mut text = format!("id: {id}\nevent: {name}\n").into_bytes();
    text.reserve(data.len() + 16);
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.push(b'\n');
    text
}

/// The `id` of an event: the positions of the client once it has the event, signed for this subscriber.
pub(crate) struct EventId<'a> {
    pub(crate) subscriber: &'a Subscriber,
    /// The history of the store that the positions are from: in another they mean other deliveries.
    pub(crate) timeline: u64,
}

impl EventId<'_> {
    fn write(&self, secret: &Secret, positions: &[u64]) -> String {
        let numbers: Vec<String> = positions.iter().map(ToString::to_string).collect();
        let numbers = numbers.join("-");
        let mac = self.with_parts(&numbers, |parts| short(secret.mac(PURPOSE, parts)));
        format!("{numbers}.{mac}")
    }

    /// The positions in `Last-Event-ID`; `None` if it is not one of ours.
    pub(crate) fn read(&self, secret: &Secret, id: &str) -> Option<Vec<u64>> {
        let (numbers, mac) = id.split_once('.')?;
        if !self.with_parts(numbers, |parts| secret.macs(PURPOSE, parts).any(|ours| mac == short(ours))) {
            return None;
        }
        numbers.split('-').map(|number| number.parse().ok()).collect()
    }

    /// What is signed of an id.
    fn with_parts<T>(&self, numbers: &str, sign: impl FnOnce(&[&[u8]]) -> T) -> T {
        let who = format!("{:?}", self.subscriber.party);
        let timeline = self.timeline.to_be_bytes();
        let tenant = self.subscriber.tenant.as_str().as_bytes();
        sign(&[tenant, who.as_bytes(), &timeline, numbers.as_bytes()])
    }
}

const PURPOSE: &str = "event id";

/// A MAC as it is written into an id.
fn short(mac: Sha256Hex) -> String {
    mac.to_string()[..24].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_no_line_breaks_but_its_own() {
        let text = event("1", "approval.request", b"{\"a\":\r\n1,\n\"b\":2}");
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "id: 1\nevent: approval.request\ndata: {\"a\":\ndata: \ndata: 1,\ndata: \"b\":2}\n\n"
        );
    }

    #[test]
    fn an_event_id_is_valid_for_its_own_subscriber_only() {
        use countersign_core::delivery::message::Party;
        use countersign_wire::presence::Transport;
        let secret = Secret::random();
        let subscriber = |tenant: &str, party: Party| Subscriber {
            tenant: tenant.parse().unwrap(),
            party,
            transport: Transport::Sse,
        };
        let ada = subscriber("acme", Party::Approver("ada".parse().unwrap()));
        let id = EventId { subscriber: &ada, timeline: 1 }.write(&secret, &[3, 9]);
        assert_eq!(EventId { subscriber: &ada, timeline: 1 }.read(&secret, &id), Some(vec![3, 9]));
        for other in [
            subscriber("other", Party::Approver("ada".parse().unwrap())),
            subscriber("acme", Party::Approver("bob".parse().unwrap())),
            subscriber("acme", Party::Enforcer("ada".parse().unwrap())),
        ] {
            assert_eq!(EventId { subscriber: &other, timeline: 1 }.read(&secret, &id), None);
        }
        assert_eq!(
            EventId { subscriber: &ada, timeline: 2 }.read(&secret, &id),
            None,
            "numbers mean others there"
        );
        for forged in ["", "3-9", "4-9.", &id.replacen('3', "4", 1), "x.y"] {
            assert_eq!(EventId { subscriber: &ada, timeline: 1 }.read(&secret, forged), None);
        }
    }
}
