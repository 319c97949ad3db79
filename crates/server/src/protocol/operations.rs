//! What clients do, however it arrives: an envelope over REST or a WebSocket, or a bare object. The steps that they share
//! are in [`super::steps`].

use countersign_core::{
    Error,
    metrics::Step,
    model::{credential::Role, idempotency::IdempotencyKey},
    use_cases::{
        acknowledge::Acknowledger,
        decide::DecisionSubmission,
        prompt::PromptSubmission,
        session::Reported,
        submit::{Submission, Submitted},
    },
};
use countersign_wire::{
    RawObject,
    ack::{AckAccepted, AckSubmit},
    artifact::ArtifactSubmit,
    decision::Decision,
    exchange::Accepted,
    failure::Failure,
    framed::Framed,
    id::{RequestId, SessionId},
    msg_type::MsgType,
    prompt::{AckStatus, PromptAck, PromptSubmit},
    refresh::RefreshBody,
    session::SessionEvent,
};

use super::steps::{Operation, missing, perform};
use crate::{
    auth::{Approver, Caller, Enforcer},
    error::{ApiError, ForRequest as _},
    state::AppState,
};

/// The answer to a message.
#[derive(Default)]
pub(crate) struct Answer {
    /// The envelope to send; `None` for a control message.
    pub(crate) envelope: Option<Vec<u8>>,
    /// What the message acknowledged, which need not be sent again.
    pub(crate) acknowledged: Option<AckAccepted>,
    /// Whether the client wants to hear of requests that end; `None` if the message did not say.
    pub(crate) wants_status: Option<bool>,
}

impl From<Vec<u8>> for Answer {
    fn from(envelope: Vec<u8>) -> Self {
        Self { envelope: Some(envelope), ..Self::default() }
    }
}

// CONTRIBUTING: add a message type, step 4
/// Does what an envelope asks for by its type. A new type must say here what is done, or it does not compile.
pub(crate) async fn answer(app: &AppState, caller: &Caller, framed: Framed<'_>) -> Result<Answer, ApiError> {
    let request_id = framed.request_id.clone().ok_or(Failure::Validation)?;
    let answer = match framed.msg_type.clone().ok_or(Failure::Validation)? {
        MsgType::ArtifactSubmit => {
            let accepted = submit(app, &caller.enforcer()?, framed, None).await?.accepted;
            app.envelope(MsgType::ArtifactAccepted, &request_id, accepted)?
        }
        MsgType::DecisionSubmit => {
            let accepted = decide(app, &caller.approver()?, framed, None).await?.accepted;
            app.envelope(MsgType::DecisionAccepted, &request_id, accepted)?
        }
        MsgType::AckSubmit | MsgType::PromptAck => {
            let accepted = acknowledge(app, caller, &framed).await?;
            let envelope = app.envelope(MsgType::AckAccepted, &request_id, &accepted)?;
            return Ok(Answer { acknowledged: Some(accepted), ..envelope.into() });
        }
        MsgType::ExchangeWithdrawn => {
            let accepted = withdraw(app, &caller.enforcer()?, &request_id, &framed).await?;
            app.envelope(MsgType::ExchangeWithdrawn, &request_id, accepted)?
        }
        MsgType::RefreshRequest => {
            let body = refresh(app, &caller.approver()?, &request_id, &framed).await?;
            app.envelope(MsgType::RefreshRequest, &request_id, body)?
        }
        MsgType::PromptSend => {
            let ack = send_prompt(app, &caller.approver()?, framed, None).await?.ack;
            app.envelope(MsgType::PromptAck, &request_id, ack)?
        }
        MsgType::SessionStart | MsgType::SessionSnapshot | MsgType::SessionStatus | MsgType::SessionEnd => {
            report(app, &caller.enforcer()?, &framed).await?;
            let accepted = AckAccepted { request_id: request_id.clone(), msg_id: None };
            app.envelope(MsgType::AckAccepted, &request_id, accepted)?
        }
        // Only the gateway sends these, or nobody.
        MsgType::ArtifactAccepted
        | MsgType::ApprovalRequest
        | MsgType::DecisionAccepted
        | MsgType::DecisionDeliver
        | MsgType::ExchangeStatus
        | MsgType::InboxPage
        | MsgType::AckAccepted
        | MsgType::Error
        | MsgType::Hello
        | MsgType::Other(_) => {
            return Err(ApiError::from(Failure::Unsupported).for_request(&request_id));
        }
    };
    Ok(answer.into())
}

// CONTRIBUTING: add an endpoint, step 3
/// An enforcer submits an artifact.
pub(crate) async fn submit(
    app: &AppState,
    caller: &Enforcer,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<Submitted, ApiError> {
    let operation = Operation::new(app, &framed).expecting(&[MsgType::ArtifactSubmit])?;
    let body = framed.body.view::<ArtifactSubmit<'_>>();
    let body = body.map_err(|fault| ApiError::from(Error::in_hashed_body(fault)));
    let request_id = operation.request_id(&body, |body| request_id_in_body(framed.body, body))?;
    operation.fits(&caller.tenant, &request_id).await?;
    let submit = |enforcer, body| {
        app.gateway.submit(Submission {
            tenant: caller.tenant.clone(),
            enforcer,
            request_id: request_id.clone(),
            body,
            expires_at: framed.expires_at,
            recipient: framed.recipient.approver_id.clone(),
            trace: framed.trace,
            idempotency_key,
        })
    };
    let enforcer = operation.enforcer(caller, &request_id);
    let submitted = perform(&request_id, body, enforcer, submit).await?;
    if !submitted.replayed {
        operation.took(Step::Submit);
    }
    Ok(submitted)
}

/// A bare artifact names its own request; a sealed one may.
fn request_id_in_body(body: RawObject<'_>, view: &ArtifactSubmit<'_>) -> Result<RequestId, ApiError> {
    match view {
        ArtifactSubmit::Open(artifact) | ArtifactSubmit::SealedInPlace(artifact) => {
            Ok(artifact.request_id.clone())
        }
        ArtifactSubmit::Sealed(_) => body
            .members()
            .and_then(|mut members| members.required("requestId"))
            .map_err(|fault| ApiError::with_fault(Failure::Structure, &fault)),
    }
}

/// An approver submits a decision.
pub(crate) async fn decide(
    app: &AppState,
    caller: &Approver,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<Submitted, ApiError> {
    let operation = Operation::new(app, &framed).expecting(&[MsgType::DecisionSubmit])?;
    let decision = operation.body::<Decision<'_>>();
    let request_id = operation.request_id(&decision, |decision| Ok(decision.request_id.clone()))?;
    let decision = decision.and_then(|decision| operation.measured(decision));
    let decide = |approver, decision| {
        let (tenant, request_id) = (caller.tenant.clone(), request_id.clone());
        let credential = Some(caller.principal.clone());
        app.gateway.decide(DecisionSubmission {
            tenant,
            approver,
            request_id,
            decision,
            idempotency_key,
            credential,
        })
    };
    let approver = operation.approver(caller, &request_id);
    let submitted = perform(&request_id, decision, approver, decide).await?;
    if !submitted.replayed {
        operation.took(Step::Decide);
    }
    Ok(submitted)
}

/// An enforcer withdraws its request.
pub(crate) async fn withdraw(
    app: &AppState,
    caller: &Enforcer,
    request_id: &RequestId,
    framed: &Framed<'_>,
) -> Result<Accepted, ApiError> {
    let operation = Operation::new(app, framed).about(request_id)?;
    let withdraw =
        |enforcer, ()| async move { app.gateway.withdraw(&caller.tenant, &enforcer, request_id).await };
    perform(request_id, operation.measured(()), operation.enforcer(caller, request_id), withdraw).await
}

/// An approver asks for a new submission.
pub(crate) async fn refresh(
    app: &AppState,
    caller: &Approver,
    request_id: &RequestId,
    framed: &Framed<'_>,
) -> Result<RefreshBody, ApiError> {
    let operation = Operation::new(app, framed).about(request_id)?;
    let body = operation.measured(()).and_then(|()| operation.body::<RefreshBody>());
    perform(request_id, body, operation.approver(caller, request_id), |approver, body| async move {
        app.gateway.refresh(&caller.tenant, &approver, request_id, &body).await?;
        Ok(body.into_view())
    })
    .await
}

/// Either side acknowledges messages, or an enforcer a prompt.
pub(crate) async fn acknowledge(
    app: &AppState,
    caller: &Caller,
    framed: &Framed<'_>,
) -> Result<AckAccepted, ApiError> {
    let operation = Operation::new(app, framed).expecting(&[MsgType::AckSubmit, MsgType::PromptAck])?;
    let request_id = framed.request_id.clone().ok_or_else(|| missing("requestId"))?;
    let body = operation.body::<AckSubmit<'_>>().and_then(|body| operation.measured(body));
    let body = body.for_request(&request_id)?;
    let ack = match &*body {
        AckSubmit::Message(ack) if framed.msg_type != Some(MsgType::PromptAck) => ack,
        // A prompt acknowledgement, by its type or its body; then it must be a complete one.
        _ => {
            let enforcer = caller.enforcer().for_request(&request_id)?;
            acknowledge_prompt(app, &enforcer, framed).await.for_request(&request_id)?;
            return Ok(AckAccepted { request_id, msg_id: None });
        }
    };
    let (gateway, tenant, about) = (&app.gateway, &caller.tenant, &request_id);
    match &caller.role {
        Role::Enforcer(_) => {
            let acknowledge = |enforcer, ack| async move {
                gateway.acknowledge(tenant, Acknowledger::Enforcer(&enforcer), about, ack).await
            };
            perform(about, Ok(ack), operation.enforcer(&caller.enforcer()?, about), acknowledge).await?;
        }
        Role::Approver(_) => {
            let acknowledge = |approver, ack| async move {
                gateway.acknowledge(tenant, Acknowledger::Approver(&approver), about, ack).await
            };
            perform(about, Ok(ack), operation.approver(&caller.approver()?, about), acknowledge).await?;
        }
        Role::Operator | Role::GatewayOperator => {
            return Err(ApiError::from(Failure::Forbidden).for_request(about));
        }
    }
    operation.took(Step::Acknowledge);
    let msg_id = ack.msg_id.clone();
    Ok(AckAccepted { request_id, msg_id })
}

/// The answer to a prompt.
pub(crate) struct SentPrompt {
    pub(crate) ack: PromptAck<'static>,
    /// What has become of it by now; a repeated prompt gets the first answer again.
    pub(crate) current: AckStatus,
    pub(crate) replayed: bool,
}

/// An approver sends text to an agent. The answer is a `prompt.ack`.
pub(crate) async fn send_prompt(
    app: &AppState,
    caller: &Approver,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<SentPrompt, ApiError> {
    let operation = Operation::new(app, &framed).expecting(&[MsgType::PromptSend])?;
    let body = operation.body::<PromptSubmit<'_>>()?;
    let inside = match &*body {
        PromptSubmit::Open(prompt) => Some(&prompt.request_id),
        PromptSubmit::Sealed(sealed) => sealed.request_id.as_ref(),
    };
    let request_id = framed.request_id.as_ref().or(inside).ok_or_else(|| missing("requestId"))?.clone();
    operation.fits(&caller.tenant, &request_id).await?;
    let is_named_by_both = same(inside, &request_id);
    let body = is_named_by_both.and_then(|()| operation.measured(body));
    let send = |approver, body| {
        app.gateway.send_prompt(PromptSubmission {
            tenant: caller.tenant.clone(),
            approver,
            request_id: request_id.clone(),
            body,
            recipient: framed.recipient.enforcer_id.clone(),
            idempotency_key,
        })
    };
    let approver = operation.approver(caller, &request_id);
    let receipt = perform(&request_id, body, approver, send).await?;
    let ack = PromptAck {
        request_id,
        prompt_hash: receipt.prompt_hash,
        status: receipt.status,
        ack_at: receipt.ack_at,
        details: None,
    };
    Ok(SentPrompt { ack, current: receipt.current, replayed: receipt.replayed })
}

/// An enforcer acknowledges a prompt.
pub(crate) async fn acknowledge_prompt(
    app: &AppState,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<RequestId, ApiError> {
    let operation = Operation::new(app, framed).expecting(&[MsgType::PromptAck, MsgType::AckSubmit])?;
    let ack = operation.body::<PromptAck<'_>>()?;
    let request_id = ack.request_id.clone();
    let ack = same(framed.request_id.as_ref(), &request_id).and_then(|()| operation.measured(ack));
    perform(&request_id, ack, operation.enforcer(caller, &request_id), |enforcer, ack| async move {
        app.gateway.acknowledge_prompt(&caller.tenant, &enforcer, &ack).await
    })
    .await?;
    Ok(request_id)
}

/// Where both the envelope and the body name a request, it is the same.
fn same(named: Option<&RequestId>, request_id: &RequestId) -> Result<(), ApiError> {
    match named.is_none_or(|named| named == request_id) {
        true => Ok(()),
        false => Err(ApiError::breaks("requestId", "is not that of the envelope")),
    }
}

/// An enforcer reports its agent's session.
pub(crate) async fn report(
    app: &AppState,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<(SessionId, Reported), ApiError> {
    let operation = Operation::new(app, framed);
    let event = operation.body::<SessionEvent<'_>>()?;
    if framed.msg_type.as_ref().is_some_and(|said| said.as_str() != event.event_type().as_str()) {
        return Err(Failure::Unsupported.into());
    }
    let event = operation.measured(event)?;
    if framed.sender.approver_id.is_some() {
        return Err(Failure::Forbidden.into());
    }
    let enforcer = match &framed.sender.enforcer_id {
        Some(named) => caller.acting_as(app, named)?,
        None => caller.itself(app)?,
    };
    app.stored.admit(&app.gateway, &caller.tenant, framed.body.as_str().len()).await?;
    let reported = app.gateway.report_session(&caller.tenant, &enforcer, &event).await?;
    Ok((event.session_id().clone(), reported))
}
