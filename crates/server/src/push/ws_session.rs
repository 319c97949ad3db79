//! The rules of a WebSocket apart from the socket: when to ping, when to tell again, when to close. Pure: time is an
//! argument, counted from the beginning of the connection.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use countersign_wire::id::{MsgId, RequestId};

/// A ping is sent this often.
const PING: Duration = Duration::from_secs(30);

/// A client of which nothing is heard for this long is gone.
const IDLE: Duration = Duration::from_mins(2);

/// What is not acknowledged is told again after this, and then each time after twice as long.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_AT_MOST: Duration = Duration::from_mins(5);

/// So many malformed frames within [`MALFORMED_TIME`] end the connection.
const MALFORMED: usize = 10;
const MALFORMED_TIME: Duration = Duration::from_mins(1);

/// More than this is not told again on the same connection; a reconnect brings it.
const MOST_OUTSTANDING: usize = 1_000;

/// A delivery: its lane and its number.
pub(crate) type Place = (usize, u64);

/// What to do when it is time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Send a ping.
    Ping,
    /// Tell this again, if it is still unacknowledged.
    TellAgain(Place),
    /// The client is gone.
    GiveUp,
}

/// What an acknowledgement can name.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) request_id: RequestId,
    pub(crate) msg_id: MsgId,
}

#[derive(Debug)]
struct Outstanding {
    about: About,
    wait: Duration,
    due: Duration,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    last_heard: Duration,
    last_ping: Duration,
    outstanding: BTreeMap<Place, Outstanding>,
    malformed: VecDeque<Duration>,
}

impl Session {
    /// Something came from the client.
    pub(crate) fn heard(&mut self, now: Duration) {
        self.last_heard = now;
    }

    /// A frame could not be understood. Says whether that was one too many.
    pub(crate) fn malformed(&mut self, now: Duration) -> bool {
        self.malformed.push_back(now);
        while self.malformed.front().is_some_and(|at| *at + MALFORMED_TIME <= now) {
            self.malformed.pop_front();
        }
        self.malformed.len() >= MALFORMED
    }

    /// A message was sent, for the first time or again.
    pub(crate) fn told(&mut self, place: Place, about: About, now: Duration) {
        if let Some(known) = self.outstanding.get_mut(&place) {
            known.wait = (known.wait * 2).min(AGAIN_AT_MOST);
            known.due = now + known.wait;
        } else if self.outstanding.len() < MOST_OUTSTANDING {
            self.outstanding.insert(place, Outstanding { about, wait: AGAIN, due: now + AGAIN });
        }
    }

    /// A message need not be told again.
    pub(crate) fn settled(&mut self, place: Place) {
        self.outstanding.remove(&place);
    }

    /// The client has acknowledged a message, or all about a request: they need not be told again, and leave their
    /// places to others.
    pub(crate) fn acknowledged(&mut self, request_id: &RequestId, msg_id: Option<&MsgId>) {
        self.outstanding.retain(|_, known| {
            known.about.request_id != *request_id
                || msg_id.is_some_and(|msg_id| known.about.msg_id != *msg_id)
        });
    }

    /// When there is next something to do.
    pub(crate) fn wake_at(&self) -> Duration {
        let tell = self.outstanding.values().map(|known| known.due).min();
        let ping = (self.last_ping + PING).min(self.last_heard + IDLE);
        tell.map_or(ping, |tell| tell.min(ping))
    }

    /// What it is time for.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Act> {
        if now >= self.last_heard + IDLE {
            return vec![Act::GiveUp];
        }
        let mut acts: Vec<Act> = self
            .outstanding
            .iter()
            .filter(|(_, known)| known.due <= now)
            .map(|(place, _)| Act::TellAgain(*place))
            .collect();
        if now >= self.last_ping + PING {
            self.last_ping = now;
            acts.push(Act::Ping);
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn about(number: u64) -> About {
        let [request_id, msg_id] = ["r", "m"].map(|kind| format!("{kind}-{number}"));
        About { request_id: request_id.parse().unwrap(), msg_id: msg_id.parse().unwrap() }
    }

    #[test]
    fn a_quiet_client_is_pinged_every_thirty_seconds_and_given_up_after_two_minutes() {
        let mut session = Session::default();
        assert_eq!(session.wake_at(), at(30));
        for seconds in [30, 60, 90] {
            assert_eq!(session.due(at(seconds)), [Act::Ping]);
        }
        assert_eq!(session.wake_at(), at(120));
        assert_eq!(session.due(at(120)), [Act::GiveUp]);
    }

    #[test]
    fn a_client_that_answers_pings_is_kept() {
        let mut session = Session::default();
        for seconds in (30..3_000).step_by(30) {
            assert_eq!(session.due(at(seconds)), [Act::Ping]);
            session.heard(at(seconds));
        }
    }

    #[test]
    fn what_is_not_acknowledged_is_told_again_after_ten_seconds_and_ever_more_slowly() {
        let mut session = Session::default();
        session.told((0, 7), about(7), at(0));
        let (mut now, mut waits) = (Duration::ZERO, Vec::new());
        let mut last = Duration::ZERO;
        while waits.len() < 8 {
            now = session.wake_at();
            session.heard(now);
            if session.due(now).contains(&Act::TellAgain((0, 7))) {
                session.told((0, 7), about(7), now);
                waits.push(now.saturating_sub(last).as_secs());
                last = now;
            }
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
        session.settled((0, 7));
        assert!(session.due(now + at(1_000)).iter().all(|act| !matches!(act, Act::TellAgain(_))));
    }

    #[test]
    fn the_tenth_malformed_frame_within_a_minute_is_one_too_many() {
        let mut session = Session::default();
        for seconds in 0..9 {
            assert!(!session.malformed(at(seconds)));
        }
        assert!(session.malformed(at(59)));
        let mut slow = Session::default();
        for seconds in (0..600).step_by(7) {
            assert!(!slow.malformed(at(seconds)), "nine a minute are borne");
        }
    }

    #[test]
    fn a_client_that_acknowledges_nothing_costs_no_more_than_so_much() {
        let mut session = Session::default();
        for number in 0..10_000 {
            session.told((0, number), about(number), at(1));
        }
        assert_eq!(session.outstanding.len(), MOST_OUTSTANDING);
        // What is acknowledged leaves its place to what comes.
        session.acknowledged(&about(3).request_id, Some(&about(4).msg_id));
        assert_eq!(
            session.outstanding.len(),
            MOST_OUTSTANDING,
            "another message of the request is not meant"
        );
        session.acknowledged(&about(3).request_id, Some(&about(3).msg_id));
        session.acknowledged(&about(4).request_id, None);
        assert_eq!(session.outstanding.len(), MOST_OUTSTANDING - 2);
        session.told((0, 20_000), about(20_000), at(2));
        assert!(session.outstanding.contains_key(&(0, 20_000)));
    }
}
