//! Which transport is tried next, and when: down at once when one does not work, up again after a while.

use std::time::Duration;

use tokio::time::Instant;

use super::message::{Settings, Transport};
use crate::gateway::http::jittered;

/// Connections are at least this far apart, and at most this far when none works.
const RECONNECT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// A connection that ends sooner has not proved that connecting helps: the next one waits longer, as after a failure.
const PROVEN: Duration = Duration::from_secs(10);

/// The longest time after which a better transport is tried again.
const MAX_UP_AGAIN: Duration = Duration::from_mins(16);

/// How a connection, or the attempt at one, has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It worked for a while.
    Worked,
    /// There was no gateway to connect to, or it asked to come back later. Another transport would not help.
    NoGateway,
    /// There was a gateway, and this transport did not work.
    Useless,
}

/// The transports, the best one first, and where we are.
#[derive(Debug)]
pub(super) struct Ladder {
    transports: Vec<Transport>,
    level: usize,
    delay: Duration,
    first_up_again: Duration,
    up_again: Duration,
    up_at: Option<Instant>,
}

impl Ladder {
    pub(super) fn new(settings: &Settings) -> Self {
        let named = settings.transports.clone();
        Self {
            transports: if named.is_empty() { Transport::ALL.to_vec() } else { named },
            level: 0,
            delay: RECONNECT.0,
            first_up_again: settings.up_again,
            up_again: settings.up_again,
            up_at: None,
        }
    }

    /// The transport that is used now.
    pub(super) fn transport(&self) -> Transport {
        self.transports[self.level]
    }

    /// The better ones, and when to try them; `None` if there is none.
    pub(super) fn better(&self) -> Option<(Instant, Vec<(usize, Transport)>)> {
        let better = self.transports[..self.level].iter().copied().enumerate().collect();
        self.up_at.map(|at| (at, better))
    }

    /// A better transport was opened.
    pub(super) fn went_up(&mut self, level: usize) {
        self.level = level;
        self.up_at = (level > 0).then(|| Instant::now() + self.up_again);
    }

    /// None of the better ones worked, or one of them did not keep working.
    pub(super) fn stays_down(&mut self) {
        self.up_at = Some(Instant::now() + self.up_again);
        self.up_again = MAX_UP_AGAIN.min(self.up_again * 2);
    }

    /// A connection has ended after it lived for a time. Returns how long to wait before the next one.
    pub(super) fn ended(&mut self, outcome: Outcome, lived: Duration) -> Duration {
        let delay = self.delay;
        match outcome {
            Outcome::Worked if lived < PROVEN => self.delay = RECONNECT.1.min(delay * 2),
            Outcome::Worked => {
                if self.level == 0 && lived >= self.first_up_again {
                    self.up_again = self.first_up_again;
                }
                self.delay = RECONNECT.0;
                return spread(RECONNECT.0);
            }
            Outcome::Useless if self.level + 1 < self.transports.len() => {
                self.level += 1;
                self.stays_down();
            }
            Outcome::Useless | Outcome::NoGateway => self.delay = RECONNECT.1.min(delay * 2),
        }
        spread(delay)
    }
}

/// The whole of it, and up to half more.
fn spread(delay: Duration) -> Duration {
    delay / 2 + jittered(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder::new(&Settings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_transport_that_does_not_work_is_left_and_tried_again_less_and_less_often() {
        let mut ladder = ladder();
        ladder.ended(Outcome::Useless, Duration::ZERO);
        assert_eq!(ladder.transport(), Transport::Sse);
        let (at, better) = ladder.better().unwrap();
        assert_eq!((at - Instant::now(), better), (Duration::from_mins(1), vec![(0, Transport::Websocket)]));
        let mut waits = Vec::new();
        for _ in 0..6 {
            ladder.stays_down();
            waits.push((ladder.better().unwrap().0 - Instant::now()).as_secs() / 60);
        }
        assert_eq!(waits, [2, 4, 8, 16, 16, 16]);
        ladder.went_up(0);
        assert_eq!((ladder.transport(), ladder.better()), (Transport::Websocket, None));
        // It works for long enough to be trusted.
        ladder.ended(Outcome::Worked, Duration::from_mins(1));
        ladder.ended(Outcome::Useless, Duration::ZERO);
        assert_eq!(ladder.better().unwrap().0 - Instant::now(), Duration::from_mins(1));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_gateway_it_stays_where_it_is_and_waits_longer_each_time() {
        let mut ladder = ladder();
        let waits: Vec<u64> = (0..9)
            .map(|_| ladder.ended(Outcome::NoGateway, Duration::ZERO).as_millis().try_into().unwrap())
            .collect();
        for (wait, least) in waits.iter().zip([1, 2, 4, 8, 16, 32, 60, 60, 60]) {
            assert!((least * 1_000..=least * 1_500).contains(wait), "{waits:?}");
        }
        assert_eq!(ladder.transport(), Transport::Websocket);
        // One that works for a moment, again and again, is not tried more often; one that has lived is a second apart.
        for _ in 0..100 {
            assert!(ladder.ended(Outcome::Worked, Duration::ZERO) >= RECONNECT.1);
        }
        assert!(ladder.ended(Outcome::Worked, PROVEN) < Duration::from_secs(2));
        let second = ladder.ended(Outcome::Worked, Duration::ZERO);
        assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&second));
        assert!(ladder.ended(Outcome::Worked, Duration::ZERO) >= Duration::from_secs(2));
    }
}
