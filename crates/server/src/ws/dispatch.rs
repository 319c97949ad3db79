//! What is done with one message from the client, and the answer to it, as over REST.

use countersign_core::{delivery::message::Party, use_cases::presence::SelfDescription};
use countersign_wire::{
    RawObject,
    envelope::Envelope,
    failure::Failure,
    framed::Framed,
    id::RequestId,
    limits,
    msg_type::MsgType,
    presence::{Capabilities, Hello, Transport},
    refresh::{RefreshBody, RefreshRequest, RefreshType},
};

use crate::{
    auth::Caller,
    clock,
    delivery::Subscriber,
    error::{ApiError, ForRequest as _},
    ids::new_msg_id,
    protocol::operations::{self, Answer},
    state::AppState,
};

/// Who sends the message.
pub(super) struct Dispatch<'a> {
    pub(super) app: &'a AppState,
    pub(super) caller: &'a Caller,
    pub(super) subscriber: &'a Subscriber,
}

/// An envelope has a body; a control object has none.
fn is_envelope(object: RawObject<'_>) -> bool {
    object.members().is_ok_and(|members| members.contains("body"))
}

impl Dispatch<'_> {
    /// The answer to one frame.
    pub(super) async fn answer(&self, bytes: &[u8]) -> Result<Answer, ApiError> {
        // Before anything is parsed: parsing is what a flood of frames would cost.
        let live = self.app.live.current();
        live.rates.admit(&self.caller.tenant, &self.caller.principal)?;
        live.rates.admit_bytes(&self.caller.tenant, bytes.len())?;
        let object = RawObject::parse(bytes).map_err(|fault| ApiError::invalid(&fault))?;
        let mut members = object.members().map_err(|fault| ApiError::invalid(&fault))?;
        // Whatever is wrong with the frame, the error names its request.
        let request_id: Option<RequestId> = members.optional("requestId").ok().flatten();
        let msg_type = members.optional("msgType").map_err(|fault| ApiError::invalid(&fault));
        let answered = async { self.answer_object(object, bytes.len(), msg_type?).await };
        answered.await.map_err(|error| error.or_for_request(request_id))
    }

    async fn answer_object(
        &self,
        object: RawObject<'_>,
        size: usize,
        msg_type: Option<MsgType>,
    ) -> Result<Answer, ApiError> {
        let limit = msg_type.as_ref().map_or(limits::MAX_OTHER_BODY, MsgType::max_bytes);
        if size > limit {
            return Err(ApiError::too_large("message", limit));
        }
        if msg_type == Some(MsgType::Hello) {
            let hello = object.view::<Hello>().map_err(|fault| ApiError::invalid(&fault))?.into_view();
            let wants_status = hello.capabilities.as_ref().is_some_and(Capabilities::wants_status);
            self.hello(hello)?;
            return Ok(Answer { wants_status: Some(wants_status), ..Answer::default() });
        }
        // The specification makes it a bare control object, in both directions; an envelope is accepted too.
        if msg_type == Some(MsgType::RefreshRequest) && !is_envelope(object) {
            return self.refresh(object).await;
        }
        let envelope = object.view::<Envelope<'_>>().map_err(|fault| ApiError::invalid(&fault))?.into_view();
        let mut framed = Framed::from(envelope);
        self.check_sender(&mut framed)?;
        operations::answer(self.app, self.caller, framed).await
    }

    /// A bare `refresh.request`, answered in kind.
    async fn refresh(&self, object: RawObject<'_>) -> Result<Answer, ApiError> {
        let invalid = |fault| ApiError::invalid(&fault);
        let mut members = object.members().map_err(invalid)?;
        let request_id: RequestId = members.required("requestId").map_err(invalid)?;
        let body = RefreshBody { reason: members.optional("reason").map_err(invalid)? };
        let caller = self.caller.approver()?;
        let Party::Approver(approver) = &self.subscriber.party else { return Err(Failure::Forbidden.into()) };
        self.app
            .gateway
            .refresh(&caller.tenant, approver, &request_id, &body)
            .await
            .for_request(&request_id)?;
        let answer = RefreshRequest {
            msg_type: RefreshType::RefreshRequest,
            msg_id: new_msg_id(),
            request_id,
            created_at: clock::now(),
            reason: body.reason,
        };
        Ok(serde_json::to_vec(&answer).map_err(|error| ApiError::internal(&error))?.into())
    }

    /// On a WebSocket the sender is known; a message that names another is rejected. That it does not name the other
    /// side as well is checked by the operation.
    fn check_sender(&self, framed: &mut Framed<'_>) -> Result<(), ApiError> {
        let sender = &mut framed.sender;
        let matches = match &self.subscriber.party {
            Party::Enforcer(enforcer) => {
                sender.enforcer_id.get_or_insert_with(|| enforcer.clone()) == enforcer
            }
            Party::Approver(approver) => {
                sender.approver_id.get_or_insert_with(|| approver.clone()) == approver
            }
        };
        if matches { Ok(()) } else { Err(Failure::Forbidden.into()) }
    }

    fn hello(&self, hello: Hello) -> Result<(), ApiError> {
        let limit = limits::MAX_CAPABILITIES;
        if hello.capabilities.as_ref().is_some_and(|capabilities| capabilities.size() > limit) {
            return Err(ApiError::too_large("capabilities", limit));
        }
        if let Party::Enforcer(enforcer) = &self.subscriber.party {
            let description = SelfDescription {
                workspace_name: hello.workspace_name,
                enforcer_label: hello.enforcer_label,
                capabilities: hello.capabilities,
            };
            let tenant = &self.subscriber.tenant;
            self.app.presence.described(tenant, enforcer, Transport::Websocket, description);
        }
        Ok(())
    }
}
