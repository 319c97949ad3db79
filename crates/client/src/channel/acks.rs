//! Acknowledgements: sent beside everything else, so that nothing waits for them. One that is lost is made up for when
//! the message comes again.

use std::{sync::Arc, time::Duration};

use countersign_wire::{id::MsgId, msg_type::MsgType};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use super::{memory::Memory, message::Pushed};
use crate::{
    clock::Clock,
    gateway::http::{Call, Http},
    identity::profile::Party,
};

/// How many acknowledgements may wait. What does not fit is dropped.
const QUEUE: usize = 256;

/// How long one is tried.
const CALL_TIME: Duration = Duration::from_secs(20);

/// Sends acknowledgements of one party.
#[derive(Clone)]
pub(super) struct Acks {
    party: Party,
    clock: Arc<dyn Clock>,
    memory: Arc<Memory>,
    queue: mpsc::Sender<Call>,
}

impl Acks {
    /// Sends from now on, until this and its clones are dropped and the queue is empty.
    pub(super) fn start(http: Http, party: Party, clock: Arc<dyn Clock>, memory: Arc<Memory>) -> Self {
        let (queue, mut calls) = mpsc::channel::<Call>(QUEUE);
        tokio::spawn(async move {
            while let Some(call) = calls.recv().await {
                if let Err(error) = http.send_until(&call, Instant::now() + CALL_TIME).await {
                    tracing::debug!(%error, "a message was not acknowledged");
                }
            }
        });
        Self { party, clock, memory, queue }
    }

    /// Acknowledges a message, and remembers with what.
    pub(super) fn acknowledge(&self, pushed: &Pushed, status: &'static str) {
        self.memory.acknowledge(&pushed.msg_id, status);
        let mut body = json!({ "status": status });
        if let Some(msg_id) = pushed.given_id() {
            body["msgId"] = json!(msg_id);
        }
        let sender = match &self.party {
            Party::Enforcer(id) => json!({ "enforcerId": id }),
            Party::Approver(id) => json!({ "approverId": id }),
        };
        let envelope = json!({
            "msgType": MsgType::AckSubmit, "requestId": pushed.request_id, "createdAt": self.clock.now(),
            "sender": sender, "body": body,
        });
        self.send(Call::post("/v1/acks", envelope.to_string()));
    }

    /// Sends another answer in the same way.
    pub(super) fn send(&self, call: Call) {
        if self.queue.try_send(call).is_err() {
            tracing::debug!("an acknowledgement was dropped; the message will come again");
        }
    }

    /// Forgets a message, so that it is handed out when it comes again.
    pub(super) fn forget(&self, msg_id: &MsgId) {
        self.memory.forget(msg_id);
    }
}
