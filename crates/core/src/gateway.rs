//! The gateway: the two ports, chance, and the rules of time. Use cases are its methods.

use std::{ops::Deref, sync::Arc, time::Duration};

use countersign_wire::id::TenantId;

use crate::{
    Error,
    chance::Chance,
    confirmed::Confirmed,
    doorbell::{Doorbell, Ring},
    store::{Change, Guard, Key, MailboxKey, Outcome, Store},
};

/// For how long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Everything of an exchange, after its end; prompts and sessions likewise.
    pub after_end: Duration,
    /// The memory that an id was used, after the end.
    pub tombstone: Duration,
    /// What an `Idempotency-Key` was used for.
    pub idempotency: Duration,
    /// A large body whose commit never came.
    pub orphan: Duration,
}

const DAY: Duration = Duration::from_hours(24);

impl Default for Retention {
    fn default() -> Self {
        Self { after_end: 30 * DAY, tombstone: 90 * DAY, idempotency: DAY, orphan: DAY / 24 }
    }
}

/// Everything that a client can ask for. Cheap to clone, and no more than a pointer to keep.
#[derive(Clone)]
pub struct Gateway(Arc<Ports>);

/// What every use case rests on.
pub struct Ports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) doorbell: Arc<dyn Doorbell>,
    pub(crate) chance: Arc<dyn Chance>,
    pub(crate) retention: Retention,
    confirmed: Confirmed,
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

/// What a guarded change came to: done, or to be thought over because somebody else was first.
pub(crate) enum Attempt {
    Done,
    Lost,
}

impl Gateway {
    /// A gateway on these ports.
    pub fn new(
        store: Arc<dyn Store>,
        doorbell: Arc<dyn Doorbell>,
        chance: Arc<dyn Chance>,
        retention: Retention,
    ) -> Self {
        Self(Arc::new(Ports { store, doorbell, chance, retention, confirmed: Confirmed::default() }))
    }

    /// The store, for reads that have no meaning of their own.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Commits, and rings for what was put into mailboxes and for `moved`.
    pub(crate) async fn commit(&self, change: Change, moved: Option<Ring>) -> Result<Attempt, Error> {
        let tenant = change.tenant.clone();
        let mut rings: Vec<Ring> =
            change.deliveries.iter().map(|delivery| mailbox_ring(&tenant, &delivery.mailbox)).collect();
        rings.extend(moved);
        let confirmed = self.confirmed.by(&change);
        match self.store.commit(change).await? {
            Outcome::Committed { .. } => {
                self.confirmed.remember(confirmed);
                self.doorbell.ring(&rings);
                Ok(Attempt::Done)
            }
            Outcome::Lost { .. } => Ok(Attempt::Lost),
        }
    }

    /// Refuses with `error`, once what `change` guards, on which the refusal rests, is known to be durable. Returns if somebody
    /// has written since: then it is to be thought over.
    pub(crate) async fn refuse_resting_on(
        &self,
        change: Change,
        error: impl Into<Error>,
    ) -> Result<(), Error> {
        match self.commit(change, None).await? {
            Attempt::Done => Err(error.into()),
            Attempt::Lost => Ok(()),
        }
    }

    /// Makes sure that this version of an exchange is durable, before somebody is told what it says. Says whether it
    /// still stands.
    pub(crate) async fn confirm(&self, tenant: &TenantId, key: &Key, version: u64) -> Result<bool, Error> {
        if self.confirmed.knows(tenant, key, version) {
            return Ok(true);
        }
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::Version(key.clone(), version));
        Ok(matches!(self.commit(change, None).await?, Attempt::Done))
    }
}

pub(crate) fn mailbox_ring(tenant: &TenantId, mailbox: &crate::store::Mailbox) -> Ring {
    Ring::Mailbox(MailboxKey { tenant: tenant.clone(), mailbox: mailbox.clone() })
}
