//! Notifications outside of the protocol: at least one, and none of what has ended.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    super::history::{Call, History, Operation},
    exchange::Exchange,
    violation::{Invariant, Violation},
};

/// A node that is about to send when a request ends sends within this time, in microseconds. The time during which a fault was
/// active is added: a stopped node goes on with what it had begun.
const ENDED_BOUND: u64 = 1_000_000;

/// Everything that was sent outside of the protocol, by tenant and request, and who had a channel since when.
pub(super) struct Notifications<'a> {
    sent: BTreeMap<(&'a str, &'a str), Vec<(u64, bool)>>,
    channels: BTreeMap<(&'a str, &'a str), u64>,
}

/// What came of notifications.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counted {
    /// Requests that somebody was notified of.
    pub(crate) requests: u64,
    /// Notifications beyond the first one of a request.
    pub(crate) again: u64,
}

/// How many requests somebody was notified of, and how often that was repeated.
pub(crate) fn count(history: &History) -> Counted {
    let sent = Notifications::of(history).sent;
    let accepted: Vec<usize> =
        sent.values().map(|sent| sent.iter().filter(|(_, accepted)| *accepted).count()).collect();
    let count = |count: usize| u64::try_from(count).unwrap_or_default();
    Counted {
        requests: count(accepted.iter().filter(|times| **times > 0).count()),
        again: accepted.iter().map(|times| count(times.saturating_sub(1))).sum(),
    }
}

impl<'a> Notifications<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let (mut sent, mut channels): (BTreeMap<_, Vec<_>>, BTreeMap<_, u64>) = Default::default();
        for (at, it) in &history.notified {
            sent.entry((it.tenant.as_str(), it.request.as_str())).or_default().push((*at, it.accepted));
        }
        for operation in history.operations.iter().filter(|operation| operation.is_ok()) {
            if let Call::SetChannel { approver } = &operation.call {
                let of = (operation.by.tenant.as_str(), approver.as_str());
                channels.entry(of).or_insert(operation.ended);
            }
        }
        Self { sent, channels }
    }

    /// Whoever has a channel, and whose request is not ended, is notified; nobody is long after its end.
    pub(super) fn check(&self, exchange: &Exchange<'_>, history: &History, found: &mut Vec<Violation>) {
        let Some(submit) = exchange.submits.iter().find(|submit| submit.is_ok()) else { return };
        let Call::Submit { approver: Some(approver), .. } = &submit.call else { return };
        let since = self.channels.get(&(exchange.tenant, approver.as_str()));
        if since.is_none_or(|since| *since > submit.invoked) {
            return;
        }
        let sent = self.sent.get(&(exchange.tenant, exchange.request)).map_or(&[][..], Vec::as_slice);
        let is_withdrawal = |it: &&&Operation| matches!(it.call, Call::Withdraw { .. });
        let mut withdrawals =
            exchange.others.iter().filter(is_withdrawal).filter(|it| it.may_have_happened());
        let is_accepted = sent.iter().any(|(_, accepted)| *accepted);
        let Some(first) = withdrawals.next() else {
            if !is_accepted {
                let text = "nobody was notified of it, and it still waits".to_owned();
                let lost = Violation::new(Invariant::Notified, exchange.tenant, history.end, text);
                found.push(lost.about(exchange.request).with(submit));
            }
            return;
        };
        let Some(end) = std::iter::once(first).chain(withdrawals).find(|it| it.is_ok()) else { return };
        for (at, _) in sent.iter().filter(|(at, _)| *at > end.ended) {
            let bound = ENDED_BOUND + history.faulty_time(end.ended, *at);
            if at - end.ended > bound {
                let (late, allowed) = ((at - end.ended) / 1_000, bound / 1_000);
                let text = format!("somebody was notified {late} ms after its end; {allowed} ms are allowed");
                let late = Violation::new(Invariant::NotNotifiedLate, exchange.tenant, *at, text);
                found.push(late.about(exchange.request).with(end));
            }
        }
    }
}
