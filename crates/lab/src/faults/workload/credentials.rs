//! API keys that are made, used, revoked and still used.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{
    super::history::{Call, Outcome, Transport},
    enforcer::Enforcer,
    listener::Listener,
    rest::{Rest, Sent},
};
use crate::clients::messages::Role;

/// How long a revoked key is still tried: longer than every bound.
const TRIED_FOR: Duration = Duration::from_secs(20);

/// Replaces the key of one enforcer again and again.
pub(super) struct KeyHolder {
    pub(super) operator: Rest,
    pub(super) enforcer: Enforcer,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewKey {
    key_id: String,
    key: String,
}

impl KeyHolder {
    pub(super) async fn run(mut self) {
        let world = Arc::clone(&self.operator.world);
        while !world.is_stopped() {
            let Some(made) = self.create().await else {
                world.stopped_within(Duration::from_millis(500)).await;
                continue;
            };
            let mut holder = self.enforcer.rest.with_key(&made.key);
            let rest = self.enforcer.rest.with_key(&made.key);
            let mut listener = Listener::new(rest, &self.enforcer.id, Role::Enforcer, Transport::Websocket);
            // The connection that is open when the key is revoked is kept until the gateway closes it.
            listener.kept = (60_000, 60_001);
            let listening = tokio::spawn(listener.run());
            let until = Instant::now() + self.operator.rng.millis(2_000, 4_000);
            self.work(&mut holder, until).await;
            if self.revoke(&made.key_id).await {
                self.work(&mut holder, Instant::now() + TRIED_FOR).await;
            }
            listening.abort();
            self.enforcer.forget();
        }
    }

    /// Uses the key, and has messages pushed to whoever listens with it.
    async fn work(&mut self, holder: &mut Rest, until: Instant) {
        let world = Arc::clone(&self.operator.world);
        while Instant::now() < until && !world.is_stopped() {
            holder.call(Call::Presence, &Sent::get("/v1/presence/enforcers")).await;
            if self.operator.rng.is_one_of(30) {
                self.enforcer.submit().await;
            }
            world.stopped_within(Duration::from_millis(700)).await;
        }
    }

    async fn create(&mut self) -> Option<NewKey> {
        let id = self.enforcer.id.clone();
        let body = json!({ "role": "enforcer", "id": id }).to_string();
        let reply = self.operator.call(Call::CreateKey { id }, &Sent::post("/platform/v1/keys", body)).await;
        serde_json::from_slice(&reply.body).ok().filter(|_| reply.outcome == Outcome::Ok)
    }

    async fn revoke(&mut self, key_id: &str) -> bool {
        let call = Call::RevokeKey { credential: key_id.to_owned() };
        let sent = Sent::delete(format!("/platform/v1/keys/{key_id}"));
        self.operator.call_until_known(&call, &sent).await.outcome == Outcome::Ok
    }
}
