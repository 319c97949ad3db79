//! The gateway: its ports, and the one loop of every write: load, evaluate, commit, ring. Use cases are its methods.

use std::{fmt::Display, ops::Deref, str::FromStr, sync::Arc};

use countersign_wire::{
    id::{ApproverId, TenantId},
    timestamp::Timestamp,
};
use tracing::Instrument as _;

use crate::{
    cache::NodeCache,
    closings::PendingClosings,
    committed::{Committed, Written},
    durability::DurabilityCache,
    error::Error,
    load::{Load, ReadFrom, Reading},
    metrics::Metrics,
    model::{channels::NodeId, exchange::Exchange, viewer::Viewer},
    notices::Notices,
    notify::{Announcer, Doorbell, Endings, Listener, Ring},
    random::RandomSource,
    retention::Retention,
    store::{
        Change, Guard, Key, Mailbox, MailboxKey, MeteredStore, Outcome, Shard, Store, StoreError, Stored,
        Versioned,
    },
    transitions::{self, ExchangeRef},
    turns::{self, Turn, Turns},
};

/// Everything that a client can ask for. A pointer, cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Ports>);

/// What every use case needs.
pub struct Ports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) random: Arc<dyn RandomSource>,
    pub(crate) retention: Retention,
    pub(crate) cache: Arc<NodeCache>,
    /// This run of this process.
    node: NodeId,
    pub(crate) announcer: Box<dyn Announcer>,
    pub(crate) metrics: Metrics,
    pub(crate) closings: PendingClosings,
    pub(crate) notices: Notices,
    durable: DurabilityCache,
    turns: Turns,
}

impl Deref for Gateway {
    type Target = Ports;

    fn deref(&self) -> &Ports {
        &self.0
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("retention", &self.retention).finish_non_exhaustive()
    }
}

/// Whether a guarded change was written, or somebody else had written first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    Done,
    Conflict,
}

/// What evaluating loaded records came to. An answer that rests on records is given after a commit: a replay or a
/// rejection commits guards alone, so that what it rests on is durable before the client hears of it.
pub(crate) enum Evaluation<T> {
    /// Commit, then answer. On a conflict: load and evaluate again.
    Answer { change: Change, ring: Option<Ring>, answer: Result<T, Error> },
    /// Answer at once: there is nothing to write, and nothing that must be durable.
    NothingToDo(T),
    /// Commit, then load and evaluate again in any case.
    Again { change: Change, ring: Option<Ring> },
}

/// Each attempt that fails means that somebody else has changed the same records. Whoever loses that often is told to come
/// back, and does not compete without end.
const MAX_ATTEMPTS: usize = 100;

impl<T> Evaluation<T> {
    /// Answer with `answer` once `change` is committed.
    pub(crate) fn commit(change: Change, answer: T) -> Self {
        Self::Answer { change, ring: None, answer: Ok(answer) }
    }

    /// As [`Evaluation::commit`]; wakes those who listen to `ring` too.
    pub(crate) fn commit_and_ring(change: Change, ring: Ring, answer: T) -> Self {
        Self::Answer { change, ring: Some(ring), answer: Ok(answer) }
    }

    /// Reject with `error` if what `guards` names is still unchanged, which makes it durable too.
    pub(crate) fn reject_if_unchanged(guards: Change, error: impl Into<Error>) -> Self {
        Self::Answer { change: guards, ring: None, answer: Err(error.into()) }
    }
}

/// A page of records with their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<I, T> {
    pub items: Vec<(I, T)>,
    /// The next page starts after this id; `None` after the last page.
    pub next: Option<String>,
}

impl Gateway {
    pub fn new(
        store: Arc<dyn Store>,
        doorbell: &dyn Doorbell,
        random: Arc<dyn RandomSource>,
        retention: Retention,
    ) -> Self {
        Self::with_metrics(store, doorbell, random, retention, Metrics::default())
    }

    /// As [`Gateway::new`], with counts that others share: the store for its writers, the doorbell for its rings.
    pub fn with_metrics(
        store: Arc<dyn Store>,
        doorbell: &dyn Doorbell,
        random: Arc<dyn RandomSource>,
        retention: Retention,
        metrics: Metrics,
    ) -> Self {
        let store = Arc::new(MeteredStore::new(store, metrics.store.clone()));
        let node = NodeId(random.secret()[..32].to_owned());
        let cache = Arc::new(NodeCache::new(store.timeline(), &metrics));
        let announcer = doorbell.attach(&node, Arc::clone(&cache) as _);
        Self(Arc::new(Ports {
            store,
            random,
            retention,
            cache,
            node,
            announcer,
            metrics,
            closings: PendingClosings::default(),
            notices: Notices::default(),
            durable: DurabilityCache::default(),
            turns: Turns::default(),
        }))
    }

    /// What this gateway has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Names this run of this node among all others.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Names the history of the store that this node works with ([`Store::timeline`]).
    pub fn timeline(&self) -> u64 {
        self.cache.timeline()
    }

    /// Listens to these, at most eight, from now on. Listen first, then read: a commit between the two rings.
    pub fn listen(&self, rings: Vec<Ring>) -> Listener {
        self.cache.listeners.add(rings)
    }

    /// Hears of requests that leave an approver's inbox: answered, expired or cancelled. Nothing of it is stored.
    pub fn listen_to_endings(&self, tenant: &TenantId, approver: &ApproverId) -> Endings {
        let of = |mailbox| MailboxKey { tenant: tenant.clone(), mailbox };
        self.cache.listeners.endings(vec![of(Mailbox::Approver(approver.clone())), of(Mailbox::Shared)])
    }

    /// Everything that somebody on this node listens to.
    pub fn listened_to(&self) -> Vec<Ring> {
        self.cache.listeners.rings()
    }

    /// Wakes those on this node who listen to any of these, with the number of the newest delivery or the version of the
    /// record.
    pub fn wake(&self, rings: &[(Ring, u64)]) {
        self.cache.listeners.wake(rings);
    }

    /// The store, for reads that need no rules.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The databases that the tenants are spread over.
    pub fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.store.shard_count()).map(Shard)
    }

    /// Reads what `load` names, and the store's time.
    pub(crate) async fn load<L: Load>(
        &self,
        tenant: &TenantId,
        load: &L,
    ) -> Result<(L::Loaded, Timestamp), Error> {
        Ok(load.load(&self.reading(ReadFrom::Store), tenant).await?)
    }

    pub(crate) fn reading(&self, from: ReadFrom) -> Reading<'_> {
        Reading::new(&*self.store, &self.cache.known, from)
    }

    /// A page of the records of one type, with their ids and in the order of these, after the id `after`.
    pub(crate) async fn page_of<T: Stored, I: FromStr<Err: Display>>(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<I, T>, Error> {
        let records = self.store.scan(tenant, T::KIND, after, limit).await?;
        let next = records.last().filter(|_| records.len() == limit as usize);
        let next = next.map(|last| last.key.id.clone());
        let mut items = Vec::with_capacity(records.len());
        for record in &records {
            let id = record.key.id.parse().map_err(|rule: I::Err| StoreError::corrupt(rule.to_string()))?;
            items.extend(T::read(Some(record))?.map(|known| (id, known.value)));
        }
        Ok(Page { items, next })
    }

    /// Load, evaluate, commit, ring; again from the start while somebody else commits first, up to [`MAX_ATTEMPTS`] times.
    /// After the first time in turn with the other writers of this node.
    pub(crate) async fn update<L: Load, T>(
        &self,
        tenant: &TenantId,
        load: &L,
        evaluate: impl Fn(L::Loaded, Timestamp) -> Result<Evaluation<T>, Error>,
    ) -> Result<T, Error> {
        self.update_from(ReadFrom::Store, tenant, load, evaluate).await
    }

    /// As [`Gateway::update`]. The first attempt may rest on what this node remembers. It is final only if it is accepted
    /// and its guards hold: whatever would be rejected, left alone or written for another reason is read first.
    pub(crate) async fn update_from<L: Load, T>(
        &self,
        from: ReadFrom,
        tenant: &TenantId,
        load: &L,
        evaluate: impl Fn(L::Loaded, Timestamp) -> Result<Evaluation<T>, Error>,
    ) -> Result<T, Error> {
        let mut turn: Option<Turn> = None;
        for attempt in 0..MAX_ATTEMPTS {
            let reading = self.reading(if attempt == 0 { from } else { ReadFrom::Store });
            let (loaded, now) = load.load(&reading, tenant).await?;
            let evaluation = evaluate(loaded, now);
            let is_accepted = matches!(evaluation, Ok(Evaluation::Answer { answer: Ok(_), .. }));
            if reading.used_memory() && !is_accepted {
                continue;
            }
            match evaluation? {
                Evaluation::Answer { mut change, ring, answer } => {
                    reading.guard(&mut change);
                    let contended = turns::contended(&change).filter(|_| turn.is_none());
                    // Who would only lose against those that wait does not even try.
                    let must_wait = contended.as_ref().is_some_and(|key| self.turns.are_taken(tenant, key));
                    if !must_wait && self.commit(change, ring).await? == Commit::Done {
                        return answer;
                    }
                    if let Some(key) = contended {
                        turn = Some(self.turns.take(tenant, key).await);
                    }
                }
                Evaluation::NothingToDo(answer) => return Ok(answer),
                Evaluation::Again { change, ring } => drop(self.commit(change, ring).await?),
            }
        }
        Err(StoreError::Overloaded.into())
    }

    /// As [`Gateway::update`] for one exchange, as far as `viewer` sees it, and what else `load` names. An exchange
    /// whose time is up is written as expired before `evaluate` sees it.
    pub(crate) async fn update_exchange<X, L, T>(
        &self,
        from: ReadFrom,
        exchange: ExchangeRef<'_>,
        viewer: Viewer<'_>,
        load: &L,
        evaluate: impl Fn(Option<&Versioned<Exchange>>, X, Timestamp) -> Result<Evaluation<T>, Error>,
    ) -> Result<T, Error>
    where
        L: Load<Loaded = (Option<Versioned<Exchange>>, X)>,
    {
        self.update_from(from, exchange.tenant, load, |(known, loaded), now| {
            let known = known.filter(|known| viewer.sees(&known.value));
            match &known {
                Some(known) if known.value.is_overdue(now) => {
                    let change = transitions::expire(&exchange, known, &self.retention)?;
                    Ok(Evaluation::Again { change, ring: Some(exchange.ring()) })
                }
                known => evaluate(known.as_ref(), loaded, now),
            }
        })
        .await
    }

    /// One exchange, as far as `viewer` sees it, without any write.
    pub(crate) async fn read_exchange(
        &self,
        exchange: ExchangeRef<'_>,
        viewer: Viewer<'_>,
    ) -> Result<(Option<Versioned<Exchange>>, Timestamp), Error> {
        let (known, now) = self.load(exchange.tenant, &exchange.record()).await?;
        Ok((known.filter(|known| viewer.sees(&known.value)), now))
    }

    /// Writes the expiry of an overdue exchange. A conflict means that somebody else has written; read again either way.
    pub(crate) async fn expire(
        &self,
        exchange: ExchangeRef<'_>,
        known: &Versioned<Exchange>,
    ) -> Result<(), Error> {
        let change = transitions::expire(&exchange, known, &self.retention)?;
        self.commit(change, Some(exchange.ring())).await.map(drop)
    }

    /// Commits, and rings for what was added to mailboxes and for `ring`. In a task of its own: a caller that goes away
    /// must not take the ring with it.
    pub(crate) async fn commit(&self, change: Change, ring: Option<Ring>) -> Result<Commit, Error> {
        let gateway = self.clone();
        let committing = async move { gateway.commit_here(change, ring).await };
        let committing = tokio::spawn(committing.in_current_span());
        committing.await.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown.into()))
    }

    async fn commit_here(&self, change: Change, ring: Option<Ring>) -> Result<Commit, Error> {
        let written = Written::of(&change);
        match self.store.commit(change).await? {
            Outcome::Committed { now, numbers, versions } => {
                self.follow_timeline();
                let committed = Committed::new(written, now, numbers, versions);
                self.durable.confirm(&committed);
                committed.remember(&self.cache);
                committed.count(&self.metrics.requests);
                self.announce(&committed, ring);
                Ok(Commit::Done)
            }
            Outcome::Conflict { .. } => {
                written.forget_guarded(&self.cache);
                Ok(Commit::Conflict)
            }
        }
    }

    /// Forgets everything that was remembered if the store's history is another one.
    pub(crate) fn follow_timeline(&self) {
        if self.cache.follow(self.store.timeline()) {
            self.durable.clear();
            tracing::warn!(
                "the store has another history, after a failover or a restore; everything is read again"
            );
        }
    }

    /// Makes sure that this version of an exchange is durable, before a client hears of it. Returns false if
    /// it has changed since.
    pub(crate) async fn confirm_unchanged(
        &self,
        tenant: &TenantId,
        key: &Key,
        version: u64,
    ) -> Result<bool, Error> {
        if self.durable.contains(tenant, key, version) {
            return Ok(true);
        }
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::Version(key.clone(), version));
        Ok(self.commit(change, None).await? == Commit::Done)
    }
}

pub(crate) fn mailbox_ring(tenant: &TenantId, mailbox: &Mailbox) -> Ring {
    Ring::Mailbox(MailboxKey { tenant: tenant.clone(), mailbox: mailbox.clone() })
}
