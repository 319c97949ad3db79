//! Reads a history and finds what must never happen. Each invariant is a sentence in docs/guarantees.md.
//!
//! | to find | look in |
//! |---|---|
//! | what is known of one exchange, and when somebody saw it in which state | `exchange.rs` |
//! | submissions and decisions: kept, unchanged, at most one, as a whole or not at all | `kept.rs` |
//! | the state table, and the time of expiry | `states.rs` |
//! | replays | `replays.rs` |
//! | pushed messages: delivered, not again, in order | `delivery.rs`, `order.rs` |
//! | notifications outside of the protocol | `notified.rs` |
//! | tenants and revoked credentials | `access.rs` |
//! | acts | `acts.rs` |

mod access;
mod acts;
mod delivery;
mod exchange;
mod kept;
pub(crate) mod notified;
mod order;
mod replays;
mod states;
mod violation;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::history::History;
use exchange::Exchanges;
use notified::Notifications;

#[cfg(test)]
pub(crate) use violation::Invariant;
pub(crate) use violation::Violation;

/// All violations, in order of time; of each invariant the first one about an exchange or a client.
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let exchanges = Exchanges::of(history);
    let notifications = Notifications::of(history);
    let mut found = Vec::new();
    for exchange in exchanges.iter() {
        kept::check(exchange, history, &mut found);
        states::check(exchange, &mut found);
        replays::check(exchange, &mut found);
        delivery::check_delivered(exchange, &mut found);
        acts::check(exchange, &mut found);
        notifications.check(exchange, history, &mut found);
    }
    replays::check_messages(history, &mut found);
    delivery::check_acknowledged(history, &mut found);
    order::check(history, &exchanges, &mut found);
    access::check(history, &mut found);
    found.sort_by_key(|violation| violation.at);
    let mut known = BTreeSet::new();
    found.retain(|violation| {
        let subject = violation.request.clone().unwrap_or_else(|| violation.clients.join(" "));
        known.insert((violation.invariant, violation.tenant.clone(), subject))
    });
    found
}
