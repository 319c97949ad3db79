//! Bare calls over REST, each of them in the history.

use std::{sync::Arc, time::Duration};

use reqwest::Method;

use super::{
    super::history::{Answer, Call, Caller, Outcome},
    answers,
    world::{Rng, World, key_id},
};

/// An answer that takes longer is not waited for, apart from a wait.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One client with its credential.
#[derive(Clone)]
pub(super) struct Rest {
    pub(super) world: Arc<World>,
    pub(super) rng: Rng,
    pub(super) tenant: usize,
    client: String,
    key: String,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) outcome: Outcome,
    pub(super) answer: Answer,
    pub(super) body: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Sent {
    method: Method,
    path: String,
    body: Option<String>,
    held_for: Duration,
}

impl Sent {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, held_for: Duration::ZERO }
    }

    pub(super) fn post(path: impl Into<String>, body: String) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    pub(super) fn put(path: impl Into<String>, body: String) -> Self {
        Self { method: Method::PUT, ..Self::post(path, body) }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    /// The gateway may hold it for this long.
    pub(super) fn held_for(self, held_for: Duration) -> Self {
        Self { held_for, ..self }
    }
}

impl Reply {
    fn none(outcome: Outcome, reason: String) -> Self {
        Self { outcome, answer: Answer::none(reason), body: Vec::new() }
    }
}

impl Rest {
    pub(super) fn new(world: &Arc<World>, tenant: usize, client: &str, key: &str) -> Self {
        let (rng, world) = (world.rng(client), Arc::clone(world));
        Self { world, rng, tenant, client: client.to_owned(), key: key.to_owned() }
    }

    /// The same client with another credential.
    pub(super) fn with_key(&self, key: &str) -> Self {
        Self::new(&self.world, self.tenant, &self.client, key)
    }

    pub(super) fn caller(&self, node: String) -> Caller {
        let tenant = self.world.tenant(self.tenant).tenant.clone();
        Caller { client: self.client.clone(), tenant, node, credential: key_id(&self.key) }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Calls one of the nodes, once.
    pub(super) async fn call(&mut self, call: Call, sent: &Sent) -> Reply {
        let node = self.world.node(&mut self.rng);
        self.call_on(node, call, sent).await
    }

    /// Calls until it is known what happened, five times at most, with the same ids.
    pub(super) async fn call_until_known(&mut self, call: &Call, sent: &Sent) -> Reply {
        for _ in 0..4 {
            let reply = self.call(call.clone(), sent).await;
            if reply.outcome == Outcome::Ok || (400..500).contains(&reply.answer.status) {
                return reply;
            }
            let pause = self.rng.millis(100, 600);
            if self.world.stopped_within(pause).await {
                return reply;
            }
        }
        self.call(call.clone(), sent).await
    }

    pub(super) async fn call_on(&self, node: String, call: Call, sent: &Sent) -> Reply {
        let open = self.world.recorder.invoke(&self.caller(node.clone()), call.clone());
        let reply = self.send(&node, &call, sent).await;
        match reply.outcome {
            Outcome::Ok => open.ok(reply.answer.clone()),
            Outcome::Fail => open.fail(reply.answer.clone()),
            Outcome::Unknown => open.unknown(reply.answer.clone()),
        }
        reply
    }

    async fn send(&self, node: &str, call: &Call, sent: &Sent) -> Reply {
        let response = match self.response(node, sent).await {
            Ok(response) => response,
            // Nothing was sent without a connection.
            Err(error) if error.is_connect() => return Reply::none(Outcome::Fail, error.to_string()),
            Err(error) => return Reply::none(Outcome::Unknown, error.to_string()),
        };
        let status = response.status().as_u16();
        let state = response.headers().get("proto-exchange-state");
        let state = state.and_then(|state| state.to_str().ok()).map(str::to_owned);
        let body = match response.bytes().await {
            Ok(body) => body.to_vec(),
            Err(error) => return Reply::none(Outcome::Unknown, error.to_string()),
        };
        let outcome = match status {
            200..300 => Outcome::Ok,
            400..500 => Outcome::Fail,
            _ => Outcome::Unknown,
        };
        Reply { outcome, answer: answers::read(call, status, state.as_deref(), &body), body }
    }

    async fn response(&self, node: &str, sent: &Sent) -> reqwest::Result<reqwest::Response> {
        let url = format!("{node}{}", sent.path);
        let mut request = self.world.http.request(sent.method.clone(), url).bearer_auth(&self.key);
        request = request.timeout(TIMEOUT + sent.held_for);
        if let Some(body) = &sent.body {
            request = request.header("content-type", "application/json").body(body.clone());
        }
        request.send().await
    }

    /// Reads all pages of an approver's inbox on one node, as one operation.
    pub(super) async fn walk(&mut self, approver: &str) {
        let node = self.world.node(&mut self.rng);
        let call = Call::Inbox { approver: approver.to_owned() };
        let open = self.world.recorder.invoke(&self.caller(node.clone()), call.clone());
        let (mut cursor, mut whole) = (None::<String>, Answer { status: 200, ..Answer::default() });
        loop {
            let more = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let path = format!("/v1/approvers/{approver}/inbox?limit=7{more}");
            let reply = self.send(&node, &call, &Sent::get(path)).await;
            let page = (reply.outcome == Outcome::Ok).then(|| answers::page(&reply.body)).flatten();
            let Some((mut items, next)) = page else {
                return open.unknown(reply.answer);
            };
            whole.tenants.extend(reply.answer.tenants);
            whole.messages.append(&mut items);
            cursor = next;
            if cursor.is_none() {
                return open.ok(whole);
            }
        }
    }
}
