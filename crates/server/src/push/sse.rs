//! Server-sent events: `id`, `event`, `data`, each event once per connection.

use std::{collections::VecDeque, time::Duration};

use axum::http::{HeaderValue, Response, header};
use countersign_core::{delivery::feed::FeedItem, random::RandomSource, store::Delivery};
use tokio::time::interval_at;

use super::tellings::{Listening, Tellings};
use crate::{
    app::Shared,
    auth::Standing,
    http::{
        held::{Socket, head},
        request_id::HttpRequestId,
    },
    secrets::{Secret, SystemRandom},
};

/// A keepalive is sent this often.
const PING: Duration = Duration::from_secs(15);

/// After a lost connection the client comes back after this.
const RETRY_MILLIS: u32 = 1_000;

/// When a gateway stops, its clients come back spread over this.
const SPREAD_MILLIS: u32 = 4_000;

/// One stream.
pub(crate) struct Stream {
    pub(crate) app: Shared,
    pub(crate) standing: Standing,
    pub(crate) listening: Listening,
    pub(crate) tellings: Tellings,
    pub(crate) http_id: HttpRequestId,
    /// How far the client is, by lane.
    pub(crate) places: Vec<u64>,
}

impl Stream {
    /// Until the client goes, or is too slow, or the gateway stops.
    pub(crate) async fn run(mut self: Box<Self>, mut socket: Socket) -> Option<()> {
        socket.send_little_ahead();
        let mut opening = self.head();
        opening.extend_from_slice(format!("retry: {RETRY_MILLIS}\n\n").as_bytes());
        socket.write(&opening).await.ok()?;
        drop(opening);
        let mut pings = interval_at(tokio::time::Instant::now() + PING, PING);
        let mut queue: VecDeque<FeedItem> = VecDeque::new();
        loop {
            // One message at a time: between two of them a stream hears that it is to end.
            tokio::select! {
                told = self.tellings.next(), if queue.is_empty() => match told {
                    Ok(told) => queue.extend(told),
                    Err(error) => {
                        tracing::warn!(%error, "a stream ends, its client will come back");
                        return None;
                    }
                },
                Some(told) = async { queue.pop_front() } => {
                    // Boxed, so that a stream at rest does not carry the room for it.
                    Box::pin(self.tell(&mut socket, told)).await?;
                }
                _ = pings.tick() => socket.write(b"event: ping\ndata:\n\n").await.ok()?,
                () = self.app.drain.begun() => {
                    let chance: &dyn RandomSource = &SystemRandom;
                    let spread = RETRY_MILLIS + u32::from(chance.byte()) * SPREAD_MILLIS / 256;
                    return socket.write(format!("retry: {spread}\n\n").as_bytes()).await.ok();
                }
                () = self.standing.changed() => if !self.standing.holds().await { return None },
                () = socket.gone() => return None,
            }
        }
    }

    fn head(&self) -> Vec<u8> {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // The stream ends with the connection; and proxies must pass on what they get.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        self.http_id.put_on(&mut response);
        head(&response)
    }

    /// The event as it is written, and nothing else of the message is kept. The outer none: the store is away.
    async fn text(&self, delivery: &Delivery) -> Option<Option<Vec<u8>>> {
        let turn = self.app.push_reads.acquire().await.ok()?;
        let message = self.app.gateway.message(&self.listening.tenant, delivery).await.ok()?;
        drop(turn);
        let Some(message) = message else { return Some(None) };
        let Some(envelope) = self.app.message(&message, &self.listening.who) else { return Some(None) };
        let id = EventId { listening: &self.listening }.write(&self.app.secret, &self.places);
        Some(Some(event(&id, message.msg_type.as_str(), &envelope)))
    }

    async fn tell(
        &mut self,
        socket: &mut Socket,
        FeedItem { source: lane, delivery }: FeedItem,
    ) -> Option<()> {
        // The body is fetched now and not before: a slow client holds one message, never a queue.
        self.places[lane] = delivery.number;
        match self.text(&delivery).await? {
            Some(text) => socket.write(&text).await.ok(),
            None => Some(()),
        }
    }
}

/// Line breaks between the tokens of a body would end the event, so each line gets its own `data:`. A reader puts
/// them together with LF, which changes no token.
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

/// The `id` of an event: how far the client is when it has it. Made by this gateway for this reader, or not at all.
pub(crate) struct EventId<'a> {
    pub(crate) listening: &'a Listening,
}

impl EventId<'_> {
    fn write(&self, secret: &Secret, places: &[u64]) -> String {
        let numbers: Vec<String> = places.iter().map(ToString::to_string).collect();
        let numbers = numbers.join("-");
        let mac = self.mac(secret, &numbers);
        format!("{numbers}.{mac}")
    }

    /// The places in `Last-Event-ID`; none if it is not one of ours.
    pub(crate) fn read(&self, secret: &Secret, id: &str) -> Option<Vec<u64>> {
        let (numbers, mac) = id.split_once('.')?;
        if mac != self.mac(secret, numbers) {
            return None;
        }
        numbers.split('-').map(|number| number.parse().ok()).collect()
    }

    fn mac(&self, secret: &Secret, numbers: &str) -> String {
        let who = format!("{:?}", self.listening.who);
        let parts = [self.listening.tenant.as_str().as_bytes(), who.as_bytes(), numbers.as_bytes()];
        secret.mac("event id", &parts).to_string()[..24].to_owned()
    }
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
    fn an_event_id_is_good_for_its_own_reader_only() {
        use countersign_core::delivery::message::Party;
        use countersign_wire::presence::Transport;
        let secret = Secret::random();
        let listening = |tenant: &str, who: Party| Listening {
            tenant: tenant.parse().unwrap(),
            who,
            transport: Transport::Sse,
        };
        let ada = listening("acme", Party::Approver("ada".parse().unwrap()));
        let id = EventId { listening: &ada }.write(&secret, &[3, 9]);
        assert_eq!(EventId { listening: &ada }.read(&secret, &id), Some(vec![3, 9]));
        for other in [
            listening("other", Party::Approver("ada".parse().unwrap())),
            listening("acme", Party::Approver("bob".parse().unwrap())),
            listening("acme", Party::Enforcer("ada".parse().unwrap())),
        ] {
            assert_eq!(EventId { listening: &other }.read(&secret, &id), None);
        }
        for forged in ["", "3-9", "4-9.", &id.replacen('3', "4", 1), "x.y"] {
            assert_eq!(EventId { listening: &ada }.read(&secret, forged), None);
        }
    }
}
