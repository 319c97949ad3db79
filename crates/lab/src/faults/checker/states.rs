//! The state table (docs/states.md), and the time of expiry.

use super::{
    super::history::{Call, ExchangeState},
    exchange::{End, Exchange, Observation, Seen, sends},
    violation::{Invariant, Violation},
};

/// The clocks of the clients and of the store may differ by this much, in microseconds: both are on one machine.
const CLOCKS_DIFFER: u64 = 1_000_000;

pub(super) fn check(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    one_end(exchange, found);
    not_backward(exchange, found);
    ends_have_causes(exchange, found);
    expires_in_time(exchange, found);
}

fn violation(
    exchange: &Exchange<'_>,
    invariant: Invariant,
    seen: &Observation<'_>,
    text: String,
) -> Violation {
    Violation::new(invariant, exchange.tenant, seen.to, text)
        .about(exchange.request)
        .involving(seen.operation, seen.client)
}

/// No two clients ever see different ends.
fn one_end(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let mut ended = exchange.observations.iter().filter(|it| it.seen.end().is_some());
    let Some(first) = ended.next() else { return };
    for other in ended.filter(|it| it.seen.end() != first.seen.end()) {
        let ends = [first.seen.end(), other.seen.end()];
        let is_late = ends.contains(&Some(End::Expired)) && ends.contains(&Some(End::Decision));
        let invariant = if is_late { Invariant::Expiry } else { Invariant::StateTable };
        let text = format!(
            "{} saw it {}, and {} saw it {}",
            first.client,
            first.seen.words(),
            other.client,
            other.seen.words()
        );
        found.push(violation(exchange, invariant, other, text).involving(first.operation, first.client));
    }
}

/// What was seen in a state is never seen in an earlier one.
fn not_backward(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    for earlier in exchange.observations.iter().filter(|it| it.seen.end().is_some()) {
        for later in exchange.observations.iter().filter(|it| it.from > earlier.to) {
            let delivered = earlier.seen == Seen::State(ExchangeState::Delivered);
            let is_backward = match later.seen {
                Seen::State(ExchangeState::PendingApproval) => true,
                Seen::State(ExchangeState::Decided) => delivered,
                _ => false,
            };
            if is_backward {
                let text = format!(
                    "{} saw it {}, and later {} saw it {}",
                    earlier.client,
                    earlier.seen.words(),
                    later.client,
                    later.seen.words()
                );
                let back = violation(exchange, Invariant::StateTable, later, text);
                found.push(back.involving(earlier.operation, earlier.client));
            }
        }
    }
}

/// An exchange is withdrawn, cancelled or delivered only if somebody asked for that.
fn ends_have_causes(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    for seen in &exchange.observations {
        let is_cause = |call: &Call| match seen.seen {
            Seen::State(ExchangeState::Withdrawn) => matches!(call, Call::Withdraw { .. }),
            // The client library submits, waits and acknowledges in one call. If it was stopped meanwhile, nobody knows
            // the id of its request.
            Seen::State(ExchangeState::Delivered) => {
                exchange.submits.is_empty()
                    || matches!(
                        call,
                        Call::Ack { .. }
                            | Call::Wait { acknowledges: true, .. }
                            | Call::Submit { request: None, .. }
                    )
            }
            // No client of the workload cancels.
            Seen::State(ExchangeState::Cancelled) => false,
            _ => true,
        };
        let mut operations = exchange.others.iter().chain(&exchange.submits);
        let has_cause =
            operations.any(|it| it.may_have_happened() && it.invoked <= seen.to && is_cause(&it.call));
        if !has_cause && !is_cause(&Call::Presence) {
            let text = format!("it is {}, and nobody has asked for that", seen.seen.words());
            found.push(violation(exchange, Invariant::StateTable, seen, text));
        }
    }
}

/// Nothing expires before its time, and nothing is decided after it.
fn expires_in_time(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let Some(expires) = exchange.expires() else { return };
    for seen in &exchange.observations {
        if seen.seen.end() == Some(End::Expired) && seen.to + CLOCKS_DIFFER < expires {
            let text = format!("it is expired {} ms before its time", (expires - seen.to) / 1_000);
            found.push(violation(exchange, Invariant::Expiry, seen, text));
        }
    }
    for decide in exchange.decides.iter().filter(|decide| decide.is_ok()) {
        let first_sent = match &decide.call {
            Call::Decide { decision: Some(text), .. } => {
                let same = exchange.decides.iter().filter(|it| it.may_have_happened() && sends(it, text));
                same.map(|it| it.invoked).min().unwrap_or(decide.invoked)
            }
            _ => decide.invoked,
        };
        if first_sent > expires + CLOCKS_DIFFER {
            let late = (first_sent - expires) / 1_000;
            let text = format!("a decision that was first sent {late} ms after its expiry was accepted");
            let late = Violation::new(Invariant::Expiry, exchange.tenant, decide.ended, text);
            found.push(late.about(exchange.request).with(decide));
        }
    }
}
