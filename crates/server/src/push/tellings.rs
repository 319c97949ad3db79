//! What one channel is to tell its client, and what it leaves to a newer channel of the same enforcer.

use std::{collections::BTreeMap, time::Duration};

use countersign_core::{
    Error, Gateway,
    delivery::{
        feed::{Feed, FeedItem, Reader},
        message::Party,
    },
    model::channels::{ChannelNumber, HEARTBEAT},
    use_cases::channels::ChannelRouting,
};
use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
    msg_type::MsgType,
    presence::Transport,
};
use tokio::time::{sleep, timeout};

use crate::app::Shared;

/// Whoever reads, over which transport.
#[derive(Debug, Clone)]
pub(crate) struct Listening {
    pub(crate) tenant: TenantId,
    pub(crate) who: Party,
    pub(crate) transport: Transport,
}

impl Listening {
    fn reader(&self) -> Reader {
        match (&self.who, self.transport) {
            (Party::Enforcer(enforcer), _) => Reader::Enforcer(enforcer.clone()),
            (Party::Approver(approver), Transport::Sse) => Reader::Requests(approver.clone()),
            (Party::Approver(approver), _) => Reader::Approver(approver.clone()),
        }
    }

    /// A stream carries requests to approvers and decisions to enforcers; a WebSocket carries all.
    fn carries(&self, msg_type: &MsgType) -> bool {
        self.transport != Transport::Sse
            || matches!(msg_type, MsgType::ApprovalRequest | MsgType::DecisionDeliver)
    }
}

/// An enforcer's channel, open until it is dropped.
struct Open {
    app: Shared,
    tenant: TenantId,
    enforcer: EnforcerId,
    transport: Transport,
    number: ChannelNumber,
}

impl Open {
    /// In a task of its own: a client that goes meanwhile leaves a channel that is closed again, and not one that is
    /// taken for open while nobody reads it.
    async fn new(app: Shared, listening: &Listening, enforcer: &EnforcerId) -> Result<Self, Error> {
        let (tenant, transport) = (listening.tenant.clone(), listening.transport);
        let enforcer = enforcer.clone();
        let opening = tokio::spawn(async move {
            let number = app.gateway.open_channel(&tenant, &enforcer, &app.node, transport).await?;
            Ok(Self { app, tenant, enforcer, transport, number })
        });
        opening.await.unwrap_or_else(|_| Err(Failure::Internal.into()))
    }

    async fn turn(&self) -> Result<ChannelRouting, Ended> {
        let gateway = &self.app.gateway;
        let turn = gateway.channel_routing(&self.tenant, &self.enforcer, &self.app.node, self.number).await?;
        turn.ok_or(Ended::Forgotten)
    }
}

/// The first pause before closing is tried again, and the longest.
const CLOSE_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Drop for Open {
    fn drop(&mut self) {
        let (gateway, tenant): (Gateway, _) = (self.app.gateway.clone(), self.tenant.clone());
        let (enforcer, number) = (self.enforcer.clone(), self.number);
        self.app.presence.heard(&tenant, &enforcer, self.transport);
        tokio::spawn(async move {
            // Until it succeeds: this node lives, so an open channel of it counts.
            let (mut pause, longest) = CLOSE_AGAIN;
            while let Err(error) = gateway.close_channel(&tenant, &enforcer, number).await {
                tracing::debug!(%error, "a channel was not closed in the store; it will be tried again");
                sleep(pause).await;
                pause = longest.min(pause * 2);
            }
        });
    }
}

/// Why a channel tells no more. Its client will come back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
    /// Newer ones took its place, or its node was taken for dead for a while.
    #[error("the channel was forgotten")]
    Forgotten,
}

/// What a channel is to tell, in order.
pub(crate) struct Tellings {
    app: Shared,
    feed: Feed,
    listening: Listening,
    /// Only enforcers have turns: an approver's channels are all told.
    open: Option<Open>,
    /// Read, and not yet decided whose turn it is.
    read: Vec<FeedItem>,
    /// Left to a newer channel, by number; ours when that one is gone and it is still unacknowledged.
    left: BTreeMap<u64, FeedItem>,
}

/// With so many left to a newer channel, no more are read.
const MOST_LEFT: usize = 1_000;

impl Tellings {
    /// Opens the channel. `after` is where a client says that it is.
    pub(crate) async fn open(app: &Shared, listening: Listening, after: &[u64]) -> Result<Self, Error> {
        let open = match &listening.who {
            Party::Enforcer(enforcer) => Some(Open::new(app.clone(), &listening, enforcer).await?),
            Party::Approver(_) => None,
        };
        let mut feed = app.gateway.feed(&listening.tenant, &listening.reader(), after);
        if !after.is_empty() && feed.is_ahead().await? {
            feed = app.gateway.feed(&listening.tenant, &listening.reader(), &[]);
        }
        Ok(Self { app: app.clone(), feed, listening, open, read: Vec::new(), left: BTreeMap::new() })
    }

    /// How far it has read, by lane: where it begins, right after it was opened.
    pub(crate) fn places(&self) -> Vec<u64> {
        self.feed.positions()
    }

    /// What to tell next; waits until there is something. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Vec<FeedItem>, Ended> {
        loop {
            // With much left to others, the rest waits in the mailbox.
            let room = self.left.len() < MOST_LEFT;
            if room {
                let turn = self.app.push_reads.acquire().await;
                // Boxed, like what follows: a channel at rest does not carry the room for it.
                let unread = Box::pin(self.feed.unread()).await?.into_iter();
                drop(turn);
                self.read.extend(unread.filter(|told| self.listening.carries(&told.delivery.msg_type)));
            }
            let ours = Box::pin(self.ours()).await?;
            if !ours.is_empty() {
                return Ok(ours);
            }
            if room && self.feed.has_more() {
                continue;
            }
            match self.left.is_empty() {
                true => self.feed.rung().await,
                // The node of a newer channel may die without a word.
                false => drop(timeout(HEARTBEAT, self.feed.rung()).await),
            }
        }
    }

    /// Divides what was read, and what was left before, into ours and a newer channel's.
    async fn ours(&mut self) -> Result<Vec<FeedItem>, Ended> {
        let Some(open) = &self.open else { return Ok(std::mem::take(&mut self.read)) };
        if self.read.is_empty() && self.left.is_empty() {
            return Ok(Vec::new());
        }
        let turn = open.turn().await?;
        let is_ours = |told: &FeedItem| match told.delivery.msg_type {
            MsgType::DecisionDeliver => turn.decisions,
            _ => turn.other,
        };
        let mut again = Vec::new();
        for told in self.left.values().filter(|told| is_ours(told)) {
            // Acknowledged meanwhile, it is gone.
            again.push((told.delivery.number, self.feed.reload(told.source, told.delivery.number).await?));
        }
        // Nothing is awaited from here on.
        let mut ours = Vec::new();
        for (number, told) in again {
            self.left.remove(&number);
            ours.extend(told);
        }
        for told in std::mem::take(&mut self.read) {
            match is_ours(&told) {
                true => ours.push(told),
                false => drop(self.left.insert(told.delivery.number, told)),
            }
        }
        Ok(ours)
    }

    /// One of them again, if it is still to be told, and by this channel.
    pub(crate) async fn again(&mut self, lane: usize, number: u64) -> Result<Option<FeedItem>, Ended> {
        let Some(told) = self.feed.reload(lane, number).await? else { return Ok(None) };
        let ours = match &self.open {
            Some(open) => {
                let turn = open.turn().await?;
                if told.delivery.msg_type == MsgType::DecisionDeliver { turn.decisions } else { turn.other }
            }
            None => true,
        };
        if ours {
            return Ok(Some(told));
        }
        self.left.insert(number, told);
        Ok(None)
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
        model::channels::LEASE, notify::LocalDoorbell, random::RandomSource as _, retention::Retention,
        use_cases::acknowledge::Acknowledger,
    };
    use countersign_store_sqlite::{Clock, ManualClock, Options, SqliteStore};
    use countersign_testkit::gateway_suite::world::{
        Seeded, approver, decide, decision, minutes, request, submit,
    };
    use tokio::{sync::mpsc, task::JoinHandle};

    use super::*;
    use crate::{
        app::App,
        http::rates::Rates,
        secrets::{Secret, SystemRandom},
    };

    /// Two nodes on one store, with one doorbell.
    struct Nodes {
        apps: [Shared; 2],
        clock: ManualClock,
        _folder: tempfile::TempDir,
    }

    impl Nodes {
        async fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::new(minutes(0));
            let options = Options { clock: Clock::Manual(clock.clone()), ..Options::default() };
            let store = Arc::new(SqliteStore::open(folder.path().join("db"), options).unwrap());
            let doorbell = Arc::new(LocalDoorbell::default());
            let app = || {
                let gateway = Gateway::new(
                    store.clone(),
                    doorbell.clone(),
                    Arc::new(SystemRandom),
                    Retention::default(),
                );
                App::new(gateway, "gw".parse().unwrap(), Secret::random(), Rates::default())
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

    /// A channel that reports what it is to tell.
    async fn channel(
        app: &Shared,
        name: usize,
        told: mpsc::UnboundedSender<(usize, String)>,
    ) -> JoinHandle<()> {
        let who = Party::Enforcer(robot());
        let listening = Listening { tenant: tenant(), who, transport: Transport::Websocket };
        let mut tellings = Tellings::open(app, listening, &[]).await.unwrap();
        tokio::spawn(async move {
            while let Ok(next) = tellings.next().await {
                for FeedItem { delivery, .. } in next {
                    told.send((name, delivery.subject.id)).unwrap();
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
        gateway.acknowledge(&tenant(), by, &id.parse().unwrap(), None).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn each_decision_goes_to_the_newest_live_channel_and_to_the_next_when_that_one_dies() {
        let nodes = Nodes::start().await;
        let chance = Seeded::new(5);
        let draw = |below: usize| {
            let mut byte = [0];
            chance.fill(&mut byte);
            usize::from(byte[0]) % below
        };
        let (sender, mut told) = mpsc::unbounded_channel();
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
            // Some die before they acknowledge, and the next one is told.
            let deaths = draw(3);
            for _ in 0..deaths {
                let newest = open.last().unwrap().0;
                assert_eq!(told.recv().await.unwrap(), (newest, id.clone()), "round {round}");
                let (_, task) = open.pop().unwrap();
                task.abort();
                moved_on += 1;
            }
            let newest = open.last().unwrap().0;
            assert_eq!(
                told.recv().await.unwrap(),
                (newest, id.clone()),
                "round {round}, after {deaths} deaths"
            );
            acknowledged(nodes.gateway(), &id).await;
            // Others come and go in any order, without being told.
            if draw(2) == 0 {
                let (_, task) = open.remove(draw(open.len()));
                task.abort();
                drop(task.await);
            }
            assert!(told.try_recv().is_err(), "round {round}: nobody else is told");
        }
        assert!(moved_on > 300, "{moved_on}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_taken_for_dead_ends_its_channels_and_nothing_is_left_untold() {
        let nodes = Nodes::start().await;
        let (sender, mut told) = mpsc::unbounded_channel();
        // The node of this one sleeps for longer than its lease.
        let older = channel(&nodes.apps[1], 0, sender.clone()).await;
        nodes.clock.set(minutes(0).plus(LEASE));
        nodes.apps[0].gateway.renew_lease(&nodes.apps[0].node).await.unwrap();
        let newer = channel(&nodes.apps[0], 1, sender.clone()).await;
        nodes.apps[1].gateway.renew_lease(&nodes.apps[1].node).await.unwrap();
        newer.abort();
        drop(newer.await);
        decided(nodes.gateway(), "r").await;
        // It is forgotten, so it must not stay open and silent: its client comes back and is told.
        older.await.unwrap();
        let _again = channel(&nodes.apps[1], 2, sender.clone()).await;
        assert_eq!(told.recv().await.unwrap(), (2, "r".to_owned()));
    }

    #[tokio::test]
    async fn a_client_that_goes_while_its_channel_opens_leaves_none_behind() {
        let nodes = Nodes::start().await;
        let listening =
            Listening { tenant: tenant(), who: Party::Enforcer(robot()), transport: Transport::Websocket };
        for polls in 0..40_u32 {
            let mut opening = Box::pin(Tellings::open(&nodes.apps[0], listening.clone(), &[]));
            for _ in 0..polls {
                let polled = poll_fn(|context| Poll::Ready(opening.as_mut().poll(context)));
                if polled.await.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let (sender, mut told) = mpsc::unbounded_channel();
        let _only = channel(&nodes.apps[0], 7, sender).await;
        let presence = async {
            // What they left is closed before long.
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
        assert_eq!(told.recv().await.unwrap(), (7, "r".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_dies_without_a_word_hands_over_when_its_lease_runs_out() {
        let nodes = Nodes::start().await;
        let (sender, mut told) = mpsc::unbounded_channel();
        let _older = channel(&nodes.apps[0], 0, sender.clone()).await;
        // The newest channel is on a node that has died: nobody reads it and nobody closes it.
        let dead = &nodes.apps[1];
        dead.gateway.open_channel(&tenant(), &robot(), &dead.node, Transport::Websocket).await.unwrap();
        decided(nodes.gateway(), "r").await;
        sleep(Duration::from_mins(1)).await;
        assert!(told.try_recv().is_err(), "its lease still runs by the store's clock");
        nodes.clock.set(minutes(0).plus(LEASE));
        assert_eq!(told.recv().await.unwrap(), (0, "r".to_owned()));
    }
}
