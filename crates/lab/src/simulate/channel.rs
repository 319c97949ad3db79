//! A connection between a client and a node, which serves it as `server/src/ws` and `server/src/sse.rs` do. What is sent on
//! a WebSocket, and when again, is core's.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    delivery::{
        channel_guard::{ChannelGuard, ChannelObserver},
        feed::FeedItem,
        message::Party,
        subscriber::Subscriber,
        subscription::{ReadPermits, Subscription, SubscriptionEnded},
        ws_channel::{WsChannel, WsEnded},
    },
    model::channels::ChannelId,
    use_cases::acknowledge::Acknowledger,
};
use countersign_wire::{
    id::{EnforcerId, TenantId},
    presence::Transport,
};
use tokio::sync::{Notify, mpsc};

pub(crate) use super::outgoing::{EventId, FromClient, Pushed};
use super::{
    checks::Watch, cluster::Node, facts::ChannelFacts, outgoing::Outgoing, random::Numbers, world::World,
};

/// Shorter than a client is gone at times before its node notices, so that nodes close idle WebSockets too.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

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

/// A connection as the client has it.
pub(crate) struct Connection {
    pub(crate) pushes: mpsc::UnboundedReceiver<Pushed>,
    pub(crate) to_node: mpsc::UnboundedSender<FromClient>,
    closing: Arc<Notify>,
}

impl Connection {
    /// The node learns so much later that the client is gone.
    pub(crate) fn leave(self, world: &World, millis: u64, order: u64) {
        world.at(world.now() + millis, order, move || self.closing.notify_one());
    }
}

/// A connection as the node has it.
struct Serving {
    outgoing: Outgoing,
    from_client: mpsc::UnboundedReceiver<FromClient>,
    closing: Arc<Notify>,
}

/// Connects a client to a node, which serves it from then on.
pub(crate) fn connect(
    world: &Arc<World>,
    node: &Arc<Node>,
    watch: &Arc<Watch>,
    subscriber: Subscriber,
    after: Option<EventId>,
    numbers: Numbers,
) -> Connection {
    let (to_client, pushes) = mpsc::unbounded_channel();
    let (to_node, from_client) = mpsc::unbounded_channel();
    let closing = Arc::new(Notify::new());
    let outgoing = Outgoing::new(world, node, watch, subscriber, (to_client, to_node.clone()), numbers);
    let serving = Serving { outgoing, from_client, closing: Arc::clone(&closing) };
    node.run.spawn(serving.run(after));
    Connection { pushes, to_node, closing }
}

impl Serving {
    async fn run(mut self, after: Option<EventId>) {
        let (gateway, subscriber) = (self.outgoing.node.gateway.clone(), self.outgoing.subscriber.clone());
        let positions = after.filter(|id| id.timeline == gateway.timeline()).map(|id| id.positions);
        let channel = match &subscriber.party {
            Party::Enforcer(enforcer) => {
                let asked_at = self.outgoing.world.now();
                let opened = ChannelGuard::open(&gateway, &subscriber, enforcer, Arc::new(Nobody)).await;
                let Ok(channel) = opened else { return };
                self.opened(enforcer, channel.id(), asked_at);
                Some(channel)
            }
            Party::Approver(_) => None,
        };
        let positions = positions.unwrap_or_default();
        let ended = match Subscription::open(&gateway, Unbounded, subscriber, channel, &positions).await {
            Ok(subscription) => self.serve(subscription).await,
            Err(error) => SubscriptionEnded::Store(error).into(),
        };
        let Outgoing { world, node, watch, index, .. } = &self.outgoing;
        world.step(|| format!("{} ends a channel: {ended:?}", node.run.name()));
        world.count("channels closed because nothing was received", matches!(ended, WsEnded::Idle).into());
        if let Some(index) = index {
            watch.facts.known().channels[*index].closed_at = Some(world.now());
        }
    }

    fn opened(&mut self, enforcer: &EnforcerId, id: &ChannelId, asked_at: u64) {
        let Outgoing { world, node, watch, subscriber, index, .. } = &mut self.outgoing;
        let mut known = watch.facts.known();
        *index = Some(known.channels.len());
        known.channels.push(ChannelFacts {
            tenant: subscriber.tenant.clone(),
            enforcer: enforcer.clone(),
            run: Arc::clone(&node.run),
            node: node.gateway.node().clone(),
            attempt: id.attempt.clone(),
            asked_at,
            opened_at: world.now(),
            closed_at: None,
        });
        drop(known);
        world.step(|| format!("{} opens channel {} of {enforcer}", node.run.name(), id.number.0));
    }

    async fn serve(&mut self, subscription: Subscription<Unbounded>) -> WsEnded {
        self.outgoing.positions = subscription.positions();
        let is_websocket = self.outgoing.subscriber.transport == Transport::Websocket;
        let (world, order) = (Arc::clone(&self.outgoing.world), self.outgoing.order);
        let started = world.now();
        let elapsed = || Duration::from_millis(world.now() - started);
        let mut channel = WsChannel::new(subscription, IDLE_TIMEOUT);
        loop {
            let left = channel.session.wake_at().saturating_sub(elapsed());
            let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let done = tokio::select! {
                biased;
                () = self.closing.notified() => Err(SubscriptionEnded::ChannelDropped.into()),
                Some(frame) = self.from_client.recv() => {
                    channel.session.received(elapsed());
                    self.receive(&mut channel, frame).await;
                    Ok(())
                }
                item = channel.subscription.next() => match item {
                    Ok(item) if is_websocket => channel.send(&mut self.outgoing, &item, elapsed()).await,
                    Ok(item) => self.send_event(&channel.subscription, &item).await,
                    Err(ended) => Err(ended.into()),
                },
                () = world.pause(left, order), if is_websocket => {
                    channel.do_due(&mut self.outgoing, elapsed()).await
                }
            };
            if let Err(ended) = done {
                return ended;
            }
        }
    }

    async fn receive(&self, channel: &mut WsChannel<Unbounded>, frame: FromClient) {
        let Outgoing { world, node, watch, subscriber, .. } = &self.outgoing;
        let (FromClient::Ack(request_id, ack), Party::Enforcer(enforcer)) = (frame, &subscriber.party) else {
            return;
        };
        let by = Acknowledger::Enforcer(enforcer);
        if node.gateway.acknowledge(&subscriber.tenant, by, &request_id, &ack).await.is_ok() {
            watch.acknowledged(&subscriber.tenant, &request_id, world.now());
            channel.session.acknowledged(&request_id, ack.msg_id.as_ref());
        }
    }

    /// As an event of an SSE stream, once.
    async fn send_event(
        &mut self,
        subscription: &Subscription<Unbounded>,
        item: &FeedItem,
    ) -> Result<(), WsEnded> {
        self.outgoing.positions[item.source] = item.delivery.number;
        if let Some(message) = subscription.message(item).await.map_err(SubscriptionEnded::Store)? {
            self.outgoing.send(item, message, true);
        }
        Ok(())
    }
}
