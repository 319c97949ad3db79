//! A bare enforcer: submits, repeats, withdraws, waits, reads, and tries to reach other tenants.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{
    super::history::{Call, Hash, Message, Outcome},
    rest::{Rest, Sent},
    texts,
    world::World,
};

/// Exchanges that one enforcer has open at once.
const MAX_OPEN: usize = 8;

/// Ended exchanges that are repeated and read now and then.
const REMEMBERED: usize = 30;

pub(super) struct Enforcer {
    pub(super) rest: Rest,
    pub(super) id: String,
    /// Its number within the tenant: two tenants use the same ids of exchanges.
    pub(super) number: usize,
    /// The approvers of its tenant without the client library.
    pub(super) approvers: Vec<String>,
    /// What its channel gets: decided exchanges make room for others.
    pub(super) pushed: Option<mpsc::UnboundedReceiver<(Message, Vec<u8>)>>,
    submitted: Vec<Submitted>,
    next: usize,
}

/// An exchange as it was submitted, to do that again.
#[derive(Debug, Clone)]
pub(super) struct Submitted {
    request: String,
    call: Call,
    sent: Sent,
    ends: Instant,
}

impl Enforcer {
    pub(super) fn new(rest: Rest, id: &str, number: usize, approvers: Vec<String>) -> Self {
        Self { rest, id: id.to_owned(), number, approvers, pushed: None, submitted: Vec::new(), next: 0 }
    }

    pub(super) async fn run(mut self) {
        let world = Arc::clone(&self.rest.world);
        while !world.is_stopped() {
            self.step().await;
            let pause = self.rest.rng.millis(40, 160);
            world.stopped_within(pause).await;
        }
    }

    /// Forgets that exchanges are open whose decision has arrived.
    fn take_pushed(&mut self) {
        while let Some((message, _)) = self.pushed.as_mut().and_then(|pushed| pushed.try_recv().ok()) {
            let decided = self.submitted.iter_mut().find(|it| it.request == message.request);
            if let Some(decided) = decided {
                decided.ends = Instant::now();
            }
        }
    }

    /// Begins to count open exchanges anew.
    pub(super) fn forget(&mut self) {
        self.submitted.clear();
    }

    async fn step(&mut self) {
        self.take_pushed();
        match self.rest.rng.below(100) {
            0..40 => self.submit().await,
            40..50 => self.again().await,
            50..57 => self.withdraw().await,
            57..65 => self.wait().await,
            65..85 => self.status().await,
            85..89 => {
                self.rest.call(Call::Presence, &Sent::get("/v1/presence/enforcers")).await;
            }
            _ => self.probe().await,
        }
    }

    /// Submits something new, mostly to one approver.
    pub(super) async fn submit(&mut self) {
        let now = Instant::now();
        let is_full = self.submitted.iter().filter(|open| open.ends > now).count() >= MAX_OPEN;
        if is_full || self.approvers.is_empty() {
            return;
        }
        let submitted = self.draft();
        let first = self.rest.call_until_known(&submitted.call, &submitted.sent).await;
        if first.outcome != Outcome::Fail {
            self.submitted.push(submitted);
        }
        if self.submitted.len() > REMEMBERED {
            self.submitted.remove(0);
        }
    }

    fn draft(&mut self) -> Submitted {
        self.next += 1;
        let (tenant, rng) = (self.rest.tenant, &mut self.rest.rng);
        let is_common = self.next.is_multiple_of(3);
        let approver = self.approvers[rng.below(self.approvers.len())].clone();
        let world = Arc::clone(&self.rest.world);
        let to = match rng.below(100) {
            0..60 => Some(approver),
            60..85 => None,
            // Nobody decides these: they are withdrawn or expire.
            _ => Some(world.marked(tenant, "nobody")),
        };
        let lifetime = if rng.is_one_of(15) { rng.millis(1_000, 3_000) } else { Duration::from_secs(45) };
        let name = &world.tenant(tenant).tenant;
        let request = match is_common {
            true => format!("common-{}-{}", self.number, self.next),
            false => format!("{name}-{}-{}", self.number, self.next),
        };
        match is_common {
            true => world.learn(tenant, &request),
            false => world.learn_unique(tenant, &request),
        }
        let content = world.marked(tenant, &request);
        let body = texts::artifact(&request, &content, &texts::after(lifetime));
        let sender = ("enforcerId", self.id.as_str());
        let sent = texts::envelope("artifact.submit", &request, sender, to.as_deref(), &body);
        let call = Call::Submit {
            request: Some(request.clone()),
            enforcer: self.id.clone(),
            approver: to,
            body: Some(Hash::of(&body)),
            lifetime_ms: u64::try_from(lifetime.as_millis()).unwrap_or_default(),
        };
        let sent = Sent::post("/v1/artifacts", sent);
        Submitted { request, call, sent, ends: Instant::now() + lifetime }
    }

    /// One of its exchanges, open or ended.
    fn one(&mut self) -> Option<Submitted> {
        let count = self.submitted.len();
        (count > 0).then(|| self.submitted[self.rest.rng.below(count)].clone())
    }

    async fn again(&mut self) {
        let Some(submitted) = self.one() else { return };
        self.rest.call(submitted.call, &submitted.sent).await;
    }

    async fn withdraw(&mut self) {
        let now = Instant::now();
        let Some(Submitted { request, .. }) = self.submitted.iter().rfind(|it| it.ends > now).cloned() else {
            return;
        };
        let sent = texts::envelope("exchange.withdrawn", &request, ("enforcerId", &self.id), None, "{}");
        let path = format!("/v1/exchanges/{request}/withdraw");
        let call = Call::Withdraw { request };
        let reply = self.rest.call(call.clone(), &Sent::post(&path, sent.clone())).await;
        // A second call may find what the first one did, which is no refusal, so it is sent once more and no oftener.
        if reply.outcome == Outcome::Unknown {
            self.rest.call(call, &Sent::post(path, sent)).await;
        }
    }

    async fn wait(&mut self) {
        let Some(Submitted { request, .. }) = self.one() else { return };
        let path = format!("/v1/exchanges/{request}/wait?timeout=1");
        let call = Call::Wait { request, acknowledges: false };
        self.rest.call(call, &Sent::get(path).held_for(Duration::from_secs(1))).await;
    }

    async fn status(&mut self) {
        let Some(Submitted { request, .. }) = self.one() else { return };
        let sent = Sent::get(format!("/v1/exchanges/{request}"));
        self.rest.call(Call::Status { request }, &sent).await;
    }

    /// Tries to reach an exchange of another tenant.
    async fn probe(&mut self) {
        let world: Arc<World> = Arc::clone(&self.rest.world);
        let Some((other, request)) = world.of_another(self.rest.tenant, &mut self.rest.rng) else { return };
        let (tries, sent) = match self.rest.rng.below(3) {
            0 => ("status", Sent::get(format!("/v1/exchanges/{request}"))),
            1 => ("wait", Sent::get(format!("/v1/exchanges/{request}/wait?timeout=0"))),
            _ => {
                let sender = ("enforcerId", self.id.as_str());
                let sent = texts::envelope("exchange.withdrawn", &request, sender, None, "{}");
                ("withdraw", Sent::post(format!("/v1/exchanges/{request}/withdraw"), sent))
            }
        };
        let (of, tries) = (world.tenant(other).tenant.clone(), tries.to_owned());
        self.rest.call(Call::Probe { of, request, tries }, &sent).await;
    }
}
