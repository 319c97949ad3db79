//! What clients do, however it arrives: an envelope over REST or a WebSocket, or a bare object.

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
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    limits,
    msg_type::MsgType,
    prompt::{PromptAck, PromptSubmit},
    refresh::RefreshBody,
    session::SessionEvent,
};
use tokio::time::Instant;

use crate::{
    auth::{Approver, Caller, Enforcer},
    error::{ApiError, ForRequest as _},
    state::AppState,
};

/// An enforcer submits an artifact.
pub(crate) async fn submit(
    app: &AppState,
    caller: &Enforcer,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<Submitted, ApiError> {
    let received = Instant::now();
    expect(&framed, &[MsgType::ArtifactSubmit])?;
    let body = framed.body.view::<ArtifactSubmit<'_>>().map_err(Error::in_hashed_body);
    let request_id = match (&framed.request_id, &body) {
        (Some(request_id), _) => request_id.clone(),
        (None, Ok(body)) => request_id_in_body(framed.body, body)?,
        (None, Err(_)) => return Err(body.err().unwrap_or(Failure::Structure.into()).into()),
    };
    let body = body.for_request(&request_id)?;
    let submission = Submission {
        tenant: caller.tenant.clone(),
        enforcer: acting_enforcer(app, caller, &framed, &request_id).await.for_request(&request_id)?,
        request_id: request_id.clone(),
        body,
        expires_at: framed.expires_at,
        recipient: framed.recipient.approver_id,
        trace: framed.trace,
        idempotency_key,
    };
    let submitted = app.gateway.submit(submission).await.for_request(&request_id)?;
    if !submitted.replayed {
        app.gateway.metrics().steps.at(Step::Submit).observe(received.elapsed());
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
    let received = Instant::now();
    expect(&framed, &[MsgType::DecisionSubmit])?;
    let decision = framed.body.view::<Decision<'_>>().map_err(|fault| ApiError::invalid(&fault));
    let request_id = match (&framed.request_id, &decision) {
        (Some(request_id), _) => request_id.clone(),
        (None, Ok(decision)) => decision.request_id.clone(),
        (None, Err(error)) => return Err(error.clone()),
    };
    let decision = decision.for_request(&request_id)?;
    check_metadata_and_trace(&framed).for_request(&request_id)?;
    let submission = DecisionSubmission {
        tenant: caller.tenant.clone(),
        approver: acting_approver(app, caller, &framed, &request_id).await.for_request(&request_id)?,
        request_id: request_id.clone(),
        decision,
        idempotency_key,
    };
    let submitted = app.gateway.decide(submission).await.for_request(&request_id)?;
    if !submitted.replayed {
        app.gateway.metrics().steps.at(Step::Decide).observe(received.elapsed());
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
    same_request(framed, request_id)?;
    check_metadata_and_trace(framed).for_request(request_id)?;
    let enforcer = acting_enforcer(app, caller, framed, request_id).await.for_request(request_id)?;
    app.gateway.withdraw(&caller.tenant, &enforcer, request_id).await.for_request(request_id)
}

/// An approver asks for a new submission.
pub(crate) async fn refresh(
    app: &AppState,
    caller: &Approver,
    request_id: &RequestId,
    framed: &Framed<'_>,
) -> Result<RefreshBody, ApiError> {
    same_request(framed, request_id)?;
    check_metadata_and_trace(framed).for_request(request_id)?;
    let body = framed
        .body
        .view::<RefreshBody>()
        .map_err(|fault| ApiError::invalid(&fault))
        .for_request(request_id)?;
    let approver = acting_approver(app, caller, framed, request_id).await.for_request(request_id)?;
    app.gateway.refresh(&caller.tenant, &approver, request_id, &body).await.for_request(request_id)?;
    Ok(body.into_view())
}

/// Either side acknowledges messages, or an enforcer a prompt.
pub(crate) async fn acknowledge(
    app: &AppState,
    caller: &Caller,
    framed: &Framed<'_>,
) -> Result<AckAccepted, ApiError> {
    let received = Instant::now();
    expect(framed, &[MsgType::AckSubmit, MsgType::PromptAck])?;
    let body = framed.body.view::<AckSubmit<'_>>().map_err(|fault| ApiError::invalid(&fault));
    let request_id = framed.request_id.clone().ok_or_else(|| missing("requestId"))?;
    let body = body.for_request(&request_id)?;
    check_metadata_and_trace(framed).for_request(&request_id)?;
    let ack = match &*body {
        AckSubmit::Message(ack) if framed.msg_type != Some(MsgType::PromptAck) => ack,
        // A prompt acknowledgement, by its type or its body; then it must be a complete one.
        _ => {
            acknowledge_prompt(app, &caller.enforcer().for_request(&request_id)?, framed)
                .await
                .for_request(&request_id)?;
            return Ok(AckAccepted { request_id, msg_id: None });
        }
    };
    let tenant = &caller.tenant;
    let acknowledged = match &caller.role {
        Role::Enforcer(_) => {
            let enforcer = acting_enforcer(app, &caller.enforcer()?, framed, &request_id)
                .await
                .for_request(&request_id)?;
            app.gateway.acknowledge(tenant, Acknowledger::Enforcer(&enforcer), &request_id, ack).await
        }
        Role::Approver(_) => {
            let approver = acting_approver(app, &caller.approver()?, framed, &request_id)
                .await
                .for_request(&request_id)?;
            app.gateway.acknowledge(tenant, Acknowledger::Approver(&approver), &request_id, ack).await
        }
        Role::Operator => Err(Failure::Forbidden.into()),
    };
    acknowledged.for_request(&request_id)?;
    app.gateway.metrics().steps.at(Step::Acknowledge).observe(received.elapsed());
    let msg_id = ack.msg_id.clone();
    Ok(AckAccepted { request_id, msg_id })
}

/// An approver sends text to an agent. The answer is a `prompt.ack`.
pub(crate) async fn send_prompt(
    app: &AppState,
    caller: &Approver,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<(PromptAck<'static>, bool), ApiError> {
    expect(&framed, &[MsgType::PromptSend])?;
    let body = framed.body.view::<PromptSubmit<'_>>().map_err(|fault| ApiError::invalid(&fault))?;
    let inside = match &*body {
        PromptSubmit::Open(prompt) => Some(&prompt.request_id),
        PromptSubmit::Sealed(sealed) => sealed.request_id.as_ref(),
    };
    let request_id = framed.request_id.as_ref().or(inside).ok_or_else(|| missing("requestId"))?.clone();
    if inside.is_some_and(|inside| *inside != request_id) {
        let error = ApiError::breaks("requestId", "is not that of the envelope");
        return Err(error.for_request(&request_id));
    }
    check_metadata_and_trace(&framed).for_request(&request_id)?;
    let submission = PromptSubmission {
        tenant: caller.tenant.clone(),
        approver: acting_approver(app, caller, &framed, &request_id).await.for_request(&request_id)?,
        sees_all_sessions: caller.only.is_none(),
        request_id: request_id.clone(),
        body,
        recipient: framed.recipient.enforcer_id,
        idempotency_key,
    };
    let receipt = app.gateway.send_prompt(submission).await.for_request(&request_id)?;
    let ack = PromptAck {
        request_id,
        prompt_hash: receipt.prompt_hash,
        status: receipt.status,
        ack_at: receipt.ack_at,
        details: None,
    };
    Ok((ack, receipt.replayed))
}

/// An enforcer acknowledges a prompt.
pub(crate) async fn acknowledge_prompt(
    app: &AppState,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<RequestId, ApiError> {
    expect(framed, &[MsgType::PromptAck, MsgType::AckSubmit])?;
    let ack = framed.body.view::<PromptAck<'_>>().map_err(|fault| ApiError::invalid(&fault))?;
    let request_id = ack.request_id.clone();
    if framed.request_id.as_ref().is_some_and(|named| *named != request_id) {
        let error = ApiError::breaks("requestId", "is not that of the envelope");
        return Err(error.for_request(&request_id));
    }
    check_metadata_and_trace(framed).for_request(&request_id)?;
    let enforcer = acting_enforcer(app, caller, framed, &request_id).await.for_request(&request_id)?;
    app.gateway.acknowledge_prompt(&caller.tenant, &enforcer, &ack).await.for_request(&request_id)?;
    Ok(request_id)
}

/// An enforcer reports its agent's session.
pub(crate) async fn report(
    app: &AppState,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<(SessionId, Reported), ApiError> {
    let event = framed.body.view::<SessionEvent<'_>>().map_err(|fault| ApiError::invalid(&fault))?;
    if framed.msg_type.as_ref().is_some_and(|said| said.as_str() != event.event_type().as_str()) {
        return Err(Failure::Unsupported.into());
    }
    check_metadata_and_trace(framed)?;
    if framed.sender.approver_id.is_some() {
        return Err(Failure::Forbidden.into());
    }
    let enforcer = match &framed.sender.enforcer_id {
        Some(named) => caller.acting_as(app, named)?,
        None => caller.itself(app)?,
    };
    let reported = app.gateway.report_session(&caller.tenant, &enforcer, &event).await?;
    Ok((event.session_id().clone(), reported))
}

/// The specification requires a sender on submissions, decisions and withdrawals; elsewhere the credential says who. A
/// wildcard credential acts as the party of the exchange or prompt that the request names.
async fn acting_enforcer(
    app: &AppState,
    caller: &Enforcer,
    framed: &Framed<'_>,
    request_id: &RequestId,
) -> Result<EnforcerId, ApiError> {
    // A sender that names the other side speaks for somebody else. `gatewayId` is ignored.
    if framed.sender.approver_id.is_some() {
        return Err(Failure::Forbidden.into());
    }
    match (&framed.sender.enforcer_id, &framed.msg_type) {
        (Some(named), _) => caller.acting_as(app, named),
        (None, Some(MsgType::ArtifactSubmit | MsgType::ExchangeWithdrawn)) => {
            Err(missing("sender.enforcerId"))
        }
        (None, _) if caller.only.is_some() => caller.itself(app),
        (None, _) => match app.gateway.parties(&caller.tenant, request_id).await? {
            Some(parties) => caller.acting_as(app, &parties.enforcer),
            None => caller.itself(app),
        },
    }
}

async fn acting_approver(
    app: &AppState,
    caller: &Approver,
    framed: &Framed<'_>,
    request_id: &RequestId,
) -> Result<ApproverId, ApiError> {
    if framed.sender.enforcer_id.is_some() {
        return Err(Failure::Forbidden.into());
    }
    match &framed.sender.approver_id {
        Some(named) => caller.acting_as(named),
        None if framed.msg_type == Some(MsgType::DecisionSubmit) => Err(missing("sender.approverId")),
        None if caller.only.is_some() => caller.itself(),
        None => match app.gateway.parties(&caller.tenant, request_id).await?.and_then(|it| it.approver) {
            Some(approver) => Ok(approver),
            None => caller.itself(),
        },
    }
}

fn missing(member: &'static str) -> ApiError {
    ApiError::invalid(&countersign_wire::Error::missing(member))
}

fn expect(framed: &Framed<'_>, msg_types: &[MsgType]) -> Result<(), ApiError> {
    match &framed.msg_type {
        Some(said) if !msg_types.contains(said) => {
            Err(ApiError::from(Failure::Unsupported).or_for_request(framed.request_id.clone()))
        }
        _ => Ok(()),
    }
}

/// The path and the envelope must name the same exchange.
fn same_request(framed: &Framed<'_>, request_id: &RequestId) -> Result<(), ApiError> {
    match &framed.request_id {
        Some(named) if named != request_id => {
            Err(ApiError::breaks("requestId", "is not that of the path").for_request(request_id))
        }
        _ => Ok(()),
    }
}

/// Trace and metadata have one limit together.
fn check_metadata_and_trace(framed: &Framed<'_>) -> Result<(), ApiError> {
    let trace = framed.trace.map_or(0, |trace| trace.as_str().len());
    let mut members = framed.body.members().map_err(|fault| ApiError::invalid(&fault))?;
    let metadata: Option<RawObject<'_>> = members.optional("metadata").ok().flatten();
    let metadata = metadata.map_or(0, |metadata| metadata.as_str().len());
    match trace + metadata <= limits::MAX_METADATA_AND_TRACE {
        true => Ok(()),
        false => Err(ApiError::too_large("metadata and trace", limits::MAX_METADATA_AND_TRACE)),
    }
}
