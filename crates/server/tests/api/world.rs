//! One gateway, and who calls it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::support::{
    client::{Answer, Client, Seen},
    messages::{approval, submission},
    process::{Gateway, On},
};

/// One gateway with one tenant that all cases share; each case uses ids of its own.
pub struct World {
    /// Whether requests go to several nodes in turn.
    pub is_cluster: bool,
    pub gateway: Gateway,
    pub seen: Seen,
    pub operator: Client,
    next: AtomicU32,
}

/// One enforcer and one approver of their own.
pub struct Pair {
    pub enforcer: Client,
    pub enforcer_id: String,
    pub approver: Client,
    pub approver_id: String,
    pub number: u32,
}

impl World {
    pub fn new(on: On) -> Self {
        let gateway = Gateway::start(on);
        let operator = Client::new(gateway.address, &gateway.key("acme", "operator", None));
        Self {
            is_cluster: on == On::Cluster,
            seen: operator.seen.clone(),
            gateway,
            operator,
            next: AtomicU32::new(1),
        }
    }

    /// A key for one enforcer or approver.
    pub async fn key(&self, role: &str, id: &str) -> String {
        let made =
            self.operator.post("/platform/v1/keys", json!({ "role": role, "id": id }).to_string()).await;
        made.expect(201).json()["key"].as_str().unwrap().to_owned()
    }

    /// A pair of clients that nobody else uses.
    pub async fn pair(&self) -> Pair {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (enforcer_id, approver_id) = (format!("robot-{number}"), format!("ada-{number}"));
        let enforcer = self.operator.with_key(&self.key("enforcer", &enforcer_id).await);
        let approver = self.operator.with_key(&self.key("approver", &approver_id).await);
        Pair { enforcer, enforcer_id, approver, approver_id, number }
    }

    /// The operator of a tenant of its own.
    pub fn tenant(&self) -> (String, Client) {
        let name = format!("tenant-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let operator = self.operator.with_key(&self.gateway.key(&name, "operator", None));
        (name, operator)
    }
}

impl Pair {
    /// An id that nobody else uses.
    pub fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.number)
    }

    pub fn submission(&self, id: &str) -> Value {
        submission(id, &self.enforcer_id, &self.approver_id)
    }

    pub async fn submit(&self, id: &str) -> Answer {
        self.enforcer.post("/v1/artifacts", self.submission(id).to_string()).await
    }

    pub async fn approve(&self, id: &str) -> Answer {
        self.approver.post("/v1/decisions", approval(id, &self.approver_id).to_string()).await
    }

    pub async fn withdraw(&self, id: &str) -> Answer {
        let body = crate::support::messages::withdrawal(id, &self.enforcer_id).to_string();
        self.enforcer.post(&format!("/v1/exchanges/{id}/withdraw"), body).await
    }

    pub async fn state(&self, id: &str) -> String {
        let answer = self.enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200);
        answer.body()["state"].as_str().unwrap().to_owned()
    }

    pub fn inbox(&self) -> String {
        format!("/v1/approvers/{}/inbox", self.approver_id)
    }
}
