//! An approver reads their inbox: what is addressed to them and what names no approver, merged.

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    limits::MAX_PAGE,
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::Gateway,
    model::exchange::{Exchange, State},
    store::{
        Delivery, DeliveryPage, DeliveryQuery, Due, Key, Mailbox, MarkKind, PayloadId, Record, Stored as _,
    },
};

/// Requests that reading the list of expired ones moves there itself.
const MAX_EXPIRED: usize = 200;

/// How far it looks for them in each mailbox: so many pages of so many deliveries.
const MAX_PAGES: u32 = 5;
const PAGE: u32 = 200;

/// The two lists of an approver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Requests that can be decided.
    Active,
    /// Requests that nobody decided in time.
    Expired,
}

/// How far a walk through a list has come: the last number in each of its two mailboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    pub own: u64,
    pub shared: u64,
}

/// One request, with what its envelope needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub msg_id: MsgId,
    pub request_id: RequestId,
    pub enforcer: EnforcerId,
    /// The store's time of the submission.
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// As it was submitted, byte for byte.
    pub body: Bytes,
    pub trace: Option<Bytes>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Item>,
    /// Where the next page starts; `None` after the last.
    pub next: Option<Position>,
}

impl Gateway {
    /// One page of a list. A request that is pending during a whole walk appears in it exactly once. What is on the list
    /// of expired requests has expired; [`Gateway::expire_overdue`] moves there what is overdue.
    pub async fn inbox(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        list: List,
        from: Position,
        limit: u32,
    ) -> Result<Page, Error> {
        let (own, shared) = match list {
            List::Active => (Mailbox::Approver(approver.clone()), Mailbox::Shared),
            List::Expired => (Mailbox::ExpiredOfApprover(approver.clone()), Mailbox::ExpiredShared),
        };
        let query = |mailbox, after| DeliveryQuery {
            mailbox,
            after,
            up_to: None,
            limit: limit + 1,
            unless_marked: Some((approver.clone(), MarkKind::Hidden)),
            only_relevant: list == List::Active,
        };
        let own = self.walk(tenant, query(own, from.own)).await?;
        let shared = self.walk(tenant, query(shared, from.shared)).await?;
        let walked = Walked::new(own, shared);
        let keys: Vec<Key> =
            walked.merged.iter().take(limit as usize).map(|(_, delivery)| delivery.subject.clone()).collect();
        let loaded = self.store.load(tenant, &keys).await?;

        let is_listed = |exchange: &Exchange| {
            belongs(exchange, list, loaded.now) && !exchange.hidden_by.contains(approver)
        };
        let (listed, next) = walked.cut_page(&loaded.records, from, is_listed)?;
        Ok(Page { items: self.items(tenant, listed).await?, next })
    }

    /// Moves requests of an approver whose time is up to the list of expired ones: at most `MAX_EXPIRED` of those that
    /// have waited longest, and the rest is left to the sweeper. What the list shows has expired in any case.
    pub async fn expire_overdue(&self, tenant: &TenantId, approver: &ApproverId) -> Result<(), Error> {
        let mut overdue = Vec::new();
        for mailbox in [Mailbox::Approver(approver.clone()), Mailbox::Shared] {
            self.find_overdue(tenant, mailbox, &mut overdue).await?;
        }
        let failed = self.process_all_due(overdue).await;
        failed.into_iter().next().map_or(Ok(()), |failed| Err(failed.error))
    }

    /// Adds the overdue requests among the oldest of a mailbox, until there are [`MAX_EXPIRED`] of them.
    async fn find_overdue(
        &self,
        tenant: &TenantId,
        mailbox: Mailbox,
        overdue: &mut Vec<Due>,
    ) -> Result<(), Error> {
        let (mut after, mut pages) = (0, 0);
        loop {
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after,
                up_to: None,
                limit: PAGE,
                unless_marked: None,
                only_relevant: false,
            };
            let DeliveryPage { deliveries, now, .. } = self.store.deliveries(tenant, query).await?;
            let found = deliveries.iter().filter(|delivery| delivery.until <= now).map(|delivery| Due {
                tenant: tenant.clone(),
                at: delivery.until,
                key: delivery.subject.clone(),
            });
            overdue.extend(found.take(MAX_EXPIRED - overdue.len()));
            pages += 1;
            let is_enough = overdue.len() == MAX_EXPIRED || pages == MAX_PAGES;
            match deliveries.last() {
                Some(last) if !is_enough && deliveries.len() == PAGE as usize => after = last.number,
                _ => return Ok(()),
            }
        }
    }

    /// Reads the bodies, all in one read.
    async fn items(&self, tenant: &TenantId, listed: Vec<Listed<'_>>) -> Result<Vec<Item>, Error> {
        let ids: Vec<PayloadId> = listed
            .iter()
            .flat_map(|(_, exchange)| exchange.artifact.into_iter().chain(exchange.trace))
            .collect();
        let mut bodies = self.store.payloads(tenant, &ids).await?.into_iter();
        let mut items = Vec::with_capacity(listed.len());
        for (delivery, exchange) in listed {
            let body = exchange.artifact.and_then(|_| bodies.next().flatten());
            let trace = exchange.trace.and_then(|_| bodies.next().flatten());
            // Without its body, it has ended and been buried since the list was read.
            if let (Some(body), Ok(request_id)) = (body, delivery.subject.id.parse()) {
                items.push(Item {
                    msg_id: delivery.msg_id.clone(),
                    request_id,
                    enforcer: exchange.enforcer,
                    created_at: exchange.created_at,
                    expires_at: exchange.expires_at,
                    body,
                    trace,
                });
            }
        }
        Ok(items)
    }
}

/// A request on a page, before its body is read.
type Listed<'d> = (&'d Delivery, Exchange);

/// What was read of both mailboxes.
struct Walked {
    /// In commit order, each with whether it is from the shared one. Nothing that was not read comes before any of it.
    merged: Vec<(bool, Delivery)>,
    /// Up to where the mailboxes were read, as far as that is in `merged`.
    read_to: Position,
    has_more: bool,
}

impl Walked {
    fn new(own: DeliveryPage, shared: DeliveryPage) -> Self {
        // Where a mailbox was not read to its end, what comes after its last delivery is not known yet. One without any
        // says nothing of when.
        let unfinished = [&own, &shared].into_iter().filter(|page| page.has_more());
        let known_until = unfinished.map(|page| page.deliveries.last().map(|last| last.at)).min();
        let has_more = known_until.is_some();
        let mut read_to = Position { own: own.read_to, shared: shared.read_to };
        let mut merged = merge(own.deliveries, shared.deliveries);
        if let Some(known_until) = known_until {
            let is_known = |(_, delivery): &(bool, Delivery)| Some(delivery.at) <= known_until;
            let known = merged.iter().take_while(|item| is_known(item)).count();
            for (is_shared, delivery) in merged.drain(known..).rev() {
                match is_shared {
                    true => read_to.shared = delivery.number - 1,
                    false => read_to.own = delivery.number - 1,
                }
            }
        }
        Self { merged, read_to, has_more }
    }

    /// The items of a page, which also ends at [`MAX_PAGE`] bytes, and where the next page starts.
    fn cut_page(
        &self,
        records: &[Option<Record>],
        from: Position,
        is_listed: impl Fn(&Exchange) -> bool,
    ) -> Result<(Vec<Listed<'_>>, Option<Position>), Error> {
        let (mut position, mut taken, mut bytes, mut listed) = (from, 0, 0, Vec::new());
        for ((is_shared, delivery), record) in self.merged.iter().zip(records) {
            if let Some(exchange) = Exchange::read(record.as_ref())?
                && is_listed(&exchange.value)
            {
                if bytes > 0 && bytes + exchange.value.size > MAX_PAGE {
                    break;
                }
                bytes += exchange.value.size;
                listed.push((delivery, exchange.value));
            }
            taken += 1;
            match is_shared {
                true => position.shared = delivery.number,
                false => position.own = delivery.number,
            }
        }
        let next = match taken < self.merged.len() {
            true => Some(position),
            false => self.has_more.then_some(self.read_to),
        };
        Ok((listed, next))
    }
}

/// A request may have changed since its delivery was read.
fn belongs(exchange: &Exchange, list: List, now: Timestamp) -> bool {
    match (list, exchange.state_at(now)) {
        (List::Active, State::Pending) | (List::Expired, State::Expired { .. }) => !exchange.is_tombstone(),
        _ => false,
    }
}

/// Both mailboxes in commit order, each with whether it is the shared one.
fn merge(own: Vec<Delivery>, shared: Vec<Delivery>) -> Vec<(bool, Delivery)> {
    let mut merged = Vec::with_capacity(own.len() + shared.len());
    let mut own = own.into_iter().peekable();
    let mut shared = shared.into_iter().peekable();
    loop {
        let own_first = match (own.peek(), shared.peek()) {
            (Some(own), Some(shared)) => own.at <= shared.at,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        let next = if own_first { own.next() } else { shared.next() };
        merged.extend(next.map(|delivery| (!own_first, delivery)));
    }
}
