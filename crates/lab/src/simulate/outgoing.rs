//! What a node sends on one connection: on its way to the client, and checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_core::delivery::{
    feed::FeedItem,
    message::Message,
    subscriber::Subscriber,
    ws_channel::{Push, WsEnded, WsOutput},
};
use countersign_wire::{ack::MessageAck, id::RequestId, msg_type::MsgType};
use tokio::sync::mpsc;

use super::{checks::Watch, cluster::Node, random::Numbers, world::World};

/// What a client names when it connects again: the history and the positions of the last event that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(super) timeline: u64,
    pub(super) positions: Vec<u64>,
}

/// A message on its way to a client.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) message: Message,
    pub(crate) event: EventId,
}

/// What is on its way from a client to its node.
#[derive(Debug)]
pub(crate) enum FromClient {
    Ack(RequestId, MessageAck),
    /// The answer to a ping.
    Pong,
}

pub(super) struct Outgoing {
    pub(super) world: Arc<World>,
    pub(super) node: Arc<Node>,
    pub(super) watch: Arc<Watch>,
    pub(super) subscriber: Subscriber,
    to_client: mpsc::UnboundedSender<Pushed>,
    /// The client's way back, for what it sends by itself.
    to_node: mpsc::UnboundedSender<FromClient>,
    numbers: Numbers,
    pub(super) order: u64,
    /// When the last push arrives: none overtakes another.
    last_arrival: u64,
    /// The last number that was sent, by mailbox, of an SSE stream.
    pub(super) positions: Vec<u64>,
    /// Its place in the facts, for an enforcer.
    pub(super) index: Option<usize>,
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

impl Outgoing {
    pub(super) fn new(
        world: &Arc<World>,
        node: &Arc<Node>,
        watch: &Arc<Watch>,
        subscriber: Subscriber,
        (to_client, to_node): (mpsc::UnboundedSender<Pushed>, mpsc::UnboundedSender<FromClient>),
        mut numbers: Numbers,
    ) -> Self {
        let order = numbers.next();
        Self {
            world: Arc::clone(world),
            node: Arc::clone(node),
            watch: Arc::clone(watch),
            subscriber,
            to_client,
            to_node,
            numbers,
            order,
            last_arrival: 0,
            positions: Vec::new(),
            index: None,
            sent: BTreeMap::new(),
            timeline: node.gateway.timeline(),
            histories: 0,
        }
    }

    /// When what is sent now arrives.
    fn arrival(&mut self) -> u64 {
        self.last_arrival = self.last_arrival.max(self.world.now() + self.numbers.between(1, 3));
        self.last_arrival
    }

    pub(super) fn send(&mut self, item: &FeedItem, message: Message, is_first: bool) {
        self.world.count("messages sent to clients", 1);
        self.world.count("of these again on the same channel", u64::from(!is_first));
        self.check(item, &message, is_first);
        let event = EventId { timeline: self.node.gateway.timeline(), positions: self.positions.clone() };
        let (due, to_client) = (self.arrival(), self.to_client.clone());
        self.world.at(due, self.order, move || drop(to_client.send(Pushed { message, event })));
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
}

impl WsOutput for Outgoing {
    type Closed = WsEnded;

    async fn push(&mut self, push: Push<'_>) -> Result<bool, WsEnded> {
        self.send(push.item, push.message, push.is_first);
        Ok(true)
    }

    async fn ping(&mut self) -> Result<(), WsEnded> {
        self.world.count("pings", 1);
        let (due, takes, order) = (self.arrival(), self.numbers.between(1, 3), self.order);
        let (to_client, to_node) = (self.to_client.clone(), self.to_node.clone());
        let world = Arc::clone(&self.world);
        self.world.at(due, order, move || {
            // A client that is gone does not answer.
            if !to_client.is_closed() {
                world.at(due + takes, order, move || drop(to_node.send(FromClient::Pong)));
            }
        });
        Ok(())
    }
}
