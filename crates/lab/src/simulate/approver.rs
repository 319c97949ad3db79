//! An approver: it gets requests on a channel and decides some of them.

use std::sync::Arc;

use countersign_core::delivery::{message::Party, subscriber::Subscriber};
use countersign_testkit::gateway_suite::world::{decide, decision};
use countersign_wire::{
    exchange::ExchangeState,
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
    presence::Transport,
};

use super::{
    channel::{EventId, connect},
    checks::{Watch, about},
    cluster::{Cluster, Reply},
    random::{Numbers, hash},
};

#[derive(Clone)]
pub(crate) struct ApproverProcess {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tenant: TenantId,
    pub(crate) approver: ApproverId,
    pub(crate) numbers: Numbers,
}

impl ApproverProcess {
    pub(crate) async fn run(mut self) {
        let world = Arc::clone(&self.cluster.world);
        let mut after: Option<EventId> = None;
        loop {
            let wait = self.numbers.between(10, 2_500);
            world.pause(wait, self.numbers.next()).await;
            let index = self.cluster.any(&mut self.numbers);
            let Some(node) = self.cluster.node(index) else { continue };
            let is_sse = self.numbers.happens(500);
            let transport = if is_sse { Transport::Sse } else { Transport::Websocket };
            let party = Party::Approver(self.approver.clone());
            let subscriber = Subscriber { tenant: self.tenant.clone(), party, transport };
            let numbers = Numbers::of(self.numbers.next(), "channel");
            let from = after.clone().filter(|_| is_sse);
            let mut connection = connect(&world, &node, &self.watch, subscriber, from, numbers);
            let stays = if self.numbers.happens(300) { self.numbers.between(500, 9_000) } else { u64::MAX };
            let until = world.now().saturating_add(stays);
            loop {
                let leaves = until < self.cluster.plan.healed_at;
                let left = until.saturating_sub(world.now());
                let push = tokio::select! {
                    biased;
                    push = connection.pushes.recv() => push,
                    () = world.pause(left, 0), if leaves => None,
                };
                let Some(push) = push else { break };
                // The two transports have other mailboxes, so other positions.
                after = Some(push.event).filter(|_| is_sse);
                let message = push.message;
                let body = String::from_utf8_lossy(&message.body).into_owned();
                self.watch.requested(&self.tenant, &self.approver, &message.request_id, &body);
                if message.msg_type == MsgType::ApprovalRequest && self.numbers.happens(600) {
                    let about = about(&self.tenant, &message.request_id);
                    let deciding = self.clone().decide(message.request_id, about, 0);
                    tokio::spawn(deciding);
                }
            }
            connection.leave(&world, 2, self.numbers.next());
        }
    }

    /// Thinks for a while, and decides: the same text again as long as the outcome is unknown.
    pub(crate) async fn decide(mut self, request_id: RequestId, about: String, attempt: u64) {
        let world = Arc::clone(&self.cluster.world);
        self.numbers = Numbers::of(world.seed, (hash(&self.tenant), &self.approver, &request_id, attempt));
        let wait = self.numbers.between(1, 2_500);
        world.pause(wait, self.numbers.next()).await;
        let nonce = format!("{}.{request_id}.{}.{}", self.tenant, self.approver, self.numbers.below(2));
        let text = decision(&request_id, &about, &nonce, None);
        for _ in 0..12 {
            let (tenant, by, id, decision) =
                (self.tenant.clone(), self.approver.clone(), request_id.clone(), text.clone());
            let index = self.cluster.any(&mut self.numbers);
            let asked_at = world.now();
            let reply = self
                .cluster
                .call(&mut self.numbers, index, 4_000, |gateway| async move {
                    decide(&gateway, &tenant, &by, &id, &decision).await
                })
                .await;
            let times = (asked_at, world.now());
            world.step(|| {
                format!("{} {} decides {request_id} {nonce}: {reply:?}", self.tenant, self.approver)
            });
            match reply {
                Reply::Done(_) => {
                    self.watch.facts.update(&self.tenant, &request_id, |exchange| {
                        exchange.accepted.insert(text.clone());
                    });
                    return self.watch.facts.observed(
                        &self.tenant,
                        &request_id,
                        times,
                        ExchangeState::Decided,
                    );
                }
                Reply::Rejected(error) => {
                    return self.watch.rejected(&self.tenant, &request_id, times, &error);
                }
                Reply::Unknown => world.pause(self.numbers.between(50, 1_500), self.numbers.next()).await,
            }
        }
    }
}
