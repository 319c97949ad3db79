//! What all clients share.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};

use super::{
    super::history::{Recorder, marked},
    expected::Notified,
    setup::{Setup, TenantKeys},
};
use crate::{
    clients::{messages::Role, stream::Endpoint},
    workload::scattered,
};

/// What all clients share.
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) recorder: Recorder,
    pub(super) http: reqwest::Client,
    stop: watch::Sender<bool>,
    known: Mutex<Known>,
    at_work: Arc<()>,
    pub(super) notified: Notified,
}

/// What exists at the gateways, as far as anybody here knows.
#[derive(Default)]
struct Known {
    requests: Vec<BTreeSet<String>>,
    /// Ids that one tenant alone uses, for probes of others.
    unique: Vec<Vec<String>>,
    readers: BTreeMap<(usize, String), Role>,
}

impl World {
    pub(super) fn new(setup: Setup, recorder: Recorder) -> Arc<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(1))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap_or_default();
        let tenants = setup.tenants.len();
        let known = Known {
            requests: vec![BTreeSet::new(); tenants],
            unique: vec![Vec::new(); tenants],
            ..Known::default()
        };
        let (stop, _) = watch::channel(false);
        let (known, at_work, notified) = (Mutex::new(known), Arc::default(), Notified::default());
        Arc::new(Self { setup, recorder, http, stop, known, at_work, notified })
    }

    pub(super) fn tenant(&self, tenant: usize) -> &TenantKeys {
        &self.setup.tenants[tenant]
    }

    /// An id or text with the tenant's marker.
    pub(super) fn marked(&self, tenant: usize, rest: &str) -> String {
        marked(&self.setup.tenants[tenant].tenant, rest)
    }

    /// The base URL of one node.
    pub(super) fn node(&self, rng: &mut Rng) -> String {
        self.setup.nodes[rng.below(self.setup.nodes.len())].clone()
    }

    /// Where a node is, by its base URL.
    pub(super) fn endpoint(&self, node: &str) -> Option<Endpoint> {
        let (_, address) = node.split_once("://")?;
        Some(Endpoint { address: address.parse().ok()?, tls: self.setup.tls.clone() })
    }

    /// A generator whose choices depend on the seed and the name of its user.
    pub(super) fn rng(&self, user: &str) -> Rng {
        let name = user.bytes().fold(0_u64, |hash, byte| scattered(hash ^ u64::from(byte)));
        Rng(self.setup.seed ^ name)
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Somebody who may still ask after the clients are stopped, until it is dropped.
    pub(super) fn at_work(&self) -> Arc<()> {
        Arc::clone(&self.at_work)
    }

    /// Whether nobody needs an answer any more.
    pub(super) fn needs_no_answers(&self) -> bool {
        self.is_stopped() && (!self.setup.is_steady || Arc::strong_count(&self.at_work) == 1)
    }

    /// Waits until the clients are stopped, or for this time; returns whether they are.
    pub(super) async fn stopped_within(&self, limit: Duration) -> bool {
        let mut stop = self.stop.subscribe();
        timeout(limit, stop.wait_for(|stop| *stop)).await.is_ok_and(|_| true)
    }

    /// There may be an exchange of this id.
    pub(super) fn learn(&self, tenant: usize, request: &str) {
        self.known.lock().requests[tenant].insert(request.to_owned());
    }

    /// The same; no other tenant uses the id.
    pub(super) fn learn_unique(&self, tenant: usize, request: &str) {
        self.learn(tenant, request);
        self.known.lock().unique[tenant].push(request.to_owned());
    }

    /// An exchange of another tenant.
    pub(super) fn of_another(&self, tenant: usize, rng: &mut Rng) -> Option<(usize, String)> {
        let other = (tenant + 1 + rng.below(self.setup.tenants.len().saturating_sub(1).max(1)))
            % self.setup.tenants.len();
        let known = self.known.lock();
        let ids = known.unique.get(other).filter(|ids| other != tenant && !ids.is_empty())?;
        Some((other, ids[rng.below(ids.len())].clone()))
    }

    /// Somebody to whom messages are pushed, whose mailbox has to be empty in the end.
    pub(super) fn learn_reader(&self, tenant: usize, id: &str, role: Role) {
        self.known.lock().readers.insert((tenant, id.to_owned()), role);
    }

    pub(super) fn readers(&self) -> Vec<(usize, String, Role)> {
        self.known.lock().readers.iter().map(|((tenant, id), role)| (*tenant, id.clone(), *role)).collect()
    }

    /// All exchanges, with their tenants.
    pub(super) fn requests(&self) -> Vec<(usize, String)> {
        let known = self.known.lock();
        let all = known.requests.iter().enumerate();
        all.flat_map(|(tenant, requests)| requests.iter().map(move |request| (tenant, request.clone())))
            .collect()
    }
}

/// A small generator, so that choices can be repeated.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scattered(self.0)
    }

    /// A number below the limit, which must not be 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or_default()
    }

    /// Whether one of a hundred of these happens, `percent` times out of a hundred.
    pub(super) fn is_one_of(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A duration from one to the other number of milliseconds.
    pub(super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.next() % (to - from).max(1))
    }
}

/// The id of an API key, which is not secret.
pub(super) fn key_id(key: &str) -> String {
    key.split('_').nth(2).unwrap_or_default().to_owned()
}
