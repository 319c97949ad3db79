//! What each service is given: a few calls at once, and a pause when it fails or asks for one. So a service that is slow or
//! away holds up nothing that goes to others, and those who wait for it come back one after the other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_core::model::notification::{Attempt, FailureReason};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::contents::ChannelName;

/// Calls to one host at once.
const CALLS: usize = 16;

/// How long a call waits for its turn. Others come later, when they are due again.
const TURN: Duration = Duration::from_secs(2);

/// Failures one after the other after which a host gets a pause.
const FAILURES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A service that asks for more time gets this much.
const LONGEST_ASKED: Duration = Duration::from_hours(1);

/// What waits for one host comes back one by one, so far apart: each is two commits.
const APART: Duration = Duration::from_millis(50);
const MAX_APART: Duration = Duration::from_mins(30);

/// People choose hosts, so what is remembered of them is bounded.
const MAX_HOSTS: usize = 4_096;

/// All services that were called lately.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    by_name: Mutex<HashMap<String, Arc<Host>>>,
    /// Channels that their service wants to be left alone for a while.
    asked: Mutex<HashMap<ChannelName, (Instant, Attempt)>>,
    /// When the next of those that wait for a host comes back.
    lines: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug)]
struct Host {
    turns: Arc<Semaphore>,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    /// Until when it has a pause, and the failure that led to it.
    paused: Option<(Instant, Attempt)>,
}

/// What a service has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) attempt: Attempt,
    /// How long it wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl From<Attempt> for Answer {
    fn from(attempt: Attempt) -> Self {
        Self { attempt, retry_after: None }
    }
}

/// What became of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) attempt: Attempt,
    /// How long its service is left alone, beside the pause before another attempt.
    pub(super) wait: Duration,
}

impl From<Attempt> for Outcome {
    fn from(attempt: Attempt) -> Self {
        Self { attempt, wait: Duration::ZERO }
    }
}

/// One call to a host.
pub(super) struct Turn<'a> {
    hosts: &'a Hosts,
    host: Arc<Host>,
    channel: &'a ChannelName,
    _permit: OwnedSemaphorePermit,
}

impl Hosts {
    /// A turn to call this host, by name and port, for a channel; `Err` if either has a pause, or if too many call the host.
    pub(super) async fn turn<'a>(
        &'a self,
        name: &str,
        channel: &'a ChannelName,
    ) -> Result<Turn<'a>, Outcome> {
        if let Some((until, attempt)) =
            self.asked.lock().get(channel).filter(|(until, _)| Instant::now() < *until)
        {
            return Err(Outcome { attempt: *attempt, wait: until.saturating_duration_since(Instant::now()) });
        }
        let host = self.host(name);
        host.check_pause()?;
        let permit = timeout(TURN, Arc::clone(&host.turns).acquire_owned()).await;
        let Some(permit) = permit.ok().and_then(Result::ok) else {
            return Err(host.put_off(Attempt::Failed { reason: FailureReason::Busy, status: None }));
        };
        host.check_pause()?;
        Ok(Turn { hosts: self, host, channel, _permit: permit })
    }

    /// How long something that waits for a host, and at least for `wait`, is to wait with all others that do.
    pub(super) fn line_up(&self, name: &str, wait: Duration) -> Duration {
        let (mut lines, now) = (self.lines.lock(), Instant::now());
        if lines.len() >= MAX_HOSTS && !lines.contains_key(name) {
            lines.retain(|_, next| now < *next);
        }
        let first = now + wait;
        let at = lines.get(name).map_or(first, |next| first.max(*next));
        // When that time is full, it is filled again from its start.
        let at = if at > first + MAX_APART { first } else { at };
        if lines.len() < MAX_HOSTS || lines.contains_key(name) {
            lines.insert(name.to_owned(), at + APART);
        }
        at - now
    }

    fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.by_name.lock();
        if hosts.len() >= MAX_HOSTS && !hosts.contains_key(name) {
            hosts.retain(|_, host| Arc::strong_count(host) > 1 || host.is_paused());
        }
        let new = || Arc::new(Host { turns: Arc::new(Semaphore::new(CALLS)), health: Mutex::default() });
        // If all of them are in use, this one is not remembered.
        match hosts.len() < MAX_HOSTS || hosts.contains_key(name) {
            true => Arc::clone(hosts.entry(name.to_owned()).or_insert_with(new)),
            false => new(),
        }
    }

    /// A service asks that a channel is left alone.
    fn ask(&self, channel: &ChannelName, until: Instant, attempt: Attempt) {
        let (mut asked, now) = (self.asked.lock(), Instant::now());
        if asked.len() >= MAX_HOSTS {
            asked.retain(|_, (until, _)| now < *until);
        }
        if asked.len() < MAX_HOSTS {
            asked.insert(channel.clone(), (until, attempt));
        }
    }
}

impl Host {
    fn is_paused(&self) -> bool {
        self.health.lock().paused.is_some_and(|(until, _)| Instant::now() < until)
    }

    fn check_pause(&self) -> Result<(), Outcome> {
        let paused = self.health.lock().paused.filter(|(until, _)| Instant::now() < *until);
        match paused {
            Some((_, attempt)) => Err(self.put_off(attempt)),
            None => Ok(()),
        }
    }

    /// Something that is not sent before the pause ends.
    fn put_off(&self, attempt: Attempt) -> Outcome {
        let paused = self.health.lock().paused.map(|(until, _)| until);
        let wait = paused.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        Outcome { attempt, wait }
    }
}

impl Turn<'_> {
    /// Ends the call, and learns from it how the host is.
    pub(super) fn end(self, Answer { attempt, retry_after }: Answer) -> Outcome {
        let Attempt::Failed { reason, status } = attempt else {
            return self.answers(attempt);
        };
        if !reason.is_temporary() {
            return self.answers(attempt);
        }
        let now = Instant::now();
        let asked = retry_after.map(|after| now + after.min(LONGEST_ASKED));
        {
            let mut health = self.host.health.lock();
            let is_paused = health.paused.is_some_and(|(until, _)| now < until);
            if !is_paused {
                // Calls that began together fail together: the first of them says all that is to be known.
                health.failures = health.failures.saturating_add(1);
            }
            let beyond = health.failures.saturating_sub(FAILURES);
            let pause = FIRST_PAUSE.saturating_mul(1 << beyond.min(10)).min(LONGEST_PAUSE);
            let pause = Some(now + pause).filter(|_| !is_paused && health.failures >= FAILURES);
            // That somebody calls too often may be about one channel: its person must not silence those of others.
            let asked = asked.filter(|_| status == Some(503));
            let known = health.paused.map(|(until, _)| until);
            health.paused = pause.max(asked).max(known).map(|until| (until, attempt));
        }
        let mut outcome = self.host.put_off(attempt);
        if let Some(until) = asked {
            self.hosts.ask(self.channel, until, attempt);
            outcome.wait = outcome.wait.max(until - now);
        }
        outcome
    }

    /// Whatever it says, it answers.
    fn answers(self, attempt: Attempt) -> Outcome {
        *self.host.health.lock() = Health::default();
        attempt.into()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const BUSY: Attempt = Attempt::Failed { reason: FailureReason::Busy, status: Some(503) };
    const TOO_OFTEN: Attempt = Attempt::Failed { reason: FailureReason::Busy, status: Some(429) };

    fn channel(id: &str) -> ChannelName {
        ChannelName {
            tenant: "t".parse().unwrap(),
            approver: "ada".parse().unwrap(),
            channel: id.parse().unwrap(),
        }
    }

    /// Calls a host for a channel, which answers so.
    async fn call(
        hosts: &Hosts,
        name: &str,
        id: &str,
        answer: impl Into<Answer>,
    ) -> Result<Outcome, Outcome> {
        let channel = channel(id);
        Ok(hosts.turn(name, &channel).await?.end(answer.into()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_fails_gets_a_pause_and_others_do_not() {
        let hosts = Hosts::default();
        for _ in 0..FAILURES {
            call(&hosts, "slow.example:443", "a", BUSY).await.unwrap();
        }
        let paused = call(&hosts, "slow.example:443", "a", BUSY).await.unwrap_err();
        assert_eq!(paused.attempt, BUSY, "it is known why");
        call(&hosts, "other.example:443", "a", Attempt::Accepted).await.unwrap();
        call(&hosts, "slow.example:8443", "a", Attempt::Accepted).await.unwrap();
        advance(FIRST_PAUSE).await;
        call(&hosts, "slow.example:443", "a", BUSY).await.unwrap();
        let paused = call(&hosts, "slow.example:443", "a", BUSY).await;
        assert!(paused.is_err(), "one failure more, and it waits longer");
        advance(FIRST_PAUSE * 2).await;
        call(&hosts, "slow.example:443", "a", Attempt::Accepted).await.unwrap();
        call(&hosts, "slow.example:443", "a", BUSY).await.unwrap();
        assert!(call(&hosts, "slow.example:443", "a", BUSY).await.is_ok(), "one failure alone is no pause");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_together_make_one_pause() {
        let (hosts, channel) = (Hosts::default(), channel("a"));
        let mut turns = Vec::new();
        for _ in 0..CALLS {
            turns.push(hosts.turn("slow.example:443", &channel).await.unwrap());
        }
        for turn in turns {
            turn.end(BUSY.into());
        }
        let paused = call(&hosts, "slow.example:443", "a", BUSY).await.unwrap_err();
        assert_eq!(paused.wait, FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_for_a_host_come_back_one_by_one() {
        let hosts = Hosts::default();
        for _ in 0..FAILURES {
            call(&hosts, "slow.example:443", "a", BUSY).await.unwrap();
        }
        let paused = call(&hosts, "slow.example:443", "a", BUSY).await.unwrap_err();
        assert_eq!(paused.wait, FIRST_PAUSE);
        let in_line = || hosts.line_up("slow.example", FIRST_PAUSE);
        let waits: Vec<Duration> = (0..1_000).map(|_| in_line()).collect();
        assert_eq!(waits[0], FIRST_PAUSE);
        assert!(waits.windows(2).all(|two| two[1] == two[0] + APART));
        assert_eq!(hosts.line_up("other.example", Duration::ZERO), Duration::ZERO);
        assert!((0..100_000).all(|_| in_line() <= FIRST_PAUSE + MAX_APART));
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_is_not_called_before_it_wants_to_be() {
        let hosts = Hosts::default();
        let after = |attempt, seconds| Answer { attempt, retry_after: Some(Duration::from_secs(seconds)) };
        let away = call(&hosts, "slow.example:443", "a", after(BUSY, 600)).await.unwrap();
        assert_eq!(away.wait, Duration::from_mins(10));
        let other = call(&hosts, "slow.example:443", "b", BUSY).await.unwrap_err();
        assert!(other.wait >= Duration::from_mins(10), "the whole service is away");
        advance(Duration::from_mins(10) - Duration::from_secs(1)).await;
        assert!(call(&hosts, "slow.example:443", "b", BUSY).await.is_err());
        advance(Duration::from_secs(1)).await;
        call(&hosts, "slow.example:443", "b", Attempt::Accepted).await.unwrap();
        let long = call(&hosts, "slow.example:443", "a", after(BUSY, 1_000_000)).await.unwrap();
        assert_eq!(long.wait, LONGEST_ASKED);
    }

    #[tokio::test(start_paused = true)]
    async fn who_calls_a_service_too_often_silences_nobody_else() {
        let hosts = Hosts::default();
        let too_often = Answer { attempt: TOO_OFTEN, retry_after: Some(Duration::from_mins(10)) };
        let mine = call(&hosts, "push.example:443", "a", too_often).await.unwrap();
        assert_eq!(mine.wait, Duration::from_mins(10));
        let again = call(&hosts, "push.example:443", "a", Attempt::Accepted).await.unwrap_err();
        assert!(again.wait >= Duration::from_mins(10) && again.attempt == TOO_OFTEN);
        call(&hosts, "push.example:443", "b", Attempt::Accepted).await.unwrap();
        advance(Duration::from_mins(10)).await;
        call(&hosts, "push.example:443", "a", Attempt::Accepted).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_gets_few_calls_at_once() {
        let (hosts, channel) = (Hosts::default(), channel("a"));
        let mut turns = Vec::new();
        for _ in 0..CALLS {
            turns.push(hosts.turn("slow.example:443", &channel).await.unwrap());
        }
        let refused = hosts.turn("slow.example:443", &channel).await.err().unwrap();
        assert_eq!(refused.attempt, Attempt::Failed { reason: FailureReason::Busy, status: None });
        assert!(hosts.turn("other.example:443", &channel).await.is_ok());
        turns.pop();
        assert!(hosts.turn("slow.example:443", &channel).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_remembered_of_hosts_is_bounded() {
        let hosts = Hosts::default();
        let asked = Answer { attempt: TOO_OFTEN, retry_after: Some(Duration::from_mins(10)) };
        for number in 0..MAX_HOSTS + 10 {
            call(&hosts, &format!("{number}.example:443"), &number.to_string(), asked).await.unwrap();
        }
        assert!(hosts.by_name.lock().len() <= MAX_HOSTS);
        assert!(hosts.asked.lock().len() <= MAX_HOSTS);
        for number in 0..MAX_HOSTS + 10 {
            hosts.line_up(&format!("{number}.example"), Duration::from_mins(1));
        }
        assert!(hosts.lines.lock().len() <= MAX_HOSTS);
    }
}
