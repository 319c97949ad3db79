//! The database that all nodes share: a primary with a synchronous standby.
//!
//! A commit can be read as soon as the primary has it, and is answered once the standby has it too. A failover keeps
//! everything that was answered, and some of the rest: always what was committed first. A commit that is carried by a lease is
//! answered at once; the standby has it later, at the latest with the next commit that waits for it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use countersign_core::{
    model::{
        channels::{Channels, Lease, NodeId},
        exchange::{Exchange, State},
    },
    store::{Change, Key, Kind, Outcome, PayloadId, Put, Record, Shard, Store as _, StoreError},
};
use countersign_testkit::store_suite::start;
use countersign_wire::{exchange::ExchangeState, id::TenantId, timestamp::Timestamp};
use futures_util::FutureExt as _;
use parking_lot::{Mutex, MutexGuard};

use super::{random::Numbers, world::World};
use crate::memory_store::{Data, MemoryStore};

/// The clocks of two servers differ by less than twice as much, in milliseconds.
const CLOCK_SPREAD: u64 = 300;

/// How much later the standby has a commit that nobody waits for, in milliseconds.
const CARRIED_LAG: u64 = 600;

/// One commit of the log.
struct Logged {
    change: Change,
    now: Timestamp,
    /// When the standby has it, in milliseconds.
    durable_at: u64,
}

#[derive(Default)]
struct Inner {
    log: Vec<Logged>,
    /// When the standby has everything that somebody waits for.
    waited_until: u64,
    /// One more with every failover.
    epoch: u64,
    /// Nobody answers before this time.
    down_until: u64,
    /// By how much the clock of this server is ahead, in milliseconds, plus [`CLOCK_SPREAD`].
    ahead: u64,
    /// The channels whose opening a failover has undone.
    undone_channels: HashSet<String>,
    /// Since when each node counts as alive.
    alive_since: HashMap<String, u64>,
}

pub(crate) struct Database {
    world: Arc<World>,
    clock: Arc<AtomicI64>,
    data: Arc<Mutex<Data>>,
    store: MemoryStore,
    state: Mutex<Inner>,
}

/// What became of a commit, and when the server says so.
pub(crate) struct Applied {
    pub(crate) outcome: Result<Outcome, StoreError>,
    pub(crate) answered_at: u64,
}

impl Database {
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        let (clock, data) = (Arc::new(AtomicI64::new(0)), Arc::default());
        let store = open(&data, &clock);
        let state = Mutex::new(Inner { ahead: CLOCK_SPREAD, ..Inner::default() });
        Arc::new(Self { world: Arc::clone(world), clock, data, store, state })
    }

    fn state(&self) -> MutexGuard<'_, Inner> {
        self.state.lock()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.state().epoch
    }

    pub(crate) fn is_down(&self) -> bool {
        self.world.now() < self.state().down_until
    }

    /// The time by the clock of the primary.
    pub(crate) fn now(&self) -> Timestamp {
        time((self.world.now() + self.state().ahead).saturating_sub(CLOCK_SPREAD))
    }

    /// The primary, for a call at this moment.
    pub(crate) fn primary(&self) -> &MemoryStore {
        self.clock.store(self.now().unix_micros(), Ordering::Relaxed);
        &self.store
    }

    /// Commits on the primary. The standby has it `lag` milliseconds later, and all that came before. What is carried by a
    /// lease is answered before that.
    pub(crate) fn commit(&self, change: Change, lag: u64) -> Applied {
        let mut logged = change.clone();
        logged.guards.clear();
        let is_carried = change.is_carried_by_a_lease();
        let violations = self.check_transitions(&change);
        self.watch_leases(&change);
        let outcome = ready(self.primary().commit(change));
        let (at, mut state) = (self.now(), self.state());
        let now = self.world.now();
        let before = state.waited_until;
        let Ok(Outcome::Committed { .. }) = &outcome else {
            return Applied { outcome, answered_at: before.max(now) };
        };
        self.world.count("commits", 1);
        let last = state.log.last().map_or(0, |last| last.durable_at);
        let (durable_at, answered_at) = match is_carried {
            true => (last.max(now + lag + CARRIED_LAG), now),
            false => (before.max(now + lag), before.max(now + lag)),
        };
        state.log.push(Logged { change: logged, now: at, durable_at });
        if !is_carried {
            state.waited_until = durable_at;
            // The standby has the log in its order: with this one it has all before it.
            let earlier = state.log.iter_mut().rev().take_while(|logged| logged.durable_at >= durable_at);
            earlier.for_each(|logged| logged.durable_at = durable_at);
        }
        drop(state);
        for violation in violations {
            self.world.violated("the state table is kept", &violation);
        }
        Applied { outcome, answered_at }
    }

    /// The standby takes over: what it does not have yet is undone, except for some that came first.
    pub(crate) fn fail_over(&self, millis: u64, numbers: &mut Numbers) {
        let now = self.world.now();
        let mut state = self.state();
        let durable = state.log.iter().take_while(|logged| logged.durable_at <= now).count();
        let not_durable = state.log.len() - durable;
        let kept = durable + numbers.index(not_durable + 1);
        let undone = state.log.split_off(kept);
        state.epoch += 1;
        state.waited_until = state.waited_until.min(now);
        state.down_until = now + millis;
        state.ahead = numbers.between(0, 2 * CLOCK_SPREAD);
        let fresh: Arc<Mutex<Data>> = Arc::default();
        let rebuilt = open(&fresh, &self.clock);
        for logged in &mut state.log {
            logged.durable_at = logged.durable_at.min(now);
            self.clock.store(logged.now.unix_micros(), Ordering::Relaxed);
            drop(ready(rebuilt.commit(logged.change.clone())));
        }
        let rebuilt = std::mem::take(&mut *fresh.lock());
        *self.data.lock() = rebuilt;
        for logged in &undone {
            let puts = logged.change.puts.iter().filter(|put| put.key.kind == Kind::Channels);
            state.undone_channels.extend(puts.flat_map(|put| channels_in(&put.content)));
        }
        let kept = state.log.iter().flat_map(|logged| &logged.change.puts);
        let kept =
            kept.filter(|put| put.key.kind == Kind::Channels).flat_map(|put| channels_in(&put.content));
        let kept: HashSet<String> = kept.collect();
        state.undone_channels.retain(|channel| !kept.contains(channel));
        drop(state);
        self.world.step(|| {
            let keys = |logged: &Logged| logged.change.puts.iter().map(|put| put.key.id.clone()).collect();
            let keys: Vec<Vec<String>> = undone.iter().map(keys).collect();
            format!("failover, {} commits undone: {keys:?}", undone.len())
        });
        self.world.count("failovers", 1);
        self.world.count("commits undone by a failover", undone.len() as u64);
    }

    /// Whether a failover has undone the opening of a channel.
    pub(crate) fn is_undone(&self, channel: &str) -> bool {
        self.state().undone_channels.contains(channel)
    }

    /// What a change does to exchanges that no change may do. Empty if its guards do not hold: then it does nothing.
    fn check_transitions(&self, change: &Change) -> Vec<String> {
        let exchanges = change.puts.iter().filter(|put| put.key.kind == Kind::Exchange);
        let violation = |put: &Put| {
            let next: Exchange = serde_json::from_slice(&put.content).ok()?;
            let known = self.exchange(&change.tenant, &put.key);
            let (from, to) = (known.as_ref().map(|known| &known.state), &next.state);
            let what = || {
                format!(
                    "{} {} {:?} -> {:?}",
                    change.tenant,
                    put.key.id,
                    from.map(State::to_wire),
                    to.to_wire()
                )
            };
            if !is_step(from, to) {
                return Some(what());
            }
            let is_late = matches!(to, State::Decided(_)) && from == Some(&State::Pending);
            (is_late && self.now() >= next.expires_at).then(|| format!("{} after its expiry", what()))
        };
        exchanges.filter_map(violation).collect()
    }

    /// An exchange as the primary has it.
    pub(crate) fn exchange(&self, tenant: &TenantId, key: &Key) -> Option<Exchange> {
        serde_json::from_slice(&self.record(tenant, key)?.content).ok()
    }

    /// A record as the primary has it.
    pub(crate) fn record(&self, tenant: &TenantId, key: &Key) -> Option<Record> {
        ready(self.primary().load(tenant, std::slice::from_ref(key))).ok()?.records.pop().flatten()
    }

    /// A payload as the primary has it.
    pub(crate) fn payload(&self, tenant: &TenantId, id: PayloadId) -> Option<Bytes> {
        ready(self.primary().payloads(tenant, &[id])).ok()?.pop().flatten()
    }

    /// Since when the lease of a node has not run out, in milliseconds; `None` if it has.
    pub(crate) fn alive_since(&self, node: &NodeId) -> Option<u64> {
        let since = self.state().alive_since.get(&node.0).copied()?;
        (self.now() < self.lease(&node.0)?).then_some(since)
    }

    /// Until when a node counts as alive.
    fn lease(&self, node: &str) -> Option<Timestamp> {
        let record = self.record(&Shard(0).nodes_tenant().ok()?, &Key::new(Kind::Lease, node))?;
        serde_json::from_slice::<Lease>(&record.content).ok().map(|lease| lease.until)
    }

    /// Notes which leases begin anew with this change.
    fn watch_leases(&self, change: &Change) {
        for put in change.puts.iter().filter(|put| put.key.kind == Kind::Lease) {
            if self.lease(&put.key.id).is_none_or(|until| until <= self.now()) {
                let now = self.world.now();
                self.state().alive_since.insert(put.key.id.clone(), now);
            }
        }
    }
}

/// The channels in a record, by the attempts that opened them.
fn channels_in(content: &[u8]) -> Vec<String> {
    let channels: Channels = serde_json::from_slice(content).unwrap_or_default();
    channels.open.into_iter().map(|channel| channel.attempt).collect()
}

/// The store's time at this moment of a run.
pub(crate) fn time(millis: u64) -> Timestamp {
    start().plus(std::time::Duration::from_millis(millis))
}

fn open(data: &Arc<Mutex<Data>>, clock: &Arc<AtomicI64>) -> MemoryStore {
    let clock = Arc::clone(clock);
    let now = move || Timestamp::from_unix_micros(clock.load(Ordering::Relaxed));
    MemoryStore::new(Arc::clone(data), now)
}

/// The result of a call to the store in memory, which never waits.
pub(crate) fn ready<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    call.now_or_never().unwrap_or_else(|| Err(StoreError::unavailable("the store in memory waits")))
}

/// Whether the state table has this step.
fn is_step(from: Option<&State>, to: &State) -> bool {
    match (from, to) {
        (None, State::Pending) => true,
        (None, _) | (Some(State::Delivered { .. }), State::Decided(_)) => false,
        // The same decision, with other facts about the exchange, or delivered.
        (
            Some(State::Decided(known) | State::Delivered { decided: known, .. }),
            State::Decided(next) | State::Delivered { decided: next, .. },
        ) => known.digest == next.digest,
        (Some(State::Pending), next) => next.to_wire() != ExchangeState::Delivered,
        (Some(known), next) => known == next,
    }
}
