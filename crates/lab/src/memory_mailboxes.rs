//! The mailboxes of one tenant, in memory.

use std::collections::{BTreeMap, HashMap};

use countersign_core::store::{
    Delivery, DeliveryPage, DeliveryQuery, MAX_SCANNED, Mailbox, Mark, MarkKind, NewDelivery, Removal,
};
use countersign_wire::{id::ApproverId, timestamp::Timestamp};

/// All mailboxes, with an index of deliveries by subject.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes {
    by_name: HashMap<Mailbox, NumberedMailbox>,
    /// The places of deliveries, by the id of their subject.
    by_subject: HashMap<String, Vec<(Mailbox, u64)>>,
}

/// One mailbox. Its counter outlives the deliveries, so that no number is used twice.
#[derive(Debug, Default)]
struct NumberedMailbox {
    counter: u64,
    deliveries: BTreeMap<u64, MarkedDelivery>,
}

#[derive(Debug)]
struct MarkedDelivery {
    delivery: Delivery,
    marks: Vec<(ApproverId, MarkKind)>,
}

impl Mailboxes {
    pub(crate) fn in_inboxes(&self) -> impl Iterator<Item = &Delivery> {
        let inboxes = self.by_name.iter().filter(|(mailbox, _)| mailbox.is_inbox());
        inboxes.flat_map(|(_, numbered)| numbered.deliveries.values().map(|marked| &marked.delivery))
    }

    pub(crate) fn remove(&mut self, removals: Vec<Removal>) {
        for removal in removals {
            match removal {
                Removal::ByNumber { mailbox, number } => self.remove_one(&mailbox, number),
                Removal::BySubject { subject, msg_types } => {
                    for (mailbox, delivery) in self.by_subject(&subject.id) {
                        let named = msg_types.is_empty() || msg_types.contains(&delivery.msg_type);
                        if named && delivery.subject == subject {
                            self.remove_one(&mailbox, delivery.number);
                        }
                    }
                }
                Removal::ByMessage { subject, msg_id } => {
                    for (mailbox, delivery) in self.by_subject(&subject.id) {
                        if delivery.msg_id == msg_id && delivery.subject == subject {
                            self.remove_one(&mailbox, delivery.number);
                        }
                    }
                }
            }
        }
    }

    fn remove_one(&mut self, mailbox: &Mailbox, number: u64) {
        let found = self.by_name.get_mut(mailbox).and_then(|numbered| numbered.deliveries.remove(&number));
        let Some(MarkedDelivery { delivery, .. }) = found else { return };
        if let Some(places) = self.by_subject.get_mut(&delivery.subject.id) {
            places.retain(|(of, at)| of != mailbox || *at != number);
            if places.is_empty() {
                self.by_subject.remove(&delivery.subject.id);
            }
        }
    }

    pub(crate) fn mark(&mut self, marks: Vec<Mark>) {
        for Mark { mailbox, number, reader, kind, .. } in marks {
            let numbered = self.by_name.get_mut(&mailbox);
            if let Some(marked) = numbered.and_then(|numbered| numbered.deliveries.get_mut(&number)) {
                marked.marks.push((reader, kind));
            }
        }
    }

    /// Returns the numbers of the deliveries, in the order of `deliveries`.
    pub(crate) fn deliver(&mut self, deliveries: Vec<NewDelivery>, now: Timestamp) -> Vec<u64> {
        deliveries.into_iter().map(|delivery| self.deliver_one(delivery, now)).collect()
    }

    fn deliver_one(&mut self, new: NewDelivery, now: Timestamp) -> u64 {
        let NewDelivery { mailbox, msg_id, msg_type, subject, payload, until } = new;
        let numbered = self.by_name.entry(mailbox.clone()).or_default();
        numbered.counter += 1;
        let number = numbered.counter;
        self.by_subject.entry(subject.id.clone()).or_default().push((mailbox, number));
        let delivery = Delivery { number, msg_id, msg_type, subject, payload, at: now, until };
        numbered.deliveries.insert(number, MarkedDelivery { delivery, marks: Vec::new() });
        number
    }

    pub(crate) fn read(&self, query: &DeliveryQuery, now: Timestamp) -> DeliveryPage {
        let head = self.head(&query.mailbox);
        let nothing = || DeliveryPage::new(query, Vec::new(), None, head, now);
        let Some(numbered) = self.by_name.get(&query.mailbox) else { return nothing() };
        let up_to = query.up_to.unwrap_or(u64::MAX);
        let Some(first) = query.after.checked_add(1).filter(|first| *first <= up_to) else {
            return nothing();
        };
        let wanted = |marked: &&MarkedDelivery| {
            let is_marked = query.unless_marked.as_ref().is_some_and(|mark| marked.marks.contains(mark));
            !is_marked && (!query.only_relevant || marked.delivery.until > now)
        };
        let scanned = || numbered.deliveries.range(first..=up_to).take(MAX_SCANNED as usize);
        let found = scanned().map(|(_, marked)| marked).filter(wanted);
        let found = found.take(query.limit as usize).map(|marked| marked.delivery.clone()).collect();
        let last_scanned = scanned().nth(MAX_SCANNED as usize - 1).map(|(number, _)| *number);
        DeliveryPage::new(query, found, last_scanned, head, now)
    }

    pub(crate) fn by_subject(&self, subject: &str) -> Vec<(Mailbox, Delivery)> {
        let places = self.by_subject.get(subject).map(Vec::as_slice).unwrap_or_default();
        let delivery = |(mailbox, number): &(Mailbox, u64)| {
            let marked = self.by_name.get(mailbox)?.deliveries.get(number)?;
            Some((mailbox.clone(), marked.delivery.clone()))
        };
        places.iter().filter_map(delivery).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn head(&self, mailbox: &Mailbox) -> u64 {
        self.by_name.get(mailbox).map_or(0, |numbered| numbered.counter)
    }
}
