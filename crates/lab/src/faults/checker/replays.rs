//! Replays: the same request has the same answer, and the same message the same content.

use std::collections::HashMap;

use super::{
    super::history::{Call, Hash, History, Message, Operation, Outcome},
    exchange::Exchange,
    violation::{Invariant, Violation},
};

/// Answers that depend on what is stored. Others say something of the credential or of the load.
const OF_THE_CONTENT: [u16; 4] = [400, 404, 409, 422];

pub(super) fn check(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let mut originals: HashMap<(&str, &Hash), &Operation> = HashMap::new();
    for operation in exchange.submits.iter().chain(&exchange.decides) {
        let Some(content) = content(&operation.call) else { continue };
        let key = (operation.call.kind(), content);
        let Some(original) = originals.get(&key) else {
            if operation.is_ok() {
                originals.insert(key, operation);
            }
            continue;
        };
        let is_other = match operation.outcome {
            Outcome::Ok => {
                let (first, again) = (&original.answer, &operation.answer);
                (first.status, &first.body) != (again.status, &again.body)
            }
            Outcome::Fail => {
                original.ended < operation.invoked && OF_THE_CONTENT.contains(&operation.answer.status)
            }
            Outcome::Unknown => false,
        };
        if is_other {
            let text = format!(
                "the first {} was answered with {}, and the same again with {} {}",
                operation.call.kind(),
                original.answer.status,
                operation.answer.status,
                operation.answer.code
            );
            let other = Violation::new(Invariant::ReplayEqual, exchange.tenant, operation.ended, text);
            found.push(other.about(exchange.request).with(original).with(operation));
        }
    }
}

/// What makes two calls the same.
fn content(call: &Call) -> Option<&Hash> {
    match call {
        Call::Submit { body, .. } => body.as_ref(),
        Call::Decide { decision, .. } => decision.as_ref(),
        _ => None,
    }
}

/// A message is the same on every delivery, on every channel and in every list.
pub(super) fn check_messages(history: &History, found: &mut Vec<Violation>) {
    let mut known: HashMap<(&str, &str), &Message> = HashMap::new();
    let listed = history.operations.iter().flat_map(|operation| {
        operation.answer.messages.iter().map(|item| (operation.ended, &operation.by, operation.number, item))
    });
    let pushed = history.pushes.iter().map(|(at, push)| (*at, &push.by, push.connection, &push.message));
    for (at, by, operation, message) in listed.chain(pushed) {
        let first = known.entry((&by.tenant, &message.id)).or_insert(message);
        let is_same = first.kind == message.kind
            && first.request == message.request
            && (first.body == message.body || first.body.is_none() || message.body.is_none());
        if !is_same {
            let text = format!("message {} arrived with two contents", message.id);
            let other = Violation::new(Invariant::ReplayEqual, &by.tenant, at, text);
            found.push(other.about(&message.request).involving(operation, &by.client));
        }
    }
}
