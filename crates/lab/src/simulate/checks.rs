//! What must hold: what clients saw is compared with it as it happens, and with the database when all is quiet.

use std::{collections::BTreeMap, sync::Arc};

use countersign_client::journal::{Journal, MemoryJournal};
use countersign_core::{
    Error,
    model::exchange::{Exchange, TransitionError},
    store::{Key, Kind},
    use_cases::status::ExchangeSnapshot,
};
use countersign_testkit::gateway_suite::world::hash as artifact_hash;
use countersign_wire::{
    exchange::{Accepted, ExchangeState},
    id::{ApproverId, EnforcerId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use parking_lot::Mutex;

use super::{
    cluster::Cluster,
    database::time,
    facts::{ExchangeFacts, Facts, Observed},
    nonce::nonce_of,
};

/// How long after a change of what is right something else may still be sent: what a node knows of channels is up to 5 s
/// old, what is handed over 2 s, and the store is late.
const GRACE: u64 = 15_000;

/// A request that is overdue for longer is stored as expired: a claim that lapsed, and a sweep.
const EXPIRY_GRACE: u64 = 40_000;

const ONE_DECISION: &str = "at most one decision wins";
const NOT_CHANGED: &str = "what was acknowledged is neither lost nor changed";
const NOT_CROSSED: &str = "nothing crosses tenants";

type Disks = BTreeMap<(TenantId, EnforcerId), Arc<MemoryJournal>>;

/// Sees what clients see.
pub(crate) struct Watch {
    pub(crate) facts: Facts,
    cluster: Arc<Cluster>,
    disks: Mutex<Disks>,
}

impl Watch {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self { facts: Facts::default(), cluster: Arc::clone(cluster), disks: Mutex::default() })
    }

    fn violated(&self, invariant: &str, what: &str) {
        self.cluster.world.violated(invariant, what);
    }

    /// The journal of a process that starts: what is on the disk of its enforcer.
    pub(crate) fn journal_after_crash(&self, tenant: &TenantId, enforcer: &EnforcerId) -> Arc<dyn Journal> {
        let mut disks = self.disks.lock();
        let disk = Arc::clone(disks.entry((tenant.clone(), enforcer.clone())).or_default());
        match self.cluster.bug() {
            Some(bug) => bug.journal(disk),
            None => disk,
        }
    }

    pub(crate) fn submitted(&self, tenant: &TenantId, id: &RequestId, accepted: Accepted) {
        let now = self.cluster.world.now();
        let mut other = None;
        self.facts.update(tenant, id, |exchange| match &exchange.submitted {
            None => exchange.submitted = Some((accepted, now)),
            Some((first, _)) if *first != accepted => other = Some(first.clone()),
            Some(_) => {}
        });
        if let Some(first) = other {
            self.violated("a replay equals the original", &format!("{tenant} {id}: first {first:?}"));
        }
    }

    /// What a rejection says of the state, which its commit has confirmed.
    pub(crate) fn rejected(&self, tenant: &TenantId, id: &RequestId, times: (u64, u64), error: &Error) {
        let state = match error {
            Error::Exchange(TransitionError::AlreadyDecided { .. }) => ExchangeState::Decided,
            Error::Exchange(TransitionError::Expired { .. } | TransitionError::AlreadyPast) => {
                ExchangeState::Expired
            }
            Error::Exchange(TransitionError::Ended { state }) => *state,
            Error::Exchange(TransitionError::NotFound) => ExchangeState::Withdrawn,
            other => {
                return self.violated(
                    "only what the state table rejects is rejected",
                    &format!("{tenant} {id}: {other}"),
                );
            }
        };
        let mut was_known = false;
        self.facts.update(tenant, id, |exchange| {
            was_known = exchange.submitted.as_ref().is_some_and(|(_, at)| *at < times.0);
        });
        let unknown =
            matches!(error, Error::Exchange(TransitionError::NotFound | TransitionError::AlreadyPast));
        if unknown && !was_known {
            return;
        }
        if matches!(error, Error::Exchange(TransitionError::AlreadyPast)) {
            self.violated(NOT_CHANGED, &format!("{tenant} {id} is unknown when it is submitted again"));
        }
        self.facts.observed(tenant, id, times, state);
    }

    pub(crate) fn read(
        &self,
        tenant: &TenantId,
        id: &RequestId,
        times: (u64, u64),
        snapshot: &ExchangeSnapshot,
    ) {
        if snapshot.artifact_hash != artifact_hash(&about(tenant, id)) {
            self.violated(NOT_CROSSED, &format!("{tenant} reads {id} with another artifact"));
        }
        if let Some(decision) = &snapshot.decision {
            self.decision_told(tenant, id, &String::from_utf8_lossy(decision));
        }
        self.facts.observed(tenant, id, times, snapshot.state);
    }

    /// Somebody was told this decision.
    pub(crate) fn decision_told(&self, tenant: &TenantId, id: &RequestId, text: &str) {
        if !nonce_of(text).starts_with(&format!("{tenant}.{id}.")) {
            self.violated(NOT_CROSSED, &format!("{tenant} {id} got {text}"));
        }
        self.facts.update(tenant, id, |exchange| {
            exchange.seen.insert(text.to_owned());
        });
    }

    /// An enforcer got a message.
    pub(crate) fn received(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        id: &RequestId,
        msg_type: &MsgType,
        text: &str,
    ) {
        if *msg_type != MsgType::DecisionDeliver {
            return;
        }
        self.decision_told(tenant, id, text);
        let mut is_others = false;
        self.facts.update(tenant, id, |exchange| {
            exchange.received = true;
            is_others = exchange.request.enforcer != *enforcer;
        });
        if is_others {
            self.violated(NOT_CROSSED, &format!("{enforcer} got the decision of {id}, which is not its own"));
        }
    }

    /// An approver got a message.
    pub(crate) fn requested(&self, tenant: &TenantId, by: &ApproverId, id: &RequestId, body: &str) {
        if body.contains("ciphertext") && !body.contains(&about(tenant, id)) {
            self.violated(NOT_CROSSED, &format!("{by} of {tenant} got {body}"));
        }
        self.facts.update(tenant, id, |exchange| {
            exchange.requested.insert(by.to_string());
        });
    }

    /// An enforcer acted on a decision.
    pub(crate) fn acted(&self, tenant: &TenantId, nonce: &str) {
        self.cluster.world.step(|| format!("{tenant} acts on {nonce}"));
        let count = {
            let mut known = self.facts.known();
            let count = known.acts.entry(nonce.to_owned()).or_default();
            *count += 1;
            *count
        };
        if count > 1 {
            self.violated("a decision is acted on at most once", &format!("{nonce}, {count} times"));
        }
    }

    pub(crate) fn acknowledged(&self, tenant: &TenantId, id: &RequestId, now: u64) {
        self.cluster.world.step(|| format!("{tenant} {id} is acknowledged"));
        self.facts.update(tenant, id, |exchange| {
            exchange.acknowledged_at.get_or_insert(now);
        });
    }

    /// A node sends a decision on the channel with this place in the facts.
    pub(crate) fn decision_sent(&self, channel: usize, id: &RequestId) {
        let (now, database) = (self.cluster.world.now(), &self.cluster.database);
        let since = now.saturating_sub(GRACE);
        let known = self.facts.known();
        let from = &known.channels[channel];
        let exchange = known.exchanges.get(&(from.tenant.clone(), id.clone()));
        let acknowledged_at = exchange.and_then(|exchange| exchange.acknowledged_at);
        let again = acknowledged_at.is_some_and(|at| at < since && !from.run.was_stopped_since(at));
        let is_newer = |other: &&super::facts::ChannelFacts| {
            (&other.tenant, &other.enforcer) == (&from.tenant, &from.enforcer)
                && other.asked_at > from.opened_at
                && other.opened_at < since
                && other.closed_at.is_none()
                && !other.run.was_stopped_since(since)
                // Its opening did not wait for the standby. Its client connects again when it is noticed.
                && !database.is_undone(&other.attempt)
                // What a node has opened before its lease began is dropped when another node opens one.
                && database.alive_since(&other.node).is_some_and(|alive| alive < since.min(other.asked_at))
        };
        let newer = known.channels.iter().find(is_newer).filter(|_| !from.run.was_stopped_since(since));
        let newer = newer.map(|newer| newer.run.name().to_owned());
        let name = from.run.name().to_owned();
        drop(known);
        if again {
            let what = format!("{id} by {name}, acknowledged at {acknowledged_at:?}");
            self.violated("what is acknowledged is not sent again", &what);
        }
        if let Some(newer) = newer {
            self.violated(
                "the newest live channel gets a decision",
                &format!("{id} by {name} and not {newer}"),
            );
        }
    }

    /// Compares all that is known with the database, when all is quiet.
    pub(crate) fn check_all(&self) {
        let known = self.facts.known();
        for ((tenant, id), facts) in &known.exchanges {
            let stored = self.cluster.database.exchange(tenant, &Key::new(Kind::Exchange, id));
            self.count(facts, stored.as_ref());
            for (invariant, what) in self.check(tenant, facts, stored.as_ref()) {
                self.violated(invariant, &format!("{tenant} {id}: {what}"));
            }
        }
    }

    fn count(&self, facts: &ExchangeFacts, stored: Option<&Exchange>) {
        let world = &self.cluster.world;
        world.count("submissions acknowledged", u64::from(facts.submitted.is_some()));
        world.count("decisions acknowledged", facts.accepted.len() as u64);
        world.count("states told", facts.observed.len() as u64);
        match stored.map(|stored| stored.state.to_wire()) {
            Some(ExchangeState::Delivered) => world.count("exchanges delivered", 1),
            Some(ExchangeState::Expired) => world.count("exchanges expired", 1),
            Some(ExchangeState::Withdrawn) => world.count("exchanges withdrawn", 1),
            _ => {}
        }
    }

    fn check(
        &self,
        tenant: &TenantId,
        facts: &ExchangeFacts,
        stored: Option<&Exchange>,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let decisions = facts.accepted.union(&facts.seen).count();
        if decisions > 1 {
            found.push((ONE_DECISION, format!("{:?} and {:?}", facts.accepted, facts.seen)));
        }
        let Some(stored) = stored else {
            // That it is pending is told before it is durable, and nobody acts on it.
            let has_ended = |observed: &Observed| observed.state != ExchangeState::PendingApproval;
            if facts.submitted.is_some() || facts.observed.iter().any(has_ended) {
                found.push((NOT_CHANGED, "it is gone".to_owned()));
            }
            return found;
        };
        if stored.artifact_hash != artifact_hash(&facts.request.about) {
            found.push((NOT_CHANGED, "it has another artifact".to_owned()));
        }
        let end = self.cluster.world.now();
        let state = stored.state.to_wire();
        let last = Observed { asked_at: end, answered_at: end, state };
        let all: Vec<Observed> = facts.observed.iter().copied().chain([last]).collect();
        for first in &all {
            let contradicts = |next: &&Observed| {
                first.answered_at < next.asked_at && !is_reachable(first.state, next.state)
            };
            found.extend(
                all.iter()
                    .find(contradicts)
                    .map(|next| (NOT_CHANGED, format!("{first:?} and then {next:?}"))),
            );
        }
        let decided = stored.state.decided();
        let text = decided.and_then(|decided| self.cluster.database.payload(tenant, decided.decision?));
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        let is_other = |text_seen: &&String| Some(*text_seen) != text.as_ref();
        found.extend(
            facts
                .accepted
                .union(&facts.seen)
                .find(is_other)
                .map(|other| (NOT_CHANGED, format!("{other} is not stored"))),
        );
        let decided_at = decided.map(|decided| decided.at);
        found.extend(not_delivered(facts, state, decided_at, end));
        found
    }
}

/// What a request of this tenant is about.
pub(crate) fn about(tenant: &TenantId, id: &RequestId) -> String {
    format!("{tenant}/{id}")
}

/// What was not delivered although all is quiet.
fn not_delivered(
    facts: &ExchangeFacts,
    state: ExchangeState,
    decided_at: Option<Timestamp>,
    end: u64,
) -> Option<(&'static str, String)> {
    // An approver may decide in the last moment of a run.
    let is_recent = decided_at.is_some_and(|at| at > time(end.saturating_sub(GRACE)));
    match state {
        ExchangeState::Decided | ExchangeState::Delivered if !facts.received && !is_recent => {
            Some(("every decision is delivered to a live enforcer", "it was not".to_owned()))
        }
        ExchangeState::PendingApproval
            if time(end.saturating_sub(EXPIRY_GRACE)) > facts.request.expires_at =>
        {
            Some(("what is overdue expires", "it is still pending".to_owned()))
        }
        ExchangeState::PendingApproval if time(end) < facts.request.expires_at => {
            let to = facts.request.to.as_ref().map(ApproverId::to_string);
            let addressed = to.map_or_else(|| vec!["ada".to_owned(), "bob".to_owned()], |to| vec![to]);
            let missing = addressed.into_iter().find(|name| !facts.requested.contains(name))?;
            Some(("every pending request is delivered to its approvers", format!("{missing} has not got it")))
        }
        _ => None,
    }
}

/// Whether an exchange in the first state can be in the other one later. That a decision is delivered does not show in
/// every answer.
fn is_reachable(from: ExchangeState, to: ExchangeState) -> bool {
    let is_decided = |state| matches!(state, ExchangeState::Decided | ExchangeState::Delivered);
    from == ExchangeState::PendingApproval || from == to || is_decided(from) && is_decided(to)
}
