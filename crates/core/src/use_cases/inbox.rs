//! An approver reads their inbox: what is addressed to them and what is for nobody in particular, merged.

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    limits::MAX_PAGE,
    timestamp::Timestamp,
};

use crate::{
    Error, Gateway,
    exchange::{Exchange, State},
    store::{Delivery, DeliveryQuery, Due, Key, Mailbox, MarkKind, PayloadId, Unread},
    stored::Stored as _,
};

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// What can be decided.
    Active,
    /// What nobody decided in time.
    Expired,
}

/// How far a walk through a list has come, in each of its two mailboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// In the approver's own mailbox.
    pub own: u64,
    /// In the shared one.
    pub shared: u64,
}

/// One request, with what its envelope needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The message.
    pub msg_id: MsgId,
    /// The exchange.
    pub request_id: RequestId,
    /// Who asks.
    pub enforcer: EnforcerId,
    /// When the store took it in.
    pub created_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// The body, byte for byte.
    pub body: Bytes,
    /// The trace.
    pub trace: Option<Bytes>,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Oldest first.
    pub items: Vec<Item>,
    /// Where to go on, unless this was the end.
    pub next: Option<Position>,
}

impl Gateway {
    /// One page of a list. What is pending during a whole walk appears in it exactly once.
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
            List::Expired => {
                self.expire_lapsed(tenant, Mailbox::Approver(approver.clone())).await?;
                self.expire_lapsed(tenant, Mailbox::Shared).await?;
                (Mailbox::ExpiredOfApprover(approver.clone()), Mailbox::ExpiredShared)
            }
        };
        let query = |mailbox, after| DeliveryQuery {
            mailbox,
            after,
            limit: limit + 1,
            unless_marked: Some((approver.clone(), MarkKind::Hidden)),
            only_relevant: list == List::Active,
        };
        let own = self.store.deliveries(tenant, query(own, from.own)).await?;
        let shared = self.store.deliveries(tenant, query(shared, from.shared)).await?;
        let merged = merge(own.deliveries, shared.deliveries);
        let keys: Vec<Key> =
            merged.iter().take(limit as usize).map(|(_, delivery)| delivery.subject.clone()).collect();
        let loaded = self.store.load(tenant, &keys).await?;

        let (mut position, mut taken, mut bytes, mut listed) = (from, 0, 0, Vec::new());
        for ((is_shared, delivery), record) in merged.iter().zip(&loaded.records) {
            if let Some(exchange) = Exchange::read(record.as_ref())?
                && belongs(&exchange.value, list, loaded.now)
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
        let next = (taken < merged.len()).then_some(position);
        Ok(Page { items: self.items(tenant, listed).await?, next })
    }

    /// What has just lapsed belongs on the list of what has expired, and moves there now.
    async fn expire_lapsed(&self, tenant: &TenantId, mailbox: Mailbox) -> Result<(), Error> {
        const CHUNK: u32 = 200;
        let mut after = 0;
        loop {
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after,
                limit: CHUNK,
                unless_marked: None,
                only_relevant: false,
            };
            let Unread { deliveries, now } = self.store.deliveries(tenant, query).await?;
            for lapsed in deliveries.iter().filter(|delivery| delivery.until <= now) {
                let due = Due { tenant: tenant.clone(), at: lapsed.until, key: lapsed.subject.clone() };
                self.look_at(&due, now).await?;
            }
            match deliveries.last() {
                Some(last) if deliveries.len() == CHUNK as usize => after = last.number,
                _ => return Ok(()),
            }
        }
    }

    /// Adds the bodies, all in one read.
    async fn items(&self, tenant: &TenantId, listed: Vec<(&Delivery, Exchange)>) -> Result<Vec<Item>, Error> {
        let ids: Vec<PayloadId> = listed
            .iter()
            .flat_map(|(_, exchange)| exchange.artifact.into_iter().chain(exchange.trace))
            .collect();
        let mut bodies = self.store.payloads(tenant, &ids).await?.into_iter();
        let mut items = Vec::with_capacity(listed.len());
        for (delivery, exchange) in listed {
            let body = exchange.artifact.and_then(|_| bodies.next().flatten());
            let trace = exchange.trace.and_then(|_| bodies.next().flatten());
            // Without its body, it has ended and been buried since it was listed.
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

/// A request may have moved on since its delivery was read.
fn belongs(exchange: &Exchange, list: List, now: Timestamp) -> bool {
    match (list, exchange.state_at(now)) {
        (List::Active, State::Pending) | (List::Expired, State::Expired { .. }) => !exchange.is_tombstone(),
        _ => false,
    }
}

/// Both lists in the order of their commits; each keeps its own order.
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
