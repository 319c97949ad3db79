//! One enforcer and one approver, which have one exchange after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    Failure,
    clients::{
        keep_alive::KeepAlive,
        messages::{self, Role},
        template::{Submission, scattered_id},
        websocket::WebSocket,
    },
    servers::gateway::Gateway,
};

/// The connections of both.
pub(super) struct Caller {
    submission: Submission,
    approver_key: String,
    http: KeepAlive,
    enforcer: WebSocket,
    approver: WebSocket,
}

impl Caller {
    pub(super) async fn open(gateway: &Gateway, number: u64, bytes: usize) -> Result<Self, Failure> {
        let Gateway { address, enforcer_key, approver_key, .. } = gateway;
        let (enforcer, approver) = (messages::enforcer(number), messages::approver(number));
        Ok(Self {
            submission: Submission::new(enforcer_key, &enforcer, &approver, bytes),
            approver_key: approver_key.clone(),
            http: KeepAlive::open(*address).await?,
            enforcer: open(gateway, Role::Enforcer, &enforcer).await?,
            approver: open(gateway, Role::Approver, &approver).await?,
        })
    }

    /// From submission to the answer to the acknowledgement.
    pub(super) async fn exchange(&mut self, next: &AtomicU64) -> Result<(), Failure> {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let request = scattered_id(number);
        self.http.call_successfully(self.submission.with_number(number)).await?;
        self.approver.next_with(["approval.request", &request]).await?;
        let decision = messages::decision_of(&self.approver_key, &request);
        self.http.call_successfully(&decision).await?;
        let delivered = self.enforcer.next_with(["decision.deliver", &request]).await?;
        let acknowledgement = messages::acknowledgement(&request, delivered)?;
        self.enforcer.send(&acknowledgement).await?;
        self.enforcer.next_with(["ack.accepted", &request]).await?;
        Ok(())
    }
}

async fn open(gateway: &Gateway, role: Role, id: &str) -> Result<WebSocket, Failure> {
    let key = match role {
        Role::Enforcer => &gateway.enforcer_key,
        Role::Approver => &gateway.approver_key,
    };
    Ok(WebSocket::open(gateway.address, &messages::open_websocket(key, role, id)).await?)
}
