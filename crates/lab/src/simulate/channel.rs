//! A connection between a client and a node: what the node sends on it, and sends again, as `server/src/ws` and
//! `server/src/sse.rs` do.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::pending,
    sync::Arc,
};

use countersign_core::{
    delivery::{
        channel_guard::{ChannelGuard, ChannelObserver},
        feed::FeedItem,
        message::{Message, Party},
        subscriber::Subscriber,
        subscription::{ReadPermits, Subscription, SubscriptionEnded},
    },
    model::channels::ChannelNumber,
    use_cases::acknowledge::Acknowledger,
};
use countersign_wire::{
    ack::MessageAck,
    id::{EnforcerId, RequestId, TenantId},
    msg_type::MsgType,
    presence::Transport,
};
use tokio::sync::{Notify, mpsc};

use super::{checks::Watch, cluster::Node, facts::ChannelFacts, random::Numbers, world::World};

/// In milliseconds, as in `server/src/ws/session.rs`.
const REDELIVERY_DELAY: u64 = 10_000;

/// A node of a simulation reads for as many channels as it likes.
pub(crate) struct Unbounded;

impl ReadPermits for Unbounded {
    type Permit = ();

    async fn acquire(&self, _: &TenantId) {}
}

/// Presence is not simulated.
struct Nobody;

impl ChannelObserver for Nobody {
    fn channel_closes(&self, _: &TenantId, _: &EnforcerId) {}
}

/// What a client names when it connects again: the history and the positions of the last event that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventId {
    timeline: u64,
    positions: Vec<u64>,
}

/// A message on its way to a client.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) message: Message,
    pub(crate) event: EventId,
}

/// An acknowledgement on its way to a node.
#[derive(Debug)]
pub(crate) struct Ack {
    pub(crate) request_id: RequestId,
    pub(crate) ack: MessageAck,
}

/// A connection as the client has it.
pub(crate) struct Connection {
    pub(crate) pushes: mpsc::UnboundedReceiver<Push>,
    pub(crate) acks: mpsc::UnboundedSender<Ack>,
    closing: Arc<Notify>,
}

impl Connection {
    /// The node learns so much later that the client is gone.
    pub(crate) fn leave(self, world: &World, millis: u64, order: u64) {
        world.at(world.now() + millis, order, move || self.closing.notify_one());
    }
}

/// A connection as the node has it.
pub(crate) struct Serving {
    world: Arc<World>,
    node: Arc<Node>,
    watch: Arc<Watch>,
    subscriber: Subscriber,
    to_client: mpsc::UnboundedSender<Push>,
    from_client: mpsc::UnboundedReceiver<Ack>,
    closing: Arc<Notify>,
    numbers: Numbers,
    order: u64,
    /// When the last push arrives: none overtakes another.
    last_arrival: u64,
    /// What was sent and not acknowledged: its message, when it is sent again, and the delay before that.
    outstanding: BTreeMap<(usize, u64), (RequestId, u64, u64)>,
    positions: Vec<u64>,
    /// Its place in the facts, for an enforcer.
    index: Option<usize>,
    /// What was sent of each mailbox and kind of message.
    sent: BTreeMap<(usize, String), Sent>,
    /// The history of the last message, and how often it was another one than before.
    timeline: u64,
    histories: u64,
}

/// What was sent on a connection.
#[derive(Default)]
struct Sent {
    numbers: BTreeSet<u64>,
    last: u64,
    /// After another history a feed starts again, once what it had read is sent.
    restarts: u64,
}

impl Sent {
    /// Whether this is in order: not lower than the last, unless it was sent before or the feed started again.
    fn is_in_order(&mut self, number: u64, histories: u64) -> bool {
        if !self.numbers.insert(number) {
            return true;
        }
        let is_lower = number < self.last;
        self.last = number;
        if is_lower && self.restarts < histories {
            self.restarts += 1;
            return true;
        }
        !is_lower
    }
}

/// Connects a client to a node, which serves it from then on.
pub(crate) fn connect(
    world: &Arc<World>,
    node: &Arc<Node>,
    watch: &Arc<Watch>,
    subscriber: Subscriber,
    after: Option<EventId>,
    mut numbers: Numbers,
) -> Connection {
    let (to_client, pushes) = mpsc::unbounded_channel();
    let (acks, from_client) = mpsc::unbounded_channel();
    let closing = Arc::new(Notify::new());
    let order = numbers.next();
    let serving = Serving {
        world: Arc::clone(world),
        node: Arc::clone(node),
        watch: Arc::clone(watch),
        subscriber,
        to_client,
        from_client,
        closing: Arc::clone(&closing),
        numbers,
        order,
        last_arrival: 0,
        outstanding: BTreeMap::new(),
        positions: Vec::new(),
        index: None,
        sent: BTreeMap::new(),
        timeline: node.gateway.timeline(),
        histories: 0,
    };
    node.run.spawn(serving.run(after));
    Connection { pushes, acks, closing }
}

impl Serving {
    async fn run(mut self, after: Option<EventId>) {
        let gateway = self.node.gateway.clone();
        let positions = after.filter(|id| id.timeline == gateway.timeline()).map(|id| id.positions);
        let channel = match self.subscriber.party.clone() {
            Party::Enforcer(enforcer) => {
                let asked_at = self.world.now();
                let opened =
                    ChannelGuard::open(&gateway, &self.subscriber, &enforcer, Arc::new(Nobody)).await;
                let Ok(channel) = opened else { return };
                self.opened(&enforcer, channel.number(), asked_at);
                Some(channel)
            }
            Party::Approver(_) => None,
        };
        let positions = positions.unwrap_or_default();
        let subscriber = self.subscriber.clone();
        let ended = match Subscription::open(&gateway, Unbounded, subscriber, channel, &positions).await {
            Ok(mut subscription) => {
                self.positions = subscription.positions();
                self.serve(&mut subscription).await
            }
            Err(error) => SubscriptionEnded::Store(error),
        };
        self.world.step(|| format!("{} ends a channel: {ended:?}", self.node.run.name()));
        if let Some(index) = self.index {
            self.watch.facts.known().channels[index].closed_at = Some(self.world.now());
        }
    }

    fn opened(&mut self, enforcer: &EnforcerId, number: ChannelNumber, asked_at: u64) {
        let mut known = self.watch.facts.known();
        self.index = Some(known.channels.len());
        known.channels.push(ChannelFacts {
            tenant: self.subscriber.tenant.clone(),
            enforcer: enforcer.clone(),
            run: Arc::clone(&self.node.run),
            node: self.node.gateway.node().clone(),
            asked_at,
            opened_at: self.world.now(),
            closed_at: None,
        });
        drop(known);
        self.world.step(|| format!("{} opens channel {} of {enforcer}", self.node.run.name(), number.0));
    }

    async fn serve(&mut self, subscription: &mut Subscription<Unbounded>) -> SubscriptionEnded {
        let mut queue: VecDeque<FeedItem> = VecDeque::new();
        let (world, closing) = (Arc::clone(&self.world), Arc::clone(&self.closing));
        loop {
            let redelivery = self.outstanding.values().map(|(_, due, _)| *due).min();
            let redeliver = async {
                match redelivery {
                    Some(due) => world.pause(due.saturating_sub(world.now()), self.order).await,
                    None => pending().await,
                }
            };
            let done = tokio::select! {
                biased;
                () = closing.notified() => Err(SubscriptionEnded::ChannelDropped),
                Some(ack) = self.from_client.recv() => {
                    self.acknowledge(&ack).await;
                    Ok(())
                }
                Some(item) = async { queue.pop_front() } => self.send(subscription, &item, true).await,
                items = subscription.next(), if queue.is_empty() => items.map(|items| queue.extend(items)),
                () = redeliver => self.redeliver(subscription).await,
            };
            if let Err(ended) = done {
                return ended;
            }
        }
    }

    async fn acknowledge(&mut self, ack: &Ack) {
        let Party::Enforcer(enforcer) = &self.subscriber.party else { return };
        let by = Acknowledger::Enforcer(enforcer);
        let gateway = &self.node.gateway;
        let answer = gateway.acknowledge(&self.subscriber.tenant, by, &ack.request_id, &ack.ack).await;
        if answer.is_ok() {
            self.watch.acknowledged(&self.subscriber.tenant, &ack.request_id, self.world.now());
            self.outstanding.retain(|_, (request_id, ..)| *request_id != ack.request_id);
        }
    }

    async fn send(
        &mut self,
        subscription: &Subscription<Unbounded>,
        item: &FeedItem,
        is_first: bool,
    ) -> Result<(), SubscriptionEnded> {
        let place = (item.source, item.delivery.number);
        if self.subscriber.transport == Transport::Sse {
            self.positions[item.source] = item.delivery.number;
        }
        let Some(message) = subscription.message(item).await? else {
            self.outstanding.remove(&place);
            return Ok(());
        };
        let now = self.world.now();
        if self.subscriber.transport == Transport::Websocket {
            let sent = (message.request_id.clone(), now + REDELIVERY_DELAY, REDELIVERY_DELAY);
            let known = self.outstanding.entry(place);
            known
                .and_modify(|(_, due, delay)| (*due, *delay) = (now + *delay * 2, *delay * 2))
                .or_insert(sent);
        }
        self.world.count("messages sent to clients", 1);
        self.world.count("of these again on the same channel", u64::from(!is_first));
        self.check(item, &message, is_first);
        let event = EventId { timeline: self.node.gateway.timeline(), positions: self.positions.clone() };
        self.last_arrival = self.last_arrival.max(now + self.numbers.between(1, 3));
        let to_client = self.to_client.clone();
        self.world.at(self.last_arrival, self.order, move || {
            drop(to_client.send(Push { message, event }));
        });
        Ok(())
    }

    /// What can be checked where a message is sent: order, and whether it should be sent at all.
    fn check(&mut self, item: &FeedItem, message: &Message, is_first: bool) {
        let run = &self.node.run;
        self.world.step(|| {
            let (number, again) = (item.delivery.number, if is_first { "" } else { " again" });
            let (msg_type, id) = (message.msg_type.as_str(), &message.request_id);
            format!("{} sends {} {msg_type} {id} number {number}{again}", run.name(), self.subscriber.tenant)
        });
        let timeline = self.node.gateway.timeline();
        if std::mem::replace(&mut self.timeline, timeline) != timeline {
            self.histories += 1;
        }
        let sent = self.sent.entry((item.source, message.msg_type.as_str().to_owned())).or_default();
        let (number, last) = (item.delivery.number, sent.last);
        if is_first && !sent.is_in_order(number, self.histories) {
            let what = format!("{} {number} after {last} on {}", message.request_id, run.name());
            self.world.violated("a channel sends a mailbox in its order", &what);
        }
        if message.msg_type == MsgType::DecisionDeliver
            && let Some(index) = self.index
        {
            self.watch.decision_sent(index, &message.request_id);
        }
    }

    async fn redeliver(
        &mut self,
        subscription: &mut Subscription<Unbounded>,
    ) -> Result<(), SubscriptionEnded> {
        let now = self.world.now();
        let due: Vec<(usize, u64)> =
            self.outstanding.iter().filter(|(_, (_, due, _))| *due <= now).map(|(place, _)| *place).collect();
        for place in due {
            match subscription.reload(place.0, place.1).await? {
                Some(item) => self.send(subscription, &item, false).await?,
                None => drop(self.outstanding.remove(&place)),
            }
        }
        Ok(())
    }
}
