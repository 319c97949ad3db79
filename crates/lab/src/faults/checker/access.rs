//! Who may see and do what: tenants, and credentials that were revoked.

use std::collections::{BTreeSet, HashMap};

use super::{
    super::history::{Call, Caller, History, Operation, Outcome},
    violation::{Invariant, Violation},
};

/// A request with a revoked key may succeed for this long after the revocation was answered, in microseconds: a node
/// remembers a valid key for 5 s (docs/adr/0005); one second is for measuring.
const REQUEST_BOUND: u64 = 6_000_000;

/// A connection that the key holds open may get messages for this long: nodes learn of a revocation within 5 s, or close
/// the connection after 15 s in which the store could not confirm the key.
const HELD_BOUND: u64 = 16_000_000;

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    tenants(history, found);
    revoked(history, found);
}

fn tenants(history: &History, found: &mut Vec<Violation>) {
    let mut report = |by: &Caller, at: u64, operation: u64, request: Option<&str>, text: String| {
        let crossed = Violation::new(Invariant::Tenants, &by.tenant, at, text);
        let crossed = Violation { request: request.map(str::to_owned), ..crossed };
        found.push(crossed.involving(operation, &by.client));
    };
    for operation in &history.operations {
        let (by, answer) = (&operation.by, &operation.answer);
        let in_items = answer.messages.iter().map(|item| &item.tenants);
        for others in in_items.chain([&answer.tenants]).filter_map(|in_it| foreign(in_it, &by.tenant)) {
            let text = format!("an answer has something of {others}");
            report(by, operation.ended, operation.number, operation.request(), text);
        }
        if let Call::Probe { of, request, tries } = &operation.call
            && operation.outcome == Outcome::Ok
        {
            let text = format!("{tries} succeeded on an exchange of {of}");
            report(by, operation.ended, operation.number, Some(request), text);
        }
    }
    for (at, push) in &history.pushes {
        if let Some(others) = foreign(&push.message.tenants, &push.by.tenant) {
            let text = format!("a pushed message has something of {others}");
            report(&push.by, *at, push.connection, Some(&push.message.request), text);
        }
    }
}

/// The other tenants among these.
fn foreign(tenants: &BTreeSet<String>, own: &str) -> Option<String> {
    let others: Vec<&str> = tenants.iter().map(String::as_str).filter(|tenant| *tenant != own).collect();
    (!others.is_empty()).then(|| others.join(", "))
}

fn revoked(history: &History, found: &mut Vec<Violation>) {
    let mut revoked: HashMap<&str, u64> = HashMap::new();
    for operation in history.operations.iter().filter(|operation| operation.is_ok()) {
        if let Call::RevokeKey { credential } = &operation.call {
            let at = revoked.entry(credential).or_insert(operation.ended);
            *at = (*at).min(operation.ended);
        }
    }
    for operation in &history.operations {
        let Some(at) = revoked.get(operation.by.credential.as_str()).copied() else { continue };
        if operation.invoked > at + REQUEST_BOUND + history.faulty_time(at, operation.invoked)
            && is_accepted(operation)
        {
            let late = (operation.invoked - at) / 1_000;
            let text =
                format!("a key was accepted {late} ms after its revocation: {}", operation.answer.status);
            let accepted = Violation::new(Invariant::Revoked, &operation.by.tenant, operation.ended, text);
            found.push(accepted.with(operation));
        }
    }
    for (pushed, push) in &history.pushes {
        let Some(at) = revoked.get(push.by.credential.as_str()).copied() else { continue };
        if *pushed > at + HELD_BOUND + history.faulty_time(at, *pushed) {
            let late = (pushed - at) / 1_000;
            let text = format!("a message was pushed {late} ms after the key was revoked");
            let late = Violation::new(Invariant::Revoked, &push.by.tenant, *pushed, text);
            found.push(late.pushed(push));
        }
    }
}

/// Whether the gateway has looked beyond the credential. 429 and 5xx may come before that.
fn is_accepted(operation: &Operation) -> bool {
    !matches!(operation.answer.status, 0 | 401 | 429 | 500..)
}
