//! Stretches of mailboxes in which a reader has nothing left to read, so that what somebody has hidden or acknowledged is
//! looked at once and not with every read. A stretch stays so: numbers are not used again, marks are not taken back and what
//! is irrelevant does not become relevant again.

use std::collections::{BTreeMap, HashMap};

use countersign_wire::id::{ApproverId, TenantId};
use parking_lot::Mutex;

use crate::store::{DeliveryPage, DeliveryQuery, Mailbox, MarkKind};

/// A shorter stretch is read faster than it is skipped.
const MIN_LENGTH: u64 = 100;

/// Stretches of one reader in one mailbox, and readers of whom some are known.
const MAX_STRETCHES: usize = 100;
const MAX_READERS: usize = 10_000;

/// Whose reads skip the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reading {
    tenant: TenantId,
    mailbox: Mailbox,
    unless_marked: Option<(ApproverId, MarkKind)>,
    only_relevant: bool,
}

impl Reading {
    fn of(tenant: &TenantId, query: &DeliveryQuery) -> Self {
        Self {
            tenant: tenant.clone(),
            mailbox: query.mailbox.clone(),
            unless_marked: query.unless_marked.clone(),
            only_relevant: query.only_relevant,
        }
    }
}

/// First and last number of each stretch. They neither overlap nor touch.
type Stretches = BTreeMap<u64, u64>;

#[derive(Debug, Default)]
pub(crate) struct Skips {
    known: Mutex<HashMap<Reading, Stretches>>,
}

impl Skips {
    /// The part of `query` that comes first and has to be read: it begins after a stretch, and ends before the next one.
    pub(crate) fn shorten(&self, tenant: &TenantId, query: &mut DeliveryQuery) {
        let known = self.known.lock();
        let Some(stretches) = known.get(&Reading::of(tenant, query)) else { return };
        let first = query.after.saturating_add(1);
        if let Some((_, last)) = stretches.range(..=first).next_back()
            && *last >= first
        {
            query.after = *last;
        }
        let next = stretches.range(query.after.saturating_add(1)..).next();
        let up_to = next.map(|(first, _)| first - 1);
        query.up_to = [query.up_to, up_to].into_iter().flatten().min();
    }

    /// Remembers what `query` did not find.
    pub(crate) fn learn(&self, tenant: &TenantId, query: &DeliveryQuery, page: &DeliveryPage) {
        let found = page.deliveries.iter().map(|delivery| delivery.number);
        let (mut gaps, mut next) = (Vec::new(), query.after.saturating_add(1));
        for number in found.chain([page.read_to.saturating_add(1)]) {
            if number > next {
                gaps.push((next, number - 1));
            }
            next = number.saturating_add(1);
        }
        let mut known = self.known.lock();
        let reading = Reading::of(tenant, query);
        if gaps.iter().all(|(first, last)| last - first < MIN_LENGTH) && !known.contains_key(&reading) {
            return;
        }
        if known.len() >= MAX_READERS {
            known.clear();
        }
        let stretches = known.entry(reading).or_default();
        for (first, last) in gaps {
            insert(stretches, first, last);
        }
    }

    pub(crate) fn clear(&self) {
        self.known.lock().clear();
    }
}

/// Joins a stretch with those that it touches. A short one that touches none, or one too many, is left out.
fn insert(stretches: &mut Stretches, mut first: u64, mut last: u64) {
    let mut touched = Vec::new();
    for (start, end) in stretches.range(..=last.saturating_add(1)).rev() {
        if end.saturating_add(1) < first {
            break;
        }
        touched.push((*start, *end));
    }
    if touched.is_empty() && (last - first < MIN_LENGTH || stretches.len() >= MAX_STRETCHES) {
        return;
    }
    for (start, end) in touched {
        stretches.remove(&start);
        (first, last) = (first.min(start), last.max(end));
    }
    stretches.insert(first, last);
}

#[cfg(test)]
mod tests {
    use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};

    use super::*;
    use crate::store::{Delivery, Key, Kind};

    fn tenant() -> TenantId {
        "acme".parse().unwrap()
    }

    fn query(after: u64) -> DeliveryQuery {
        DeliveryQuery {
            mailbox: Mailbox::Shared,
            after,
            up_to: None,
            limit: 10,
            unless_marked: Some(("ada".parse().unwrap(), MarkKind::Hidden)),
            only_relevant: true,
        }
    }

    fn page(numbers: &[u64], read_to: u64) -> DeliveryPage {
        let at = Timestamp::from_unix_micros(0);
        let delivery = |number: &u64| Delivery {
            number: *number,
            msg_id: "m".parse().unwrap(),
            msg_type: MsgType::ApprovalRequest,
            subject: Key::new(Kind::Exchange, "r"),
            payload: None,
            at,
            until: at,
        };
        DeliveryPage { deliveries: numbers.iter().map(delivery).collect(), now: at, head: 100_000, read_to }
    }

    fn shortened(skips: &Skips, after: u64) -> (u64, Option<u64>) {
        let mut query = query(after);
        skips.shorten(&tenant(), &mut query);
        (query.after, query.up_to)
    }

    #[test]
    fn what_was_not_found_is_skipped_and_stretches_grow_together() {
        let skips = Skips::default();
        assert_eq!(shortened(&skips, 0), (0, None));
        skips.learn(&tenant(), &query(0), &page(&[1, 1_000], 2_000));
        assert_eq!(shortened(&skips, 0), (0, Some(1)), "up to the first stretch");
        assert_eq!(shortened(&skips, 1), (999, Some(1_000)));
        assert_eq!(shortened(&skips, 500), (999, Some(1_000)), "from within a stretch");
        assert_eq!(shortened(&skips, 1_000), (2_000, None));
        skips.learn(&tenant(), &query(2_000), &page(&[], 2_010));
        assert_eq!(shortened(&skips, 1_000), (2_010, None), "a short one is added to its neighbour");
        skips.learn(&tenant(), &query(999), &page(&[], 1_000));
        assert_eq!(shortened(&skips, 1), (2_010, None), "the one between them was hidden too");
    }

    #[test]
    fn short_stretches_are_not_kept_and_other_readers_skip_nothing() {
        let skips = Skips::default();
        skips.learn(&tenant(), &query(0), &page(&[50, 100], 150));
        assert!(skips.known.lock().is_empty());
        skips.learn(&tenant(), &query(0), &page(&[], 1_000));
        let mut other = DeliveryQuery { only_relevant: false, ..query(0) };
        skips.shorten(&tenant(), &mut other);
        assert_eq!((other.after, other.up_to), (0, None));
        skips.clear();
        assert_eq!(shortened(&skips, 0), (0, None));
    }

    #[test]
    fn there_are_never_too_many() {
        let skips = Skips::default();
        for number in 0..1_000 {
            skips.learn(&tenant(), &query(number * 1_000), &page(&[], number * 1_000 + 500));
        }
        assert_eq!(skips.known.lock().values().map(BTreeMap::len).sum::<usize>(), MAX_STRETCHES);
    }
}
