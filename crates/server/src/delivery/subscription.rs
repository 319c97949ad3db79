//! What one channel has to send to its client, and what it leaves to a newer channel of the same enforcer.

use std::collections::BTreeMap;

use countersign_core::{
    Error,
    delivery::{
        feed::{Feed, FeedItem},
        message::{Message, Party},
    },
    model::channels::HEARTBEAT,
    use_cases::channels::ChannelRouting,
};
use countersign_wire::msg_type::MsgType;
use tokio::time::timeout;

use super::{channel_guard::ChannelGuard, subscriber::Subscriber};
use crate::state::SharedState;

/// Why a subscription ended. Its client will reconnect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubscriptionEnded {
    #[error(transparent)]
    Store(#[from] Error),
    /// Newer channels took its place, or its node counted as dead for a while.
    #[error("the channel was dropped")]
    ChannelDropped,
}

/// What a channel has to send, in order.
pub(crate) struct Subscription {
    app: SharedState,
    feed: Feed,
    subscriber: Subscriber,
    /// Only an enforcer's messages are routed to one channel; an approver's go to all.
    channel: Option<ChannelGuard>,
    /// Read, and not yet routed.
    read: Vec<FeedItem>,
    /// Left to a newer channel, by number; sent here when that one is gone and it is still unacknowledged.
    deferred: BTreeMap<u64, FeedItem>,
}

/// With so many items deferred, no more are read.
const MAX_DEFERRED: usize = 1_000;

impl Subscription {
    /// Opens the channel. `after` is the position that a client reports; empty means from the start.
    pub(crate) async fn open(
        app: &SharedState,
        subscriber: Subscriber,
        after: &[u64],
    ) -> Result<Self, Error> {
        let channel = match &subscriber.party {
            Party::Enforcer(enforcer) => Some(ChannelGuard::open(app.clone(), &subscriber, enforcer).await?),
            Party::Approver(_) => None,
        };
        let mut feed = app.gateway.feed(&subscriber.tenant, &subscriber.reader(), after);
        if !after.is_empty() && feed.is_ahead().await? {
            feed = app.gateway.feed(&subscriber.tenant, &subscriber.reader(), &[]);
        }
        let (read, deferred) = (Vec::new(), BTreeMap::new());
        Ok(Self { app: app.clone(), feed, subscriber, channel, read, deferred })
    }

    /// The last number that was read, by mailbox.
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.feed.positions()
    }

    /// The next items to send; waits until there are some. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Vec<FeedItem>, SubscriptionEnded> {
        loop {
            // With much deferred, the rest stays in the mailbox.
            let may_read = self.deferred.len() < MAX_DEFERRED;
            if may_read {
                let mut unread = self.feed.handed_over();
                if unread.is_empty() && self.feed.has_more() {
                    let permit = self.app.push_reads.acquire(&self.subscriber.tenant).await;
                    // Boxed, like what follows: an idle channel does not carry the memory for it.
                    unread = Box::pin(self.feed.read_unread()).await?;
                    drop(permit);
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
                false => drop(timeout(HEARTBEAT, self.feed.rung()).await),
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
            let permit = self.app.push_reads.acquire(&self.subscriber.tenant).await;
            // One read for many; one that was acknowledged meanwhile is gone.
            let reloaded = self.feed.read_again(source, after).await?;
            drop(permit);
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

    /// Which messages are this channel's to send: from memory, or else read, with a permit like the reads of its mailbox.
    async fn routing(&self, channel: &ChannelGuard) -> Result<ChannelRouting, SubscriptionEnded> {
        if let Some(known) = channel.known_routing() {
            return Ok(known);
        }
        let _permit = self.app.push_reads.acquire(&self.subscriber.tenant).await;
        channel.routing().await?.ok_or(SubscriptionEnded::ChannelDropped)
    }

    /// The message of an item; `None` if what it is about no longer exists.
    pub(crate) async fn message(&self, item: &FeedItem) -> Result<Option<Message>, Error> {
        if let Some(message) = item.handed_over.message() {
            return Ok(Some(message));
        }
        let _permit = self.app.push_reads.acquire(&self.subscriber.tenant).await;
        self.app.gateway.message(&self.subscriber.tenant, &item.delivery).await
    }

    /// Takes what was read again out of the deferred items, and what is gone. No await: all of it happens or nothing.
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
        let permit = self.app.push_reads.acquire(&self.subscriber.tenant).await;
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

#[cfg(test)]
mod tests {
    use std::{
        future::{Future as _, poll_fn},
        sync::Arc,
        task::Poll,
        time::Duration,
    };

    use countersign_core::{
        Gateway, model::channels::LEASE, notify::LocalDoorbell, random::RandomSource as _,
        retention::Retention, use_cases::acknowledge::Acknowledger,
    };
    use countersign_store_sqlite::{Clock, ManualClock, Options, SqliteStore};
    use countersign_testkit::gateway_suite::world::{
        Seeded, approver, decide, decision, minutes, request, submit,
    };
    use countersign_wire::{
        ack::MessageAck,
        id::{EnforcerId, TenantId},
        presence::Transport,
    };
    use tokio::{sync::mpsc, task::JoinHandle, time::sleep};

    use super::*;
    use crate::{
        random::SystemRandom,
        secrets::Secrets,
        state::{AppState, Settings},
    };

    /// Two nodes on one store, with one doorbell.
    struct Nodes {
        apps: [SharedState; 2],
        clock: ManualClock,
        _folder: tempfile::TempDir,
    }

    impl Nodes {
        async fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::new(minutes(0));
            let options = Options { clock: Clock::Manual(clock.clone()), ..Options::default() };
            let store = Arc::new(SqliteStore::open(folder.path().join("db"), options).unwrap());
            let doorbell = LocalDoorbell::default();
            let app = || {
                let gateway =
                    Gateway::new(store.clone(), &doorbell, Arc::new(SystemRandom), Retention::default());
                AppState::new(gateway, "gw".parse().unwrap(), Secrets::random(), Settings::default()).unwrap()
            };
            let apps = [app(), app()];
            for app in &apps {
                app.gateway.renew_lease(&app.node).await.unwrap();
            }
            Self { apps, clock, _folder: folder }
        }

        fn gateway(&self) -> &Gateway {
            &self.apps[0].gateway
        }
    }

    fn tenant() -> TenantId {
        "acme".parse().unwrap()
    }

    fn robot() -> EnforcerId {
        "robot".parse().unwrap()
    }

    fn channels_key() -> countersign_core::store::Key {
        countersign_core::store::Key::new(countersign_core::store::Kind::Channels, robot())
    }

    /// A channel that reports what it has to send.
    async fn channel(
        app: &SharedState,
        name: usize,
        sent: mpsc::UnboundedSender<(usize, String)>,
    ) -> JoinHandle<()> {
        let party = Party::Enforcer(robot());
        let subscriber = Subscriber { tenant: tenant(), party, transport: Transport::Websocket };
        let mut subscription = Subscription::open(app, subscriber, &[]).await.unwrap();
        tokio::spawn(async move {
            while let Ok(next) = subscription.next().await {
                for FeedItem { delivery, .. } in next {
                    sent.send((name, delivery.subject.id)).unwrap();
                }
            }
        })
    }

    async fn decided(gateway: &Gateway, id: &str) {
        let request = request(id).to("ada");
        submit(gateway, &tenant(), &request).await.unwrap();
        let decision = decision(&request.id, id, "n", None);
        decide(gateway, &tenant(), &approver("ada"), &request.id, &decision).await.unwrap();
    }

    async fn acknowledged(gateway: &Gateway, id: &str) {
        let robot = robot();
        let by = Acknowledger::Enforcer(&robot);
        gateway.acknowledge(&tenant(), by, &id.parse().unwrap(), &MessageAck::default()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_decision_goes_to_the_newest_live_channel_and_to_the_next_when_that_one_dies() {
        let nodes = Nodes::start().await;
        let random = Seeded::new(5);
        let draw = |below: usize| {
            let mut byte = [0];
            random.fill(&mut byte);
            usize::from(byte[0]) % below
        };
        let (sender, mut sent) = mpsc::unbounded_channel();
        let mut open: Vec<(usize, JoinHandle<()>)> = Vec::new();
        let (mut names, mut moved_on) = (0, 0);
        for round in 0..500 {
            while open.len() < 3 {
                let app = &nodes.apps[draw(2)];
                open.push((names, channel(app, names, sender.clone()).await));
                names += 1;
            }
            let id = format!("round-{round}");
            decided(nodes.gateway(), &id).await;
            // Some die before they acknowledge, and the next one gets the decision.
            let deaths = draw(3);
            for _ in 0..deaths {
                let newest = open.last().unwrap().0;
                assert_eq!(sent.recv().await.unwrap(), (newest, id.clone()), "round {round}");
                let (_, task) = open.pop().unwrap();
                task.abort();
                moved_on += 1;
            }
            let newest = open.last().unwrap().0;
            assert_eq!(
                sent.recv().await.unwrap(),
                (newest, id.clone()),
                "round {round}, after {deaths} deaths"
            );
            acknowledged(nodes.gateway(), &id).await;
            // Others come and go in any order, and get nothing.
            if draw(2) == 0 {
                let (_, task) = open.remove(draw(open.len()));
                task.abort();
                drop(task.await);
            }
            assert!(sent.try_recv().is_err(), "round {round}: nobody else gets it");
        }
        assert!(moved_on > 300, "{moved_on}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_counted_as_dead_ends_its_channels_and_nothing_is_left_unsent() {
        let nodes = Nodes::start().await;
        let (sender, mut sent) = mpsc::unbounded_channel();
        // The node of this one sleeps for longer than its lease.
        let older = channel(&nodes.apps[1], 0, sender.clone()).await;
        nodes.clock.set(minutes(0).plus(LEASE));
        nodes.apps[0].gateway.renew_lease(&nodes.apps[0].node).await.unwrap();
        let newer = channel(&nodes.apps[0], 1, sender.clone()).await;
        nodes.apps[1].gateway.renew_lease(&nodes.apps[1].node).await.unwrap();
        newer.abort();
        drop(newer.await);
        decided(nodes.gateway(), "r").await;
        // It was dropped, so it must not stay open and silent: its client reconnects and gets the decision.
        older.await.unwrap();
        let _again = channel(&nodes.apps[1], 2, sender.clone()).await;
        assert_eq!(sent.recv().await.unwrap(), (2, "r".to_owned()));
    }

    #[tokio::test]
    async fn a_client_that_disconnects_while_its_channel_opens_leaves_none_behind() {
        let nodes = Nodes::start().await;
        let subscriber =
            Subscriber { tenant: tenant(), party: Party::Enforcer(robot()), transport: Transport::Websocket };
        for polls in 0..40_u32 {
            let mut opening = Box::pin(Subscription::open(&nodes.apps[0], subscriber.clone(), &[]));
            for _ in 0..polls {
                let polled = poll_fn(|context| Poll::Ready(opening.as_mut().poll(context)));
                if polled.await.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let (sender, mut sent) = mpsc::unbounded_channel();
        let _only = channel(&nodes.apps[0], 7, sender).await;
        let presence = async {
            // What they left is closed soon.
            loop {
                let loaded = nodes.gateway().store().load(&tenant(), &[channels_key()]).await.unwrap();
                let text = String::from_utf8(loaded.first().unwrap().content.to_vec()).unwrap();
                if text.matches("number").count() == 1 {
                    return;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), presence).await.unwrap();
        decided(nodes.gateway(), "r").await;
        assert_eq!(sent.recv().await.unwrap(), (7, "r".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_dies_without_a_word_hands_over_when_its_lease_runs_out() {
        let nodes = Nodes::start().await;
        let (sender, mut sent) = mpsc::unbounded_channel();
        let _older = channel(&nodes.apps[0], 0, sender.clone()).await;
        // The newest channel is on a node that has died: nobody reads it and nobody closes it.
        let dead = &nodes.apps[1];
        dead.gateway.open_channel(&tenant(), &robot(), &dead.node, Transport::Websocket).await.unwrap();
        decided(nodes.gateway(), "r").await;
        sleep(Duration::from_mins(1)).await;
        assert!(sent.try_recv().is_err(), "its lease still runs by the store's clock");
        nodes.clock.set(minutes(0).plus(LEASE));
        assert_eq!(sent.recv().await.unwrap(), (0, "r".to_owned()));
    }

    #[tokio::test]
    async fn a_hand_over_goes_on_however_often_the_client_interrupts_it() {
        let nodes = Nodes::start().await;
        let party = Party::Enforcer(robot());
        let subscriber = Subscriber { tenant: tenant(), party, transport: Transport::Websocket };
        let mut older = Subscription::open(&nodes.apps[0], subscriber.clone(), &[]).await.unwrap();
        let newer = Subscription::open(&nodes.apps[1], subscriber, &[]).await.unwrap();
        const DECISIONS: usize = 900;
        for index in 0..DECISIONS {
            decided(nodes.gateway(), &format!("r-{index:03}")).await;
        }
        while older.deferred.len() < DECISIONS {
            drop(timeout(Duration::from_millis(20), older.next()).await);
        }
        drop(newer);
        let started = tokio::time::Instant::now();
        let mut sent = Vec::new();
        while sent.len() < DECISIONS && started.elapsed() < Duration::from_secs(10) {
            // As a frame of the client does: whatever is under way is dropped.
            if let Ok(items) = timeout(Duration::from_millis(3), older.next()).await {
                sent.extend(items.unwrap().into_iter().map(|item| item.delivery.subject.id));
            }
        }
        let expected: Vec<String> = (0..DECISIONS).map(|index| format!("r-{index:03}")).collect();
        assert_eq!(sent, expected, "each once, in order");
    }
}
