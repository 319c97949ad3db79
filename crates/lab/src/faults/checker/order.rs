//! Order: messages of one mailbox arrive as they were stored, and a list has each item once.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    super::{
        history::{Call, History, Operation, Push, Transport},
        schedule::may_change_primary,
    },
    exchange::{Exchange, Exchanges},
    violation::{Invariant, Violation},
};

/// The clocks of the clients and of the store may differ by this much, in microseconds.
const CLOCKS_DIFFER: u64 = 1_000_000;

/// What comes in order: the first deliveries from one mailbox on one connection, or the items of one list.
#[derive(Default)]
struct Sequence<'a> {
    seen: HashSet<&'a str>,
    /// The latest time before which one of them was certainly not stored, and which one it is.
    newest: Option<(u64, &'a str)>,
    /// When the first one came.
    began: u64,
    /// How often it has started from the beginning.
    restarts: usize,
}

impl<'a> Sequence<'a> {
    /// One more message, which was stored between these times; returns one that came before it and was stored after it.
    fn push(&mut self, message: &'a str, request: &'a str, stored: (u64, u64)) -> Option<&'a str> {
        if !self.seen.insert(message) {
            return None;
        }
        let (earliest, latest) = stored;
        let overtaken = self.newest.filter(|(newest, _)| latest < *newest).map(|(_, request)| request);
        if earliest != u64::MAX && self.newest.is_none_or(|(newest, _)| newest < earliest) {
            self.newest = Some((earliest, request));
        }
        overtaken
    }
}

pub(super) fn check<'a>(history: &'a History, exchanges: &Exchanges<'a>, found: &mut Vec<Violation>) {
    pushed_in_order(history, exchanges, found);
    let addressed = Addressed::of(exchanges);
    for walk in history.operations.iter().filter(|operation| operation.is_ok()) {
        if let Call::Inbox { approver } = &walk.call {
            listed_once_in_order(walk, exchanges, found);
            addressed.all_listed(walk, approver, found);
        }
    }
}

fn pushed_in_order<'a>(history: &'a History, exchanges: &Exchanges<'a>, found: &mut Vec<Violation>) {
    let mut sequences: HashMap<(u64, bool), Sequence<'_>> = HashMap::new();
    let mut first_connections: HashMap<(&str, &str), u64> = HashMap::new();
    for (at, push) in &history.pushes {
        // The client library also lists, so its order is not that of a mailbox.
        if push.transport == Transport::Sdk {
            continue;
        }
        let message = &push.message;
        // What was pushed before and not acknowledged comes again on a later connection, after what is new.
        let first = *first_connections.entry((&push.reader, &message.id)).or_insert(push.connection);
        if first != push.connection {
            continue;
        }
        let Some(exchange) = exchanges.get(&push.by.tenant, &message.request) else { continue };
        let Some((is_shared, stored)) = mailbox_of(push, exchange) else { continue };
        let sequence = sequences.entry((push.connection, is_shared)).or_default();
        if sequence.seen.is_empty() {
            sequence.began = *at;
        }
        let stored_later = sequence.push(&message.id, &message.request, stored);
        if stored_later.is_some() && sequence.restarts < failovers(history, sequence.began, *at) {
            let (began, restarts) = (sequence.began, sequence.restarts + 1);
            *sequence = Sequence { began, restarts, ..Sequence::default() };
            sequence.push(&message.id, &message.request, stored);
            continue;
        }
        if let Some(newer) = stored_later {
            let text = format!("{} came after that of {newer}, which was stored later", message.kind);
            let wrong = Violation::new(Invariant::MailboxOrder, &push.by.tenant, *at, text);
            found.push(wrong.about(&message.request).pushed(push));
        }
    }
}

/// A node may notice this late that the database is another one, in microseconds.
const NOTICED_WITHIN: u64 = 60_000_000;

/// How often a connection may have started from the beginning between these times: after a failover numbers of a mailbox may
/// mean other messages, so a node sends everything again that is not acknowledged, in order.
fn failovers(history: &History, from: u64, to: u64) -> usize {
    let faults = history.faults.iter().filter(|fault| may_change_primary(&fault.kind));
    faults.filter(|fault| fault.begins <= to && fault.begins.saturating_add(NOTICED_WITHIN) >= from).count()
}

/// Whether a message is from the tenant's shared mailbox, and when it was stored; `None` if its order is not known.
fn mailbox_of(push: &Push, exchange: &Exchange<'_>) -> Option<(bool, (u64, u64))> {
    match push.message.kind.as_str() {
        "approval.request" => Some((address(exchange)? == Address::Everybody, exchange.submitted())),
        "decision.deliver" => Some((false, exchange.decided(push.message.body.as_ref()?))),
        _ => None,
    }
}

/// Whom an exchange is addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Address<'a> {
    Everybody,
    Approver(&'a str),
}

/// `None` if it is not known.
fn address<'a>(exchange: &Exchange<'a>) -> Option<Address<'a>> {
    match &exchange.submits.first()?.call {
        Call::Submit { approver: Some(approver), .. } => Some(Address::Approver(approver)),
        Call::Submit { request: Some(_), .. } => Some(Address::Everybody),
        _ => None,
    }
}

fn listed_once_in_order<'a>(walk: &'a Operation, exchanges: &Exchanges<'a>, found: &mut Vec<Violation>) {
    let mut sequence = Sequence::default();
    let mut report = |request: &str, text: String| {
        let wrong = Violation::new(Invariant::MailboxOrder, &walk.by.tenant, walk.ended, text);
        found.push(wrong.about(request).with(walk));
    };
    for item in &walk.answer.messages {
        if sequence.seen.contains(item.id.as_str()) {
            report(&item.request, "one walk through an inbox has it twice".to_owned());
            continue;
        }
        let stored = exchanges.get(&walk.by.tenant, &item.request).map(Exchange::submitted);
        let newer = sequence.push(&item.id, &item.request, stored.unwrap_or((u64::MAX, u64::MAX)));
        if let Some(newer) = newer {
            report(&item.request, format!("an inbox lists it after {newer}, which was stored later"));
        }
    }
}

/// The exchanges of each approver's inbox, in order of the time by which they were certainly stored.
struct Addressed<'a>(BTreeMap<(&'a str, Address<'a>), Vec<Listed<'a>>>);

/// When an exchange must be in an inbox.
struct Listed<'a> {
    from: u64,
    until: u64,
    request: &'a str,
}

impl<'a> Addressed<'a> {
    fn of(exchanges: &Exchanges<'a>) -> Self {
        let mut all: BTreeMap<_, Vec<Listed<'a>>> = BTreeMap::new();
        for exchange in exchanges.iter() {
            let (Some(address), Some(expires)) = (address(exchange), exchange.expires()) else { continue };
            let withdrawals = exchange.others.iter().filter(|it| matches!(it.call, Call::Withdraw { .. }));
            let ends = exchange.decides.iter().chain(withdrawals).filter(|it| it.may_have_happened());
            let ended = ends.map(|it| it.invoked).min().unwrap_or(u64::MAX);
            let until = ended.min(expires.saturating_sub(CLOCKS_DIFFER));
            let listed = Listed { from: exchange.submitted().1, until, request: exchange.request };
            all.entry((exchange.tenant, address)).or_default().push(listed);
        }
        for listed in all.values_mut() {
            listed.sort_by_key(|listed| listed.from);
        }
        Self(all)
    }

    /// What is pending during the whole walk is in it.
    fn all_listed(&self, walk: &Operation, approver: &str, found: &mut Vec<Violation>) {
        let listed: HashSet<&str> = walk.answer.messages.iter().map(|item| item.request.as_str()).collect();
        for address in [Address::Everybody, Address::Approver(approver)] {
            let expected = self.0.get(&(walk.by.tenant.as_str(), address));
            let stored = expected.into_iter().flatten().take_while(|it| it.from < walk.invoked);
            for missing in stored.filter(|it| it.until > walk.ended && !listed.contains(it.request)) {
                let text = "it is pending, and an inbox does not list it".to_owned();
                let wrong = Violation::new(Invariant::MailboxOrder, &walk.by.tenant, walk.ended, text);
                found.push(wrong.about(missing.request).with(walk));
            }
        }
    }
}
