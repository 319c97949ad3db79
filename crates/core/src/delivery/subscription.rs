//! What one channel has to send to its client, and what it leaves to a newer channel of the same enforcer.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::RangeInclusive,
};

use countersign_wire::{id::TenantId, msg_type::MsgType};
use tokio::time::timeout;

use super::{
    channel_guard::ChannelGuard,
    feed::{Feed, FeedItem},
    message::Message,
    subscriber::Subscriber,
};
use crate::{
    Error, Gateway,
    fair::{FairPermit, FairSemaphore},
    model::channels::HEARTBEAT,
    use_cases::channels::ChannelRouting,
};

/// Bounds what is read for channels at one time.
pub trait ReadPermits: Send + Sync {
    /// A permit, given back when it is dropped.
    type Permit: Send;

    /// Waits for a permit. Cancel-safe.
    fn acquire(&self, tenant: &TenantId) -> impl Future<Output = Self::Permit> + Send;
}

impl ReadPermits for FairSemaphore {
    type Permit = FairPermit;

    async fn acquire(&self, tenant: &TenantId) -> FairPermit {
        Self::acquire(self, tenant).await
    }
}

/// Why a subscription ended. Its client will reconnect.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionEnded {
    #[error(transparent)]
    Store(#[from] Error),
    /// Newer channels took its place, or its node counted as dead for a while.
    #[error("the channel was dropped")]
    ChannelDropped,
}

/// What a channel has to send, in order.
pub struct Subscription<P> {
    gateway: Gateway,
    permits: P,
    feed: Feed,
    subscriber: Subscriber,
    /// Only an enforcer's messages are routed to one channel; an approver's go to all.
    channel: Option<ChannelGuard>,
    /// Read, and not yet routed.
    read: Vec<FeedItem>,
    /// Left to a newer channel, by number; sent here when that one is gone and it is still unacknowledged.
    deferred: BTreeMap<u64, FeedItem>,
    /// Routed here, and not yet taken.
    ready: VecDeque<FeedItem>,
}

/// With so many items deferred, no more are read.
const MAX_DEFERRED: usize = 1_000;

impl<P: ReadPermits> Subscription<P> {
    /// `channel` is the open one of an enforcer. `after` is the position that a client reports; empty means from the start.
    pub async fn open(
        gateway: &Gateway,
        permits: P,
        subscriber: Subscriber,
        channel: Option<ChannelGuard>,
        after: &[u64],
    ) -> Result<Self, Error> {
        let mut feed = gateway.feed(&subscriber.tenant, &subscriber.reader(), after);
        if !after.is_empty() && feed.is_ahead().await? {
            feed = gateway.feed(&subscriber.tenant, &subscriber.reader(), &[]);
        }
        let (read, deferred, ready) = (Vec::new(), BTreeMap::new(), VecDeque::new());
        Ok(Self { gateway: gateway.clone(), permits, feed, subscriber, channel, read, deferred, ready })
    }

    /// The last number that was read, by mailbox.
    pub fn positions(&self) -> Vec<u64> {
        self.feed.positions()
    }

    /// How many items are left to newer channels.
    pub fn deferred_count(&self) -> usize {
        self.deferred.len()
    }

    /// The next item to send; waits until there is one. Cancel-safe.
    pub async fn next(&mut self) -> Result<FeedItem, SubscriptionEnded> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            let items = self.next_items().await?;
            self.ready.extend(items);
        }
    }

    async fn next_items(&mut self) -> Result<Vec<FeedItem>, SubscriptionEnded> {
        loop {
            // With much deferred, the rest stays in the mailbox.
            let may_read = self.deferred.len() < MAX_DEFERRED;
            if may_read {
                let mut unread = self.feed.handed_over();
                if unread.is_empty() && self.feed.has_more() {
                    let reading = async {
                        let _permit = self.permits.acquire(&self.subscriber.tenant).await;
                        self.feed.read_unread().await
                    };
                    // Boxed, like what follows: an idle channel does not carry the memory for it.
                    unread = Box::pin(reading).await?;
                }
                let carried = unread.into_iter();
                self.read.extend(carried.filter(|item| self.subscriber.carries(&item.delivery.msg_type)));
            }
            let routed_here = Box::pin(self.route()).await?;
            if !routed_here.is_empty() {
                return Ok(routed_here);
            }
            if may_read && self.feed.has_more() {
                continue;
            }
            match self.deferred.is_empty() {
                true => self.feed.rung().await,
                // The node of a newer channel may die without closing it.
                false => drop(Box::pin(timeout(HEARTBEAT, self.feed.rung())).await),
            }
        }
    }

    /// Divides what was deferred before, and then what was read, into items for this channel and for a newer one. What is
    /// done is kept: a client that sends frames all the time cancels this future again and again.
    async fn route(&mut self) -> Result<Vec<FeedItem>, SubscriptionEnded> {
        let Some(channel) = &self.channel else { return Ok(std::mem::take(&mut self.read)) };
        if self.read.is_empty() && self.deferred.is_empty() {
            return Ok(Vec::new());
        }
        let routing = self.routing(channel).await?;
        while let Some(first) = self.deferred.values().find(|item| is_routed_here(routing, item)) {
            let (source, after) = (first.source, first.delivery.number - 1);
            let permit = self.permits.acquire(&self.subscriber.tenant).await;
            // One read for many; one that was acknowledged meanwhile is gone.
            let (reloaded, read_to) = self.feed.read_again(source, after).await?;
            drop(permit);
            let taken = self.take_deferred(routing, source, after + 1..=read_to, reloaded);
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

    /// Which messages are this channel's to send: from memory, or else read, with a permit like the reads of its mailbox.
    async fn routing(&self, channel: &ChannelGuard) -> Result<ChannelRouting, SubscriptionEnded> {
        if let Some(known) = channel.known_routing() {
            return Ok(known);
        }
        let _permit = self.permits.acquire(&self.subscriber.tenant).await;
        channel.routing().await?.ok_or(SubscriptionEnded::ChannelDropped)
    }

    /// The message of an item; `None` if what it is about no longer exists.
    pub async fn message(&self, item: &FeedItem) -> Result<Option<Message>, Error> {
        if let Some(message) = item.handed_over.message() {
            return Ok(Some(message));
        }
        let _permit = self.permits.acquire(&self.subscriber.tenant).await;
        self.gateway.message(&self.subscriber.tenant, &item.delivery).await
    }

    /// Takes what was read again out of the deferred items, and what is gone. No await: all of it happens or nothing.
    fn take_deferred(
        &mut self,
        routing: ChannelRouting,
        source: usize,
        read: RangeInclusive<u64>,
        reloaded: Vec<FeedItem>,
    ) -> Vec<FeedItem> {
        let still_there: BTreeMap<u64, FeedItem> =
            reloaded.into_iter().map(|item| (item.delivery.number, item)).collect();
        let numbers: Vec<u64> = self
            .deferred
            .range(read)
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
    pub async fn reload(
        &mut self,
        source: usize,
        number: u64,
    ) -> Result<Option<FeedItem>, SubscriptionEnded> {
        let permit = self.permits.acquire(&self.subscriber.tenant).await;
        let reloaded = self.feed.reload(source, number).await?;
        drop(permit);
        let Some(item) = reloaded else { return Ok(None) };
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
