//! What clients saw and were told, for the checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_core::model::channels::NodeId;
use countersign_testkit::gateway_suite::world::Request;
use countersign_wire::{
    exchange::{Accepted, ExchangeState},
    id::{EnforcerId, RequestId, TenantId},
};
use parking_lot::{Mutex, MutexGuard};

use super::nodes::NodeRun;

/// The state of an exchange as somebody was told it, asked for and answered at these times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed {
    pub(crate) asked_at: u64,
    pub(crate) answered_at: u64,
    pub(crate) state: ExchangeState,
}

/// What is known of one exchange.
#[derive(Debug)]
pub(crate) struct ExchangeFacts {
    pub(crate) request: Request,
    /// The first answer to its submission, and when it came.
    pub(crate) submitted: Option<(Accepted, u64)>,
    /// The decisions that were accepted.
    pub(crate) accepted: BTreeSet<String>,
    /// The decisions that anybody was sent or told.
    pub(crate) seen: BTreeSet<String>,
    pub(crate) observed: Vec<Observed>,
    /// Whether the enforcer got the decision.
    pub(crate) received: bool,
    /// When the enforcer's acknowledgement of the decision was first answered.
    pub(crate) acknowledged_at: Option<u64>,
    /// The approvers that got the request.
    pub(crate) requested: BTreeSet<String>,
}

/// One channel of an enforcer.
pub(crate) struct ChannelFacts {
    pub(crate) tenant: TenantId,
    pub(crate) enforcer: EnforcerId,
    pub(crate) run: Arc<NodeRun>,
    pub(crate) node: NodeId,
    /// Names it in the store.
    pub(crate) attempt: String,
    /// When it began to open, and when it was open.
    pub(crate) asked_at: u64,
    pub(crate) opened_at: u64,
    pub(crate) closed_at: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) exchanges: BTreeMap<(TenantId, RequestId), ExchangeFacts>,
    /// How often a decision was acted on, by its nonce.
    pub(crate) acts: BTreeMap<String, u64>,
    pub(crate) channels: Vec<ChannelFacts>,
}

/// What is known of a run so far.
#[derive(Default)]
pub(crate) struct Facts(Mutex<Known>);

impl Facts {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }

    /// Changes what is known of an exchange; does nothing if nobody ever wanted to submit it.
    pub(crate) fn update(&self, tenant: &TenantId, id: &RequestId, update: impl FnOnce(&mut ExchangeFacts)) {
        if let Some(exchange) = self.known().exchanges.get_mut(&(tenant.clone(), id.clone())) {
            update(exchange);
        }
    }

    pub(crate) fn observed(
        &self,
        tenant: &TenantId,
        id: &RequestId,
        (asked_at, answered_at): (u64, u64),
        state: ExchangeState,
    ) {
        let observed = Observed { asked_at, answered_at, state };
        self.update(tenant, id, |exchange| exchange.observed.push(observed));
    }
}

impl ExchangeFacts {
    /// Of a request that will be submitted.
    pub(crate) fn new(request: Request) -> Self {
        Self {
            request,
            submitted: None,
            accepted: BTreeSet::new(),
            seen: BTreeSet::new(),
            observed: Vec::new(),
            received: false,
            acknowledged_at: None,
            requested: BTreeSet::new(),
        }
    }
}
