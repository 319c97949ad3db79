//! Acts: what an enforcer of the client library does by a decision.

use super::{
    super::history::Call,
    exchange::Exchange,
    violation::{Invariant, Violation},
};

/// All decisions of the workload are for one use.
pub(super) fn check(exchange: &Exchange<'_>, found: &mut Vec<Violation>) {
    for (number, (at, act)) in exchange.acts.iter().enumerate() {
        let approves = |call: &Call| matches!(call, Call::Decide { approves: true, .. });
        let is_approved = exchange
            .decides
            .iter()
            .any(|decide| decide.may_have_happened() && decide.invoked <= *at && approves(&decide.call));
        let text = match (number, is_approved) {
            (0, true) => continue,
            (0, false) => "it was executed, and nobody has approved it".to_owned(),
            (_, _) => format!("it was executed {} times", number + 1),
        };
        let twice = Violation::new(Invariant::ActedOnce, exchange.tenant, *at, text).about(exchange.request);
        found.push(Violation { clients: vec![act.client.clone()], ..twice });
    }
}
