//! The rules of a WebSocket session apart from the socket: when to ping, to redeliver, to close. Pure: time is an
//! argument, counted from the start of the connection. [`super::ws_channel`] does what they say.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use countersign_wire::id::{MsgId, RequestId};

/// A ping is sent this often, and at least four times before the idle timeout.
const MAX_PING_INTERVAL: Duration = Duration::from_secs(30);

/// An unacknowledged message is redelivered after this, with exponential backoff up to the second.
const REDELIVERY_DELAY: Duration = Duration::from_secs(10);
const MAX_REDELIVERY_DELAY: Duration = Duration::from_mins(5);

/// So many malformed frames within [`MALFORMED_WINDOW`] close the connection.
const MAX_MALFORMED: usize = 10;
const MALFORMED_WINDOW: Duration = Duration::from_mins(1);

/// Messages beyond this are not redelivered on the same connection, but after a reconnect.
const MAX_OUTSTANDING: usize = 1_000;

/// A delivery: the index of its mailbox in the feed, and its number.
pub type Place = (usize, u64);

/// What is due on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Ping,
    /// Send this again, if it is still unacknowledged.
    Redeliver(Place),
    /// Nothing was received for the idle timeout.
    CloseIdle,
}

/// What an acknowledgement can name.
#[derive(Debug, Clone)]
pub struct MessageRef {
    pub request_id: RequestId,
    pub msg_id: MsgId,
}

#[derive(Debug)]
struct Outstanding {
    message: MessageRef,
    delay: Duration,
    due: Duration,
}

/// The state of one connection.
#[derive(Debug)]
pub struct WsSession {
    idle_timeout: Duration,
    last_received: Duration,
    last_ping: Duration,
    outstanding: BTreeMap<Place, Outstanding>,
    malformed: VecDeque<Duration>,
}

impl WsSession {
    pub fn new(idle_timeout: Duration) -> Self {
        Self {
            idle_timeout,
            last_received: Duration::ZERO,
            last_ping: Duration::ZERO,
            outstanding: BTreeMap::new(),
            malformed: VecDeque::new(),
        }
    }

    fn ping_interval(&self) -> Duration {
        MAX_PING_INTERVAL.min(self.idle_timeout / 4)
    }

    /// A frame came from the client.
    pub fn received(&mut self, now: Duration) {
        self.last_received = now;
    }

    /// Counts a malformed frame. Returns whether that was one too many.
    pub fn malformed(&mut self, now: Duration) -> bool {
        self.malformed.push_back(now);
        while self.malformed.front().is_some_and(|at| *at + MALFORMED_WINDOW <= now) {
            self.malformed.pop_front();
        }
        self.malformed.len() >= MAX_MALFORMED
    }

    /// A message was sent, for the first time or again.
    pub fn sent(&mut self, place: Place, message: MessageRef, now: Duration) {
        if let Some(known) = self.outstanding.get_mut(&place) {
            known.delay = (known.delay * 2).min(MAX_REDELIVERY_DELAY);
            known.due = now + known.delay;
        } else if self.outstanding.len() < MAX_OUTSTANDING {
            self.outstanding
                .insert(place, Outstanding { message, delay: REDELIVERY_DELAY, due: now + REDELIVERY_DELAY });
        }
    }

    /// A message need not be redelivered.
    pub fn done_with(&mut self, place: Place) {
        self.outstanding.remove(&place);
    }

    /// The client has acknowledged a message, or all about a request: they need not be redelivered, and make room for
    /// others.
    pub fn acknowledged(&mut self, request_id: &RequestId, msg_id: Option<&MsgId>) {
        self.outstanding.retain(|_, known| {
            known.message.request_id != *request_id
                || msg_id.is_some_and(|msg_id| known.message.msg_id != *msg_id)
        });
    }

    /// When something is due next.
    pub fn wake_at(&self) -> Duration {
        let redelivery = self.outstanding.values().map(|known| known.due).min();
        let ping = (self.last_ping + self.ping_interval()).min(self.last_received + self.idle_timeout);
        redelivery.map_or(ping, |redelivery| redelivery.min(ping))
    }

    /// What is due at `now`.
    pub fn due(&mut self, now: Duration) -> Vec<Action> {
        if now >= self.last_received + self.idle_timeout {
            return vec![Action::CloseIdle];
        }
        let mut actions: Vec<Action> = self
            .outstanding
            .iter()
            .filter(|(_, known)| known.due <= now)
            .map(|(place, _)| Action::Redeliver(*place))
            .collect();
        if now >= self.last_ping + self.ping_interval() {
            self.last_ping = now;
            actions.push(Action::Ping);
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn message(number: u64) -> MessageRef {
        let [request_id, msg_id] = ["r", "m"].map(|kind| format!("{kind}-{number}"));
        MessageRef { request_id: request_id.parse().unwrap(), msg_id: msg_id.parse().unwrap() }
    }

    #[test]
    fn a_quiet_client_is_pinged_every_thirty_seconds_and_disconnected_after_two_minutes() {
        let mut session = WsSession::new(at(120));
        assert_eq!(session.wake_at(), at(30));
        for seconds in [30, 60, 90] {
            assert_eq!(session.due(at(seconds)), [Action::Ping]);
        }
        assert_eq!(session.wake_at(), at(120));
        assert_eq!(session.due(at(120)), [Action::CloseIdle]);
    }

    #[test]
    fn the_idle_timeout_is_configurable() {
        let mut session = WsSession::new(at(20));
        for seconds in [5, 10, 15] {
            assert_eq!(session.due(at(seconds)), [Action::Ping]);
        }
        assert_eq!(session.due(at(20)), [Action::CloseIdle]);
    }

    #[test]
    fn a_client_that_answers_pings_is_kept() {
        let mut session = WsSession::new(at(120));
        for seconds in (30..3_000).step_by(30) {
            assert_eq!(session.due(at(seconds)), [Action::Ping]);
            session.received(at(seconds));
        }
    }

    #[test]
    fn an_unacknowledged_message_is_redelivered_after_ten_seconds_with_backoff() {
        let mut session = WsSession::new(at(120));
        session.sent((0, 7), message(7), at(0));
        let (mut now, mut delays) = (Duration::ZERO, Vec::new());
        let mut last = Duration::ZERO;
        while delays.len() < 8 {
            now = session.wake_at();
            session.received(now);
            if session.due(now).contains(&Action::Redeliver((0, 7))) {
                session.sent((0, 7), message(7), now);
                delays.push(now.saturating_sub(last).as_secs());
                last = now;
            }
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 300, 300, 300]);
        session.done_with((0, 7));
        assert!(session.due(now + at(1_000)).iter().all(|action| !matches!(action, Action::Redeliver(_))));
    }

    #[test]
    fn the_tenth_malformed_frame_within_a_minute_is_one_too_many() {
        let mut session = WsSession::new(at(120));
        for seconds in 0..9 {
            assert!(!session.malformed(at(seconds)));
        }
        assert!(session.malformed(at(59)));
        let mut slow = WsSession::new(at(120));
        for seconds in (0..600).step_by(7) {
            assert!(!slow.malformed(at(seconds)), "nine a minute are tolerated");
        }
    }

    #[test]
    fn a_client_that_acknowledges_nothing_costs_a_bounded_amount() {
        let mut session = WsSession::new(at(120));
        for number in 0..10_000 {
            session.sent((0, number), message(number), at(1));
        }
        assert_eq!(session.outstanding.len(), MAX_OUTSTANDING);
        // An acknowledged message makes room for others.
        session.acknowledged(&message(3).request_id, Some(&message(4).msg_id));
        assert_eq!(session.outstanding.len(), MAX_OUTSTANDING, "another message of the request is not meant");
        session.acknowledged(&message(3).request_id, Some(&message(3).msg_id));
        session.acknowledged(&message(4).request_id, None);
        assert_eq!(session.outstanding.len(), MAX_OUTSTANDING - 2);
        session.sent((0, 20_000), message(20_000), at(2));
        assert!(session.outstanding.contains_key(&(0, 20_000)));
    }
}
