//! Submissions and decisions: kept, unchanged, at most one decision, as a whole or not at all.

use std::collections::BTreeSet;

use super::{
    super::history::{Call, Hash, History, Operation},
    exchange::{End, Exchange, Observation, Seen, sends},
    violation::{Invariant, Violation},
};

pub(super) fn check(exchange: &Exchange<'_>, history: &History, found: &mut Vec<Violation>) {
    submission_stays(exchange, found);
    submission_is_read_in_the_end(exchange, history, found);
    submission_is_unchanged(exchange, found);
    decision_stays(exchange, found);
    one_decision(exchange, found);
    decision_was_sent(exchange, found);
    nothing_refused_is_there(exchange, found);
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

/// What was acknowledged, or seen, is not unknown later.
fn submission_stays(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let (_, stored_by) = exchange.submitted();
    let seen_by = exchange.observations.iter().find(|it| it.seen != Seen::Absent);
    for absent in exchange.observations.iter().filter(|it| it.seen == Seen::Absent) {
        if absent.from > stored_by {
            let text = "an acknowledged submission is unknown to the gateway".to_owned();
            found.push(violation(exchange, Invariant::SubmissionKept, absent, text));
        } else if let Some(seen) = seen_by.filter(|seen| seen.to < absent.from) {
            let text = format!("{} saw it, and later it is unknown to the gateway", seen.client);
            let gone = violation(exchange, Invariant::AllOrNothing, absent, text);
            found.push(gone.involving(seen.operation, seen.client));
        }
    }
}

/// Every node has every acknowledged exchange in the end. Without this check a run that reads nothing would pass.
fn submission_is_read_in_the_end(exchange: &Exchange<'_>, history: &History, found: &mut Vec<Violation>) {
    if history.quiet_at.is_none() || !exchange.is_acknowledged() {
        return;
    }
    let is_read = exchange.others.iter().any(|read| is_final(read) && read.is_ok());
    if !is_read {
        let text = "an acknowledged submission was not read after the quiet phase".to_owned();
        let missing = Violation::new(Invariant::SubmissionKept, exchange.tenant, history.end, text);
        found.push(exchange.submits.iter().fold(missing.about(exchange.request), |it, by| it.with(by)));
    }
}

fn is_final(operation: &Operation) -> bool {
    matches!(operation.call, Call::FinalRead { .. })
}

/// Approvers get the bytes that were submitted.
fn submission_is_unchanged(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let bodies: BTreeSet<&Hash> = exchange
        .submits
        .iter()
        .filter_map(|submit| match &submit.call {
            Call::Submit { body, .. } => body.as_ref(),
            _ => None,
        })
        .collect();
    if bodies.is_empty() {
        return;
    }
    for (at, push) in &exchange.pushes {
        if push.message.kind == "approval.request"
            && push.message.body.as_ref().is_some_and(|body| !bodies.contains(body))
        {
            let text = "the request that was pushed differs from what was submitted".to_owned();
            let changed = Violation::new(Invariant::SubmissionKept, exchange.tenant, *at, text);
            found.push(changed.about(exchange.request).pushed(push));
        }
    }
}

/// What has a decision, acknowledged or seen, has the same one ever after.
fn decision_stays(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    for decide in exchange.decides.iter().filter(|decide| decide.is_ok()) {
        let Call::Decide { decision: sent, .. } = &decide.call else { continue };
        for later in exchange.observations.iter().filter(|it| it.from > decide.ended) {
            let is_other = matches!((sent, later.decision), (Some(sent), Some(seen)) if sent != seen);
            if later.seen.end() != Some(End::Decision) || is_other {
                let is = if is_other { "decided differently".to_owned() } else { later.seen.words() };
                let text =
                    format!("the decision of {} was acknowledged, and later it is {is}", decide.by.client);
                found.push(violation(exchange, Invariant::DecisionKept, later, text).with(decide));
            }
        }
    }
    let seen = exchange.observations.iter().find(|it| it.seen.end() == Some(End::Decision));
    let Some(seen) = seen.filter(|_| !exchange.decides.iter().any(|decide| decide.is_ok())) else { return };
    for later in exchange.observations.iter().filter(|it| it.from > seen.to) {
        if later.seen.end() != Some(End::Decision) {
            let text = format!("{} saw a decision, and later it is {}", seen.client, later.seen.words());
            let gone = violation(exchange, Invariant::AllOrNothing, later, text);
            found.push(gone.involving(seen.operation, seen.client));
        }
    }
}

/// All texts that were acknowledged or seen are one.
fn one_decision(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let mut texts: BTreeSet<&Hash> = exchange.observations.iter().filter_map(|it| it.decision).collect();
    let (mut named, mut unnamed) = (0, 0);
    for decide in exchange.decides.iter().filter(|decide| decide.is_ok()) {
        match &decide.call {
            Call::Decide { decision: Some(text), .. } => {
                texts.insert(text);
                named += 1;
            }
            // The client library makes another decision with each call, so two successes are two decisions.
            _ => unnamed += 1,
        }
    }
    let is_of_others = |text: &&Hash| {
        let mut others = exchange.decides.iter();
        others.any(|it| matches!(&it.call, Call::Decide { decision: Some(sent), .. } if sent == *text))
    };
    let is_lost = unnamed == 1 && !texts.is_empty() && texts.iter().all(is_of_others);
    if texts.len() > 1 || unnamed > 1 || (unnamed == 1 && named > 0) || is_lost {
        let ended = exchange.decides.iter().map(|decide| decide.ended).filter(|at| *at != u64::MAX).max();
        let last = exchange.observations.last().map_or(0, |it| it.to);
        let text = "more than one decision was accepted or seen".to_owned();
        let two = Violation::new(Invariant::OneDecision, exchange.tenant, ended.unwrap_or(last), text);
        found.push(exchange.decides.iter().fold(two.about(exchange.request), |it, by| it.with(by)));
    }
}

/// Nobody sees a decision that nobody has sent, or that was refused.
fn decision_was_sent(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    for seen in exchange.observations.iter().filter(|it| it.seen.end() == Some(End::Decision)) {
        let is_possible = |decide: &&Operation| {
            decide.may_have_happened()
                && decide.invoked <= seen.to
                && seen.decision.is_none_or(|text| sends(decide, text))
        };
        if !exchange.decides.iter().copied().any(|decide| is_possible(&decide)) {
            let text = "it has a decision that nobody has sent".to_owned();
            found.push(violation(exchange, Invariant::DecisionKept, seen, text));
        }
    }
}

/// What was refused did nothing.
fn nothing_refused_is_there(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    let is_refused =
        !exchange.submits.is_empty() && !exchange.submits.iter().any(|it| it.may_have_happened());
    let Some(seen) = exchange.observations.iter().find(|it| is_refused && it.seen != Seen::Absent) else {
        return;
    };
    let text = format!("its submission was refused, and {} sees it", seen.client);
    found.push(violation(exchange, Invariant::AllOrNothing, seen, text));
}
