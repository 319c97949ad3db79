//! What is checked in the end, and the report of `bench cluster`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    enforcers::Delivered,
    load::{Accepted, Errors, Expected},
};
use crate::{
    Failure,
    args::ClusterArgs,
    clients::{keep_alive::KeepAlive, messages},
    cpu::{Metered, to_f64},
    report,
    servers::gateway::Gateway,
    table::aligned,
};

/// What was found in the end, on a node other than those that wrote it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Checked {
    /// Accepted submissions without a status, or with one that they can't have.
    pub(crate) wrong_status: BTreeMap<String, u64>,
    /// Accepted decisions that did not arrive on the enforcer's WebSocket and that a wait returns.
    pub(crate) by_wait_only: u64,
    /// Accepted decisions that nobody returns.
    pub(crate) missing: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Accepted submissions and decisions that were found in the end, as a fraction.
    pub(crate) ratio: f64,
    #[serde(flatten)]
    pub(crate) args: ClusterArgs,
    pub(crate) submitted: u64,
    pub(crate) decided: u64,
    pub(crate) delivered: u64,
    /// Decisions that arrived again; delivery is at least once.
    pub(crate) delivered_again: u64,
    pub(crate) misdirected: u64,
    /// 503 with `Retry-After`, after which the request was sent again.
    pub(crate) retried: u64,
    /// Every other response that is no success, by kind; none is allowed.
    pub(crate) errors: BTreeMap<String, u64>,
    /// WebSockets that ended under load, by reason; none may.
    pub(crate) broken_websockets: BTreeMap<String, u64>,
    pub(crate) checked: Checked,
    #[serde(flatten)]
    pub(crate) metered: Metered,
}

#[derive(Deserialize)]
struct Status {
    body: StatusBody,
}

#[derive(Deserialize)]
struct StatusBody {
    state: String,
}

/// Reads everything that was accepted, each from the next node.
pub(super) async fn check(
    nodes: &[Gateway],
    accepted: &Accepted,
    delivered: &Delivered,
) -> Result<Checked, Failure> {
    let (mut checked, mut connections) = (Checked::default(), Vec::new());
    for node in nodes {
        connections.push(KeepAlive::open(node.address).await?);
    }
    let key = &nodes[0].enforcer_key;
    for (at, (request, expected)) in accepted.submitted.iter().enumerate() {
        let connection = &mut connections[at % nodes.len()];
        let response = connection.call(&messages::status(key, request)).await?;
        let state = serde_json::from_slice::<Status>(response.body).map(|status| status.body.state);
        let found = match (response.status, &state) {
            (200, Ok(state)) => state.as_str(),
            _ => "no status",
        };
        let is_right = match expected {
            Expected::Pending => found == "pendingApproval",
            Expected::Withdrawn => found == "withdrawn",
            Expected::Decided => found == "decided" || found == "delivered",
            Expected::Any => found != "no status",
        };
        if !is_right {
            let kind = format!("{expected:?}: {found}").to_lowercase();
            *checked.wrong_status.entry(kind).or_default() += 1;
        }
        if *expected == Expected::Decided && !delivered.times.contains_key(request) {
            match connection.call(&messages::wait(key, request)).await?.status {
                200 => checked.by_wait_only += 1,
                _ => checked.missing += 1,
            }
        }
    }
    Ok(checked)
}

impl Report {
    pub(super) fn new(
        args: &ClusterArgs,
        metered: Metered,
        accepted: &Accepted,
        errors: Errors,
        delivered: &Delivered,
        checked: Checked,
    ) -> Self {
        let (submitted, decided) = (accepted.submitted.len() as u64, accepted.decided.len() as u64);
        let not_found = checked.wrong_status.values().sum::<u64>() + checked.missing;
        Self {
            ratio: 1.0 - to_f64(not_found) / to_f64((submitted + decided).max(1)),
            args: args.clone(),
            submitted,
            decided,
            delivered: delivered.times.len() as u64,
            delivered_again: delivered.times.values().map(|times| times - 1).sum(),
            misdirected: delivered.misdirected,
            retried: errors.retried,
            errors: errors.by_kind,
            broken_websockets: delivered.broken.clone(),
            checked,
            metered,
        }
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let kinds = |kinds: &BTreeMap<String, u64>| match kinds.is_empty() {
            true => "none".to_owned(),
            false => {
                kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect::<Vec<_>>().join(", ")
            }
        };
        let rows = [
            ("submissions accepted", self.submitted.to_string()),
            ("decisions accepted", self.decided.to_string()),
            ("decisions on the enforcer's WebSocket", self.delivered.to_string()),
            ("of these more than once", self.delivered_again.to_string()),
            ("of these on another enforcer's", self.misdirected.to_string()),
            ("decisions that only a wait returned", self.checked.by_wait_only.to_string()),
            ("decisions that are nowhere", self.checked.missing.to_string()),
            ("submissions with a wrong status", kinds(&self.checked.wrong_status)),
            ("503 with Retry-After", self.retried.to_string()),
            ("other errors", kinds(&self.errors)),
            ("WebSockets that ended", kinds(&self.broken_websockets)),
        ]
        .map(|(name, value)| [name.to_owned(), value]);
        let mut lines = aligned(&rows, 1);
        let ClusterArgs { nodes, seconds, rate, .. } = &self.args;
        let cores = self.metered.cores.iter().map(|(name, cores)| format!("{name} {cores:.2}"));
        lines.push(format!(
            "\nfound {:.6} of what was accepted (goal: 1); {nodes} nodes, {seconds} s at {rate} exchanges a second; \
             processors: {}",
            self.ratio,
            cores.collect::<Vec<_>>().join(", ")
        ));
        lines.join("\n")
    }
}
