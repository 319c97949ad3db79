//! What an approver is shown, live.

use std::time::Duration;

use countersign_wire::{
    exchange::ExchangeState,
    hash::Sha256Hex,
    id::RequestId,
    msg_type::MsgType,
    prompt::{AckStatus, PromptAck},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    handle::Channel,
    message::{ChannelError, Event, Pushed, Settings, Transport},
};
use crate::{
    ends::approver::{Approver, InboxItem},
    exchange::request::{OpenError, OpenedRequest},
    gateway::{
        http::{Call, CallError, segment},
        trouble::Trouble,
    },
    identity::profile::{Party, Pins},
};

/// How long one call is retried.
const CALL_TIME: Duration = Duration::from_secs(30);

/// What an approver is shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApproverEvent {
    /// Requests arrive over this transport from now on.
    Connected {
        /// A WebSocket carries everything; the others carry requests only.
        transport: Transport,
    },
    /// No requests arrive at the moment.
    Disconnected {
        /// Why, in our own words.
        reason: Trouble,
    },
    /// A request, each once: opened and checked, or the reason why it can't be decided here.
    Request(Box<InboxItem>),
    /// A request that was shown needs no decision any more: it was decided, perhaps on another device, or taken back, or
    /// has expired. It is the gateway's word; a decision that is sent anyway is refused.
    Gone {
        /// The id of the exchange.
        request_id: RequestId,
        /// How it has ended; `None` where the gateway does not say.
        state: Option<ExchangeState>,
    },
    /// What became of a prompt, by the gateway's word.
    PromptAck {
        /// The id of the prompt.
        request_id: RequestId,
        /// The hash of the prompt that is meant.
        prompt_hash: Sha256Hex,
        /// What the enforcer is said to have done with it.
        status: AckStatus,
    },
    /// A message about an agent's session, not opened.
    Session(Pushed),
}

/// What waits for an approver, live. See [`Approver::listen`].
pub struct ApproverListener<'a> {
    approver: &'a Approver,
    channel: Channel,
}

impl Approver {
    /// Listens for requests and news. Everything that waits comes first, then what is new. All devices of one approver see
    /// all requests, whichever of them has acknowledged one.
    pub fn listen(&self, settings: Settings) -> ApproverListener<'_> {
        let party = Party::Approver(self.id.clone());
        let channel = Channel::open(self.http.clone(), party, self.clock.clone(), settings);
        ApproverListener { approver: self, channel }
    }

    /// Asks the enforcer of an exchange to submit it again, for example because it has expired. The reason is not sealed:
    /// the gateway can read it.
    pub async fn refresh(&self, request_id: &RequestId, reason: Option<&str>) -> Result<(), CallError> {
        let mut body = json!({});
        if let Some(reason) = reason {
            body["reason"] = reason.into();
        }
        let envelope = json!({
            "msgType": MsgType::RefreshRequest, "requestId": request_id, "createdAt": self.clock.now(),
            "sender": { "approverId": self.id }, "body": body,
        });
        let path = format!("/v1/exchanges/{}/refresh", segment(request_id.as_str()));
        self.http.send_until(&Call::post(path, envelope.to_string()), Instant::now() + CALL_TIME).await?;
        Ok(())
    }
}

impl ApproverListener<'_> {
    /// The next event. `pins` are those of now: a request is checked when it is handed out. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self, pins: &Pins) -> Result<ApproverEvent, ChannelError> {
        loop {
            let event = self.channel.next().await?;
            if let Some(event) = self.take(event, pins) {
                return Ok(event);
            }
        }
    }

    /// What is shown of an event, which is acknowledged; `None` if there is nothing to show. No waiting, so that an event
    /// that was received is also handed out.
    fn take(&self, event: Event, pins: &Pins) -> Option<ApproverEvent> {
        if let Event::Request(pushed)
        | Event::Withdrawn(pushed)
        | Event::PromptAck(pushed)
        | Event::Session(pushed) = &event
        {
            self.channel.acknowledge(pushed, "received");
        }
        match event {
            Event::Connected { transport } => Some(ApproverEvent::Connected { transport }),
            Event::Disconnected { reason } => Some(ApproverEvent::Disconnected { reason }),
            Event::Request(pushed) => {
                let opened = pushed.envelope().ok_or(OpenError::Malformed).and_then(|envelope| {
                    let Approver { id, keys, clock, .. } = self.approver;
                    OpenedRequest::open(&envelope, id.as_str(), keys, pins, clock.now())
                });
                Some(ApproverEvent::Request(Box::new(InboxItem { request_id: pushed.request_id, opened })))
            }
            Event::Withdrawn(pushed) => {
                let state = Some(ExchangeState::Withdrawn);
                Some(ApproverEvent::Gone { request_id: pushed.request_id, state })
            }
            Event::Status(pushed) => {
                let state = Some(pushed.ended()?);
                Some(ApproverEvent::Gone { request_id: pushed.request_id, state })
            }
            Event::Gone { request_id, state } => Some(ApproverEvent::Gone { request_id, state }),
            Event::PromptAck(pushed) => {
                let envelope = pushed.envelope()?;
                let ack = envelope.body.view::<PromptAck<'_>>().ok()?.into_view();
                let PromptAck { request_id, prompt_hash, status, .. } = ack;
                Some(ApproverEvent::PromptAck { request_id, prompt_hash, status })
            }
            Event::Session(pushed) => Some(ApproverEvent::Session(pushed)),
            Event::Decision(_) | Event::Refresh(_) | Event::Prompt(_) => None,
        }
    }
}
