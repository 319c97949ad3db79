//! What one held connection counts.

use countersign_core::metrics::{Gauge, Histogram, Metrics, Step};
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
use tokio::time::Instant;

use super::server::{HeldTransport, ServerMetrics};

/// Counts a connection as held until it is dropped, and what is pushed to it.
#[derive(Debug)]
pub(crate) struct PushMeter {
    held: Gauge,
    seconds: Histogram,
    /// The store's time when the connection was opened, as far as it was known.
    opened: Option<Timestamp>,
}

impl PushMeter {
    pub(crate) fn open(server: &ServerMetrics, core: &Metrics, transport: HeldTransport) -> Self {
        let held = server.held.at(transport).clone();
        held.inc();
        let seconds = server.push_seconds.at(transport).clone();
        Self { held, seconds, opened: core.store.time.now() }
    }

    /// A message was written. `committed` is the time of its commit; `None` if it was sent before.
    pub(crate) fn sent(
        &self,
        core: &Metrics,
        msg_type: &MsgType,
        committed: Option<Timestamp>,
        started: Instant,
    ) {
        self.seconds.observe(started.elapsed());
        let step = match msg_type {
            MsgType::ApprovalRequest => Step::Push,
            MsgType::DecisionDeliver => Step::Deliver,
            _ => return,
        };
        // What was committed before waited for its client and not for the gateway.
        let committed = committed.filter(|committed| self.opened.is_some_and(|opened| *committed >= opened));
        if let Some(waited) = committed.and_then(|committed| core.store.time.since(committed)) {
            core.steps.at(step).observe(waited);
        }
    }
}

impl Drop for PushMeter {
    fn drop(&mut self) {
        self.held.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_was_committed_while_the_connection_was_open_is_a_step() {
        let (server, core) = (ServerMetrics::default(), Metrics::default());
        let before = Timestamp::from_unix_micros(1_000_000_000);
        core.store.time.answered(before);
        advance(Duration::from_secs(1)).await;
        let meter = PushMeter::open(&server, &core, HeldTransport::Websocket);
        assert_eq!(server.held.at(HeldTransport::Websocket).get(), 1);
        advance(Duration::from_secs(1)).await;
        let within = before.plus(Duration::from_millis(1_500));
        let started = Instant::now();
        meter.sent(&core, &MsgType::ApprovalRequest, Some(before), started);
        meter.sent(&core, &MsgType::ApprovalRequest, None, started);
        meter.sent(&core, &MsgType::PromptAck, Some(within), started);
        assert_eq!(core.steps.at(Step::Push).count(), 0);
        meter.sent(&core, &MsgType::ApprovalRequest, Some(within), started);
        meter.sent(&core, &MsgType::DecisionDeliver, Some(within), started);
        assert_eq!(core.steps.at(Step::Push).count(), 1);
        assert_eq!(core.steps.at(Step::Deliver).count(), 1);
        assert_eq!(server.push_seconds.at(HeldTransport::Websocket).count(), 5);
        drop(meter);
        assert_eq!(server.held.at(HeldTransport::Websocket).get(), 0);
    }
}
