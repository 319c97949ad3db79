//! Pushed messages: every decision arrives, and nothing comes again after its acknowledgement.

use std::collections::HashMap;

use super::{
    super::history::{Call, ExchangeState, History, Transport},
    exchange::{End, Exchange},
    violation::{Invariant, Violation},
};

/// A message may be pushed for this long after its acknowledgement was answered, in microseconds: another node learns of
/// the acknowledgement from the doorbell, or within 5 s from its poller, and a message that is being written has 10 s to
/// leave. The time during which a fault was active is added: a stopped node, or a slow connection, delays what was sent before.
const ACKNOWLEDGED_BOUND: u64 = 10_000_000;

/// After the quiet phase, what has a decision is delivered.
pub(super) fn check_delivered(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    if !exchange.observations.iter().any(|it| it.seen.end() == Some(End::Decision)) {
        return;
    }
    for read in &exchange.others {
        let is_final = matches!(read.call, Call::FinalRead { .. });
        if is_final && read.is_ok() && read.answer.state == Some(ExchangeState::Decided) {
            let text = "it is decided, and the decision has not reached its enforcer".to_owned();
            let missing = Violation::new(Invariant::Delivered, exchange.tenant, read.ended, text);
            found.push(
                exchange
                    .decides
                    .iter()
                    .fold(missing.about(exchange.request).with(read), |it, by| it.with(by)),
            );
        }
    }
}

/// What a reader has acknowledged does not come to that reader again.
pub(super) fn check_acknowledged(history: &History, found: &mut Vec<Violation>) {
    let mut acknowledged: HashMap<(&str, &str, &str), (u64, u64)> = HashMap::new();
    for operation in history.operations.iter().filter(|operation| operation.is_ok()) {
        if let Call::Ack { reader, message, .. } = &operation.call {
            let first = acknowledged
                .entry((&operation.by.tenant, reader, message))
                .or_insert((operation.ended, operation.number));
            *first = (*first).min((operation.ended, operation.number));
        }
    }
    for (at, push) in &history.pushes {
        let key = (push.by.tenant.as_str(), push.reader.as_str(), push.message.id.as_str());
        let Some((acked, operation)) = acknowledged.get(&key).copied() else { continue };
        // The client library hands out each message once and also lists.
        if push.transport == Transport::Sdk || *at <= acked {
            continue;
        }
        let bound = ACKNOWLEDGED_BOUND + history.faulty_time(acked, *at);
        if *at - acked > bound {
            let text = format!(
                "{} was pushed {} ms after its acknowledgement was answered; {} ms are allowed",
                push.message.kind,
                (*at - acked) / 1_000,
                bound / 1_000
            );
            let again = Violation::new(Invariant::NotPushedAgain, &push.by.tenant, *at, text);
            found.push(again.about(&push.message.request).pushed(push).involving(operation, &push.by.client));
        }
    }
}
