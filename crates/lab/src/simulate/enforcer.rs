//! An enforcer: it has channels that come and go, and acts on each decision at most once.

use std::sync::Arc;

use countersign_client::journal::Journal;
use countersign_core::{
    delivery::{message::Party, subscriber::Subscriber},
    use_cases::acknowledge::Acknowledger,
};
use countersign_wire::{
    ack::MessageAck,
    id::{EnforcerId, MsgId, RequestId, TenantId},
    msg_type::MsgType,
    presence::Transport,
};

use super::{
    channel::{Connection, EventId, FromClient, Pushed, connect},
    checks::Watch,
    cluster::{Cluster, Reply},
    database::time,
    nonce::nonce_of,
    random::Numbers,
};

/// One process of an enforcer. Processes of one enforcer share the disk, so their journals are on the same one.
pub(crate) struct EnforcerProcess {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tenant: TenantId,
    pub(crate) enforcer: EnforcerId,
    pub(crate) journal: Arc<dyn Journal>,
    /// Whether it may stay away after its connection broke.
    pub(crate) may_give_up: bool,
    pub(crate) numbers: Numbers,
}

/// What became of a message.
#[derive(PartialEq, Eq)]
enum Handled {
    Done,
    /// The process crashed while it handled it.
    Crashed,
}

impl EnforcerProcess {
    pub(crate) async fn run(mut self) {
        let world = Arc::clone(&self.cluster.world);
        let mut after: Option<EventId> = None;
        let wait = self.numbers.between(1, 4_000);
        world.pause(wait, self.numbers.next()).await;
        loop {
            let is_sse = self.numbers.happens(350);
            let transport = if is_sse { Transport::Sse } else { Transport::Websocket };
            let index = self.cluster.any(&mut self.numbers);
            if let Some(node) = self.cluster.node(index) {
                let party = Party::Enforcer(self.enforcer.clone());
                let subscriber = Subscriber { tenant: self.tenant.clone(), party, transport };
                let from = after.clone().filter(|_| is_sse);
                let numbers = Numbers::of(self.numbers.next(), "channel");
                let connection = connect(&world, &node, &self.watch, subscriber, from, numbers);
                let last = self.listen(connection, is_sse).await;
                after = last.or(after);
            }
            if self.may_give_up && self.numbers.happens(400) {
                return;
            }
            let wait = self.numbers.between(50, 3_000);
            world.pause(wait, self.numbers.next()).await;
        }
    }

    /// Handles what comes until the connection breaks or the process leaves. Returns the last event that it has.
    async fn listen(&mut self, mut connection: Connection, is_sse: bool) -> Option<EventId> {
        let world = Arc::clone(&self.cluster.world);
        let stays = match self.numbers.happens(400) {
            true => self.numbers.between(200, 8_000),
            false => u64::MAX,
        };
        let until = world.now().saturating_add(stays);
        let mut last = None;
        loop {
            let leaves = until < self.cluster.plan.healed_at;
            let left = until.saturating_sub(world.now());
            let order = self.numbers.next();
            let push = tokio::select! {
                biased;
                push = connection.pushes.recv() => push,
                () = world.pause(left, order), if leaves => None,
            };
            let Some(push) = push else { break };
            last = Some(push.event.clone());
            if self.handle(&push, &connection, is_sse).await == Handled::Crashed {
                break;
            }
        }
        // The node may not notice for a while that the client is gone.
        let unnoticed = if self.numbers.happens(300) { self.numbers.between(1_000, 12_000) } else { 2 };
        connection.leave(&world, unnoticed, self.numbers.next());
        last
    }

    async fn handle(&mut self, push: &Pushed, connection: &Connection, is_sse: bool) -> Handled {
        let message = &push.message;
        let text = String::from_utf8_lossy(&message.body).into_owned();
        self.watch.received(&self.tenant, &self.enforcer, &message.request_id, &message.msg_type, &text);
        if message.msg_type != MsgType::DecisionDeliver {
            return Handled::Done;
        }
        if self.act(&text, &message.request_id) == Handled::Crashed {
            return Handled::Crashed;
        }
        let is_healed = self.cluster.is_healed();
        if !is_healed && self.numbers.happens(150) {
            // It does not acknowledge: the message comes again.
            return Handled::Done;
        }
        if !is_sse && self.numbers.happens(600) {
            self.acknowledge_here(connection, message.request_id.clone(), message.msg_id.clone());
        } else {
            self.acknowledge(&message.request_id, &message.msg_id).await;
        }
        Handled::Done
    }

    /// Acts on a decision, unless the journal has it already. The process may crash at any moment.
    fn act(&mut self, decision: &str, request_id: &RequestId) -> Handled {
        let nonce = nonce_of(decision);
        let (now, until) = (time(self.cluster.world.now()), time(u64::from(u32::MAX)));
        let crashes = !self.cluster.is_healed() && self.numbers.happens(100);
        let crashes_before_it_acts = crashes && self.numbers.happens(500);
        let is_first = self.journal.use_nonce(&nonce, request_id.as_str(), until, now).unwrap_or(false);
        if crashes_before_it_acts {
            self.crash();
            return Handled::Crashed;
        }
        if is_first {
            self.watch.acted(&self.tenant, &nonce);
        }
        if crashes {
            self.crash();
            return Handled::Crashed;
        }
        Handled::Done
    }

    /// What is not on the disk is gone.
    fn crash(&mut self) {
        self.cluster.world.step(|| format!("{} {} crashes", self.tenant, self.enforcer));
        self.journal = self.watch.journal_after_crash(&self.tenant, &self.enforcer);
    }

    fn acknowledge_here(&mut self, connection: &Connection, request_id: RequestId, msg_id: MsgId) {
        let (to_node, world) = (connection.to_node.clone(), &self.cluster.world);
        let ack = MessageAck { msg_id: Some(msg_id), ..MessageAck::default() };
        let due = world.now() + self.numbers.between(1, 3);
        world.at(due, self.numbers.next(), move || drop(to_node.send(FromClient::Ack(request_id, ack))));
    }

    /// By a request to any node, again until it is answered.
    async fn acknowledge(&mut self, request_id: &RequestId, msg_id: &MsgId) {
        let (tenant, world) = (self.tenant.clone(), Arc::clone(&self.cluster.world));
        for _ in 0..5 {
            let (tenant, enforcer, id) = (tenant.clone(), self.enforcer.clone(), request_id.clone());
            let ack = MessageAck { msg_id: Some(msg_id.clone()), ..MessageAck::default() };
            let index = self.cluster.any(&mut self.numbers);
            let reply = self
                .cluster
                .call(&mut self.numbers, index, 4_000, |gateway| async move {
                    gateway.acknowledge(&tenant, Acknowledger::Enforcer(&enforcer), &id, &ack).await
                })
                .await;
            match reply {
                Reply::Done(()) => return self.watch.acknowledged(&self.tenant, request_id, world.now()),
                Reply::Rejected(_) => return,
                Reply::Unknown => world.pause(self.numbers.between(50, 1_000), self.numbers.next()).await,
            }
        }
    }
}
