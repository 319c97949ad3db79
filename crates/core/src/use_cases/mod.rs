//! What a client can ask for, one file each, as methods of [`crate::Gateway`].

pub mod acknowledge;
pub mod cancel;
pub mod channels;
pub mod credentials;
pub mod decide;
pub mod hide;
pub mod idempotency;
pub mod inbox;
pub mod pairing;
pub mod policies;
pub mod presence;
pub mod prompt;
pub mod refresh;
pub mod session;
pub mod status;
pub mod submit;
pub mod tickets;
pub mod wait;
pub mod withdraw;

use countersign_wire::{
    id::{ApproverId, EnforcerId, RequestId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    Error, Gateway,
    edges::{self, Named},
    exchange::{Exchange, Refusal},
    store::{Key, Mailbox, Record},
    stored::{Stored as _, Versioned},
};

/// Who looks at an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer<'a> {
    /// An enforcer sees its own.
    Enforcer(&'a EnforcerId),
    /// An approver sees what lies in their mailbox, and what is for nobody in particular.
    Approver(&'a ApproverId),
    /// A credential for every enforcer of the tenant sees all of it.
    AnyEnforcer,
    /// So does one for every approver.
    AnyApprover,
    /// The operator sees all of the tenant.
    Operator,
}

impl Viewer<'_> {
    fn sees(self, exchange: &Exchange) -> bool {
        match self {
            Self::Enforcer(enforcer) => exchange.enforcer == *enforcer,
            Self::Approver(approver) => exchange.mailboxes.iter().any(|mailbox| match mailbox {
                Mailbox::Approver(addressed) => addressed == approver,
                Mailbox::Shared => true,
                _ => false,
            }),
            Self::AnyEnforcer | Self::AnyApprover | Self::Operator => true,
        }
    }
}

/// An exchange as it was loaded together with other records.
struct Looked {
    exchange: Option<Versioned<Exchange>>,
    others: Vec<Option<Record>>,
    now: Timestamp,
}

impl Gateway {
    /// Loads an exchange, if there is one and `viewer` may see it, and `others` with it.
    async fn look(&self, named: &Named<'_>, viewer: Viewer<'_>, others: &[Key]) -> Result<Looked, Error> {
        let keys: Vec<Key> = std::iter::once(named.key()).chain(others.iter().cloned()).collect();
        let loaded = self.store.load(named.tenant, &keys).await?;
        let mut records = loaded.records.into_iter();
        let exchange = Exchange::read(records.next().flatten().as_ref())?;
        let exchange = exchange.filter(|exchange| viewer.sees(&exchange.value));
        Ok(Looked { exchange, others: records.collect(), now: loaded.now })
    }

    /// As [`Gateway::look`], for whoever is about to write: an exchange whose time is up is written as
    /// expired before anybody is told so.
    async fn look_to_write(
        &self,
        named: &Named<'_>,
        viewer: Viewer<'_>,
        others: &[Key],
    ) -> Result<Looked, Error> {
        loop {
            let looked = self.look(named, viewer, others).await?;
            match &looked.exchange {
                Some(known) if known.value.has_lapsed(looked.now) => {
                    let change = edges::expire(named, known, &self.retention)?;
                    self.commit(change, Some(named.ring())).await?;
                }
                _ => return Ok(looked),
            }
        }
    }

    /// Refuses, once the record that the refusal rests on is known to be durable.
    async fn refuse<T>(
        &self,
        named: &Named<'_>,
        known: Option<&Versioned<Exchange>>,
        refusal: Refusal,
    ) -> Result<T, Error> {
        if let Some(known) = known {
            // If somebody has written since, what they wrote does not undo a refusal: states only go forward.
            self.still_stands(named, known).await?;
        }
        Err(refusal.into())
    }

    /// Confirms that what an answer rests on is durable. Says whether it still stands.
    async fn still_stands(&self, named: &Named<'_>, known: &Versioned<Exchange>) -> Result<bool, Error> {
        self.still_stands_with(named, known, crate::store::Change::new(named.tenant.clone())).await
    }

    /// As [`Gateway::still_stands`], and commits `change` with it.
    async fn still_stands_with(
        &self,
        named: &Named<'_>,
        known: &Versioned<Exchange>,
        mut change: crate::store::Change,
    ) -> Result<bool, Error> {
        change.guards.push(crate::stored::unchanged(named.key(), Some(known)));
        Ok(matches!(self.commit(change, None).await?, crate::gateway::Attempt::Done))
    }
}

fn named<'a>(tenant: &'a TenantId, request_id: &'a RequestId) -> Named<'a> {
    Named { tenant, request_id }
}
