//! One notification for each person: requests that come while one is about to be sent, or soon after another, share one.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_core::model::notification::{Attempt, FailureReason};
use countersign_wire::{id::RequestId, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{contents::ChannelName, hosts::Outcome};

/// The least time between two notifications on a channel.
const GAP: Duration = Duration::from_secs(3);

/// Whoever was about to send took too long.
const GIVEN_UP: Attempt = Attempt::Failed { reason: FailureReason::TimedOut, status: None };

/// Channels that are remembered, after which those are forgotten that nothing was sent to lately.
const FORGET_AT: usize = 1_024;

/// A request that somebody is to be notified of.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) request: RequestId,
    pub(super) expires_at: Timestamp,
}

/// What became of a message; `None` if none was needed any more.
type Report = Option<Outcome>;

#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<HashMap<ChannelName, Pending>>);

#[derive(Debug, Default)]
struct Pending {
    /// When something was last sent.
    sent: Option<Instant>,
    /// What is about to be sent.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    requests: Vec<Waiting>,
    outcome: watch::Receiver<Option<Report>>,
}

impl Batches {
    /// Sends a notification of this request by `send`, with others that come meanwhile; or says what became of the one that
    /// it was sent with. `None` if that one was not needed any more; one that was given up is to be tried again.
    pub(super) async fn send<F>(
        self: &Arc<Self>,
        name: &ChannelName,
        request: Waiting,
        send: impl FnOnce(Vec<Waiting>) -> F,
    ) -> Report
    where
        F: Future<Output = Report>,
    {
        let (report, outcome) = watch::channel(None);
        let begin = {
            let mut all = self.0.lock();
            if all.len() >= FORGET_AT {
                all.retain(|_, it| it.open.is_some() || it.sent.is_some_and(|sent| sent.elapsed() < GAP));
            }
            let pending = all.entry(name.clone()).or_default();
            if let Some(open) = &mut pending.open {
                open.requests.push(request);
                Err(open.outcome.clone())
            } else {
                pending.open = Some(Open { requests: vec![request], outcome });
                Ok(pending.sent.map(|sent| sent + GAP))
            }
        };
        match begin {
            Ok(not_before) => {
                // Whoever is dropped here, with its requests, is due again.
                let mut guard = Abandoned { batches: self, name, is_closed: false };
                if let Some(not_before) = not_before {
                    sleep_until(not_before).await;
                }
                let outcome = send(guard.close()).await;
                report.send_replace(Some(outcome));
                outcome
            }
            Err(mut outcome) => {
                let known = outcome.wait_for(Option::is_some).await;
                match known {
                    Ok(known) => known.flatten(),
                    Err(_) => Some(GIVEN_UP.into()),
                }
            }
        }
    }
}

/// Takes a batch away if nobody sends it.
struct Abandoned<'a> {
    batches: &'a Batches,
    name: &'a ChannelName,
    is_closed: bool,
}

impl Abandoned<'_> {
    /// What is sent now. Later requests make another batch.
    fn close(&mut self) -> Vec<Waiting> {
        self.is_closed = true;
        let mut all = self.batches.0.lock();
        let pending = all.entry(self.name.clone()).or_default();
        pending.sent = Some(Instant::now());
        pending.open.take().map(|open| open.requests).unwrap_or_default()
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.is_closed
            && let Some(pending) = self.batches.0.lock().get_mut(self.name)
        {
            pending.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const ACCEPTED: Option<Outcome> = Some(Outcome { attempt: Attempt::Accepted, wait: Duration::ZERO });

    fn name() -> ChannelName {
        ChannelName {
            tenant: "t".parse().unwrap(),
            approver: "ada".parse().unwrap(),
            channel: "phone".parse().unwrap(),
        }
    }

    fn request(number: u32) -> Waiting {
        Waiting { request: number.to_string().parse().unwrap(), expires_at: Timestamp::MAX }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_is_sent_at_once_and_those_soon_after_it_together() {
        let (batches, log) = (Arc::new(Batches::default()), Mutex::new(Vec::new()));
        let send = async |requests: Vec<Waiting>| {
            log.lock().push((requests.len(), Instant::now()));
            ACCEPTED
        };
        let began = Instant::now();
        let one = async |number, after| {
            sleep(Duration::from_millis(after)).await;
            batches.send(&name(), request(number), send).await
        };
        let all = tokio::join!(one(1, 0), one(2, 100), one(3, 2_900), one(4, 3_050));
        assert_eq!(all, (ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED));
        let log = log.into_inner();
        assert_eq!(log.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(log[0].1, began);
        assert_eq!(log[1].1, began + GAP);
        assert_eq!(log[2].1, began + GAP * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_shared_a_batch_that_is_given_up_is_tried_again_and_no_later_one_is_held_up() {
        let batches = Arc::new(Batches::default());
        let send = async |_: Vec<Waiting>| ACCEPTED;
        batches.send(&name(), request(1), send).await;
        let name_of_late = name();
        let late = batches.send(&name_of_late, request(2), send);
        let late = tokio::time::timeout(Duration::from_secs(1), late);
        let joined = async {
            sleep(Duration::from_millis(500)).await;
            batches.send(&name(), request(3), send).await
        };
        let (late, joined) = tokio::join!(late, joined);
        assert!(late.is_err());
        assert_eq!(joined, Some(GIVEN_UP.into()), "it is not taken for done");
        assert_eq!(batches.send(&name(), request(4), send).await, ACCEPTED);
    }
}
