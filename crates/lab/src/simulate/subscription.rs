//! What a channel has to send, decided as `server/src/delivery/subscription.rs` does, which is not public. The permits for
//! reads are left out.

use std::collections::BTreeMap;

use countersign_core::{
    Error, Gateway,
    delivery::{
        feed::{Feed, FeedItem, Reader},
        message::Message,
    },
    model::channels::{ChannelNumber, HEARTBEAT},
    use_cases::channels::ChannelRouting,
};
use countersign_wire::{
    id::{EnforcerId, TenantId},
    msg_type::MsgType,
    presence::Transport,
};
use tokio::time::timeout;

/// Who is subscribed, and over which transport.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber {
    pub(crate) tenant: TenantId,
    pub(crate) reader: Reader,
    pub(crate) transport: Transport,
}

/// Why a subscription ended. Its client will reconnect.
#[derive(Debug)]
pub(crate) enum SubscriptionEnded {
    Store(#[expect(dead_code, reason = "it is printed with the steps")] Error),
    ChannelDropped,
}

impl From<Error> for SubscriptionEnded {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// An enforcer's channel in the store.
#[derive(Debug, Clone)]
pub(crate) struct OpenChannel {
    pub(crate) enforcer: EnforcerId,
    pub(crate) number: ChannelNumber,
}

pub(crate) struct Subscription {
    gateway: Gateway,
    feed: Feed,
    subscriber: Subscriber,
    channel: Option<OpenChannel>,
    read: Vec<FeedItem>,
    deferred: BTreeMap<u64, FeedItem>,
}

impl Subscription {
    /// `after` is the position that a client reports; empty means from the start.
    pub(crate) async fn open(
        gateway: &Gateway,
        subscriber: Subscriber,
        channel: Option<OpenChannel>,
        after: &[u64],
    ) -> Result<Self, Error> {
        let mut feed = gateway.feed(&subscriber.tenant, &subscriber.reader, after);
        if !after.is_empty() && feed.is_ahead().await? {
            feed = gateway.feed(&subscriber.tenant, &subscriber.reader, &[]);
        }
        let (read, deferred) = (Vec::new(), BTreeMap::new());
        Ok(Self { gateway: gateway.clone(), feed, subscriber, channel, read, deferred })
    }

    pub(crate) fn positions(&self) -> Vec<u64> {
        self.feed.positions()
    }

    /// The next items to send; waits until there are some. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Vec<FeedItem>, SubscriptionEnded> {
        loop {
            let mut unread = self.feed.handed_over();
            if unread.is_empty() && self.feed.has_more() {
                unread = self.feed.read_unread().await?;
            }
            let transport = self.subscriber.transport;
            self.read.extend(unread.into_iter().filter(|item| carries(transport, &item.delivery.msg_type)));
            let routed_here = self.route().await?;
            if !routed_here.is_empty() {
                return Ok(routed_here);
            }
            if self.feed.has_more() {
                continue;
            }
            match self.deferred.is_empty() {
                true => self.feed.rung().await,
                false => drop(timeout(HEARTBEAT, self.feed.rung()).await),
            }
        }
    }

    async fn route(&mut self) -> Result<Vec<FeedItem>, SubscriptionEnded> {
        let Some(channel) = &self.channel else { return Ok(std::mem::take(&mut self.read)) };
        if self.read.is_empty() && self.deferred.is_empty() {
            return Ok(Vec::new());
        }
        let routing = self.routing(channel).await?;
        while let Some(first) = self.deferred.values().find(|item| is_routed_here(routing, item)) {
            let (source, after) = (first.source, first.delivery.number - 1);
            let reloaded = self.feed.read_again(source, after).await?;
            let taken = self.take_deferred(routing, source, after, reloaded);
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
        let mut routed_here = Vec::new();
        for item in std::mem::take(&mut self.read) {
            match is_routed_here(routing, &item) {
                true => routed_here.push(item),
                false => drop(self.deferred.insert(item.delivery.number, item)),
            }
        }
        Ok(routed_here)
    }

    async fn routing(&self, channel: &OpenChannel) -> Result<ChannelRouting, SubscriptionEnded> {
        let (gateway, tenant) = (&self.gateway, &self.subscriber.tenant);
        if let Some(known) = gateway.known_routing(tenant, &channel.enforcer, channel.number) {
            return Ok(known);
        }
        let node = gateway.node();
        let routing = gateway.channel_routing(tenant, &channel.enforcer, node, channel.number).await?;
        routing.ok_or(SubscriptionEnded::ChannelDropped)
    }

    pub(crate) async fn message(&self, item: &FeedItem) -> Result<Option<Message>, Error> {
        if let Some(message) = item.handed_over.message() {
            return Ok(Some(message));
        }
        self.gateway.message(&self.subscriber.tenant, &item.delivery).await
    }

    fn take_deferred(
        &mut self,
        routing: ChannelRouting,
        source: usize,
        after: u64,
        reloaded: Vec<FeedItem>,
    ) -> Vec<FeedItem> {
        let last = reloaded.last().map_or(u64::MAX, |item| item.delivery.number);
        let still_there: BTreeMap<u64, FeedItem> =
            reloaded.into_iter().map(|item| (item.delivery.number, item)).collect();
        let numbers: Vec<u64> = self
            .deferred
            .range(after + 1..=last)
            .filter(|(_, item)| item.source == source && is_routed_here(routing, item))
            .map(|(number, _)| *number)
            .collect();
        let mut taken = Vec::new();
        for number in numbers {
            self.deferred.remove(&number);
            taken.extend(still_there.get(&number).cloned());
        }
        taken
    }

    /// Reads one item again, if it is still unacknowledged and this channel has to send it.
    pub(crate) async fn reload(
        &mut self,
        source: usize,
        number: u64,
    ) -> Result<Option<FeedItem>, SubscriptionEnded> {
        let Some(item) = self.feed.reload(source, number).await? else { return Ok(None) };
        let routed_here = match &self.channel {
            Some(channel) => is_routed_here(self.routing(channel).await?, &item),
            None => true,
        };
        if routed_here {
            return Ok(Some(item));
        }
        self.deferred.insert(number, item);
        Ok(None)
    }
}

fn is_routed_here(routing: ChannelRouting, item: &FeedItem) -> bool {
    match item.delivery.msg_type {
        MsgType::DecisionDeliver => routing.decisions,
        _ => routing.other,
    }
}

fn carries(transport: Transport, msg_type: &MsgType) -> bool {
    transport != Transport::Sse || matches!(msg_type, MsgType::ApprovalRequest | MsgType::DecisionDeliver)
}
