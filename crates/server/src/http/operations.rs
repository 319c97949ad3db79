//! What clients do, whichever way it comes in: an envelope over REST or a WebSocket, or a bare object.

use countersign_core::{
    Error,
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

use super::error_response::{About as _, Refusal};
use crate::{
    app::App,
    auth::{Approver, Caller, Enforcer},
};

/// An enforcer submits an artifact.
pub(crate) async fn submit(
    app: &App,
    caller: &Enforcer,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<Submitted, Refusal> {
    expect(&framed, &[MsgType::ArtifactSubmit])?;
    let body = framed.body.view::<ArtifactSubmit<'_>>().map_err(Error::in_hashed_body);
    let request_id = match (&framed.request_id, &body) {
        (Some(request_id), _) => request_id.clone(),
        (None, Ok(body)) => named_inside(framed.body, body)?,
        (None, Err(_)) => return Err(body.err().unwrap_or(Failure::Structure.into()).into()),
    };
    let body = body.about(&request_id)?;
    let submission = Submission {
        tenant: caller.tenant.clone(),
        enforcer: acting_enforcer(app, caller, &framed).about(&request_id)?,
        request_id: request_id.clone(),
        body,
        expires_at: framed.expires_at,
        recipient: framed.recipient.approver_id,
        trace: framed.trace,
        idempotency_key,
    };
    app.gateway.submit(submission).await.about(&request_id)
}

/// A bare artifact names its own request; a sealed one may.
fn named_inside(body: RawObject<'_>, view: &ArtifactSubmit<'_>) -> Result<RequestId, Refusal> {
    match view {
        ArtifactSubmit::Open(artifact) => Ok(artifact.request_id.clone()),
        ArtifactSubmit::Sealed(_) => body
            .members()
            .and_then(|mut members| members.required("requestId"))
            .map_err(|fault| Refusal::faulty(Failure::Structure, &fault)),
    }
}

/// An approver decides.
pub(crate) async fn decide(
    app: &App,
    caller: &Approver,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<Submitted, Refusal> {
    expect(&framed, &[MsgType::DecisionSubmit])?;
    let decision = framed.body.view::<Decision<'_>>().map_err(|fault| Refusal::invalid(&fault));
    let request_id = match (&framed.request_id, &decision) {
        (Some(request_id), _) => request_id.clone(),
        (None, Ok(decision)) => decision.request_id.clone(),
        (None, Err(refusal)) => return Err(refusal.clone()),
    };
    let decision = decision.about(&request_id)?;
    check_extras(&framed).about(&request_id)?;
    let submission = DecisionSubmission {
        tenant: caller.tenant.clone(),
        approver: acting_approver(caller, &framed).about(&request_id)?,
        request_id: request_id.clone(),
        decision,
        idempotency_key,
    };
    app.gateway.decide(submission).await.about(&request_id)
}

/// An enforcer takes its request back.
pub(crate) async fn withdraw(
    app: &App,
    caller: &Enforcer,
    request_id: &RequestId,
    framed: &Framed<'_>,
) -> Result<Accepted, Refusal> {
    same_request(framed, request_id)?;
    check_extras(framed).about(request_id)?;
    let enforcer = acting_enforcer(app, caller, framed).about(request_id)?;
    app.gateway.withdraw(&caller.tenant, &enforcer, request_id).await.about(request_id)
}

/// An approver asks for a request anew.
pub(crate) async fn refresh(
    app: &App,
    caller: &Approver,
    request_id: &RequestId,
    framed: &Framed<'_>,
) -> Result<RefreshBody, Refusal> {
    same_request(framed, request_id)?;
    check_extras(framed).about(request_id)?;
    let body =
        framed.body.view::<RefreshBody>().map_err(|fault| Refusal::invalid(&fault)).about(request_id)?;
    let approver = acting_approver(caller, framed).about(request_id)?;
    app.gateway.refresh(&caller.tenant, &approver, request_id, &body).await.about(request_id)?;
    Ok(body.into_view())
}

/// Either side acknowledges messages, or an enforcer a prompt.
pub(crate) async fn acknowledge(
    app: &App,
    caller: &Caller,
    framed: &Framed<'_>,
) -> Result<AckAccepted, Refusal> {
    expect(framed, &[MsgType::AckSubmit, MsgType::PromptAck])?;
    let body = framed.body.view::<AckSubmit<'_>>().map_err(|fault| Refusal::invalid(&fault));
    let request_id = framed.request_id.clone().ok_or_else(|| missing("requestId"))?;
    let body = body.about(&request_id)?;
    check_extras(framed).about(&request_id)?;
    let ack = match &*body {
        AckSubmit::Message(ack) if framed.msg_type != Some(MsgType::PromptAck) => ack,
        // Where the type or the body says so; the rest of it must be there then.
        _ => {
            acknowledge_prompt(app, &caller.enforcer().about(&request_id)?, framed)
                .await
                .about(&request_id)?;
            return Ok(AckAccepted { request_id, msg_id: None });
        }
    };
    let (tenant, msg_id) = (&caller.tenant, ack.msg_id.as_ref());
    let acknowledged = match &caller.role {
        Role::Enforcer(_) => {
            let enforcer = acting_enforcer(app, &caller.enforcer()?, framed).about(&request_id)?;
            app.gateway.acknowledge(tenant, Acknowledger::Enforcer(&enforcer), &request_id, msg_id).await
        }
        Role::Approver(_) => {
            let approver = acting_approver(&caller.approver()?, framed).about(&request_id)?;
            app.gateway.acknowledge(tenant, Acknowledger::Approver(&approver), &request_id, msg_id).await
        }
        Role::Operator => Err(Failure::Forbidden.into()),
    };
    acknowledged.about(&request_id)?;
    let msg_id = msg_id.cloned();
    Ok(AckAccepted { request_id, msg_id })
}

/// An approver sends text to an agent. The answer is a `prompt.ack`.
pub(crate) async fn send_prompt(
    app: &App,
    caller: &Approver,
    framed: Framed<'_>,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<(PromptAck<'static>, bool), Refusal> {
    expect(&framed, &[MsgType::PromptSend])?;
    let body = framed.body.view::<PromptSubmit<'_>>().map_err(|fault| Refusal::invalid(&fault))?;
    let inside = match &*body {
        PromptSubmit::Open(prompt) => Some(&prompt.request_id),
        PromptSubmit::Sealed(sealed) => sealed.request_id.as_ref(),
    };
    let request_id = framed.request_id.as_ref().or(inside).ok_or_else(|| missing("requestId"))?.clone();
    if inside.is_some_and(|inside| *inside != request_id) {
        let fault = countersign_wire::Error::breaks("requestId", "is not that of the envelope");
        return Err(Refusal::invalid(&fault).about(&request_id));
    }
    check_extras(&framed).about(&request_id)?;
    let submission = PromptSubmission {
        tenant: caller.tenant.clone(),
        approver: acting_approver(caller, &framed).about(&request_id)?,
        sees_all_sessions: caller.only.is_none(),
        request_id: request_id.clone(),
        body,
        recipient: framed.recipient.enforcer_id,
        idempotency_key,
    };
    let standing = app.gateway.send_prompt(submission).await.about(&request_id)?;
    let ack = PromptAck {
        request_id,
        prompt_hash: standing.prompt_hash,
        status: standing.status,
        ack_at: standing.ack_at,
        details: None,
    };
    Ok((ack, standing.replayed))
}

/// An enforcer says what became of a prompt.
pub(crate) async fn acknowledge_prompt(
    app: &App,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<RequestId, Refusal> {
    expect(framed, &[MsgType::PromptAck, MsgType::AckSubmit])?;
    let ack = framed.body.view::<PromptAck<'_>>().map_err(|fault| Refusal::invalid(&fault))?;
    let request_id = ack.request_id.clone();
    if framed.request_id.as_ref().is_some_and(|named| *named != request_id) {
        let fault = countersign_wire::Error::breaks("requestId", "is not that of the envelope");
        return Err(Refusal::invalid(&fault).about(&request_id));
    }
    check_extras(framed).about(&request_id)?;
    speaks_only_as_enforcer(framed).about(&request_id)?;
    // Whoever may act as any enforcer acts as the one that the prompt is for, unless it says otherwise.
    let enforcer = match (&framed.sender.enforcer_id, &caller.only) {
        (Some(named), _) => caller.acting_as(app, named).about(&request_id)?,
        (None, Some(only)) => only.clone(),
        (None, None) => {
            app.gateway.enforcer_of_prompt(&caller.tenant, &request_id).await.about(&request_id)?
        }
    };
    app.gateway.acknowledge_prompt(&caller.tenant, &enforcer, &ack).await.about(&request_id)?;
    Ok(request_id)
}

/// An enforcer tells of its agent's session.
pub(crate) async fn report(
    app: &App,
    caller: &Enforcer,
    framed: &Framed<'_>,
) -> Result<(SessionId, Reported), Refusal> {
    let event = framed.body.view::<SessionEvent<'_>>().map_err(|fault| Refusal::invalid(&fault))?;
    if framed.msg_type.as_ref().is_some_and(|said| said.as_str() != event.event_type().as_str()) {
        return Err(Failure::Unsupported.into());
    }
    check_extras(framed)?;
    let enforcer = acting_enforcer(app, caller, framed)?;
    let reported = app.gateway.report_session(&caller.tenant, &enforcer, &event).await?;
    Ok((event.session_id().clone(), reported))
}

/// The specification wants a sender on submissions, decisions and withdrawals; elsewhere the credential says who.
fn acting_enforcer(app: &App, caller: &Enforcer, framed: &Framed<'_>) -> Result<EnforcerId, Refusal> {
    speaks_only_as_enforcer(framed)?;
    match (&framed.sender.enforcer_id, &framed.msg_type) {
        (Some(named), _) => caller.acting_as(app, named),
        (None, Some(MsgType::ArtifactSubmit | MsgType::ExchangeWithdrawn)) => {
            Err(missing("sender.enforcerId"))
        }
        (None, _) => caller.itself(app),
    }
}

/// Whoever names somebody of another side speaks for somebody else.
fn speaks_only_as_enforcer(framed: &Framed<'_>) -> Result<(), Refusal> {
    let sender = &framed.sender;
    let others = sender.approver_id.is_some() || sender.gateway_id.is_some();
    if others { Err(Failure::Forbidden.into()) } else { Ok(()) }
}

fn acting_approver(caller: &Approver, framed: &Framed<'_>) -> Result<ApproverId, Refusal> {
    if framed.sender.enforcer_id.is_some() || framed.sender.gateway_id.is_some() {
        return Err(Failure::Forbidden.into());
    }
    match &framed.sender.approver_id {
        Some(named) => caller.acting_as(named),
        None if framed.msg_type == Some(MsgType::DecisionSubmit) => Err(missing("sender.approverId")),
        None => caller.itself(),
    }
}

fn missing(member: &'static str) -> Refusal {
    Refusal::invalid(&countersign_wire::Error::missing(member))
}

fn expect(framed: &Framed<'_>, msg_types: &[MsgType]) -> Result<(), Refusal> {
    match &framed.msg_type {
        Some(said) if !msg_types.contains(said) => {
            let refusal = Refusal::from(Failure::Unsupported);
            Err(match &framed.request_id {
                Some(request_id) => refusal.about(request_id),
                None => refusal,
            })
        }
        _ => Ok(()),
    }
}

/// The path and the envelope name one exchange.
fn same_request(framed: &Framed<'_>, request_id: &RequestId) -> Result<(), Refusal> {
    match &framed.request_id {
        Some(named) if named != request_id => {
            let fault = countersign_wire::Error::breaks("requestId", "is not that of the path");
            Err(Refusal::invalid(&fault).about(request_id))
        }
        _ => Ok(()),
    }
}

/// Trace and metadata have a limit together.
fn check_extras(framed: &Framed<'_>) -> Result<(), Refusal> {
    let trace = framed.trace.map_or(0, |trace| trace.as_str().len());
    let mut members = framed.body.members().map_err(|fault| Refusal::invalid(&fault))?;
    let metadata: Option<RawObject<'_>> = members.optional("metadata").ok().flatten();
    let metadata = metadata.map_or(0, |metadata| metadata.as_str().len());
    if trace + metadata <= limits::MAX_METADATA_AND_TRACE { Ok(()) } else { Err(Failure::TooLarge.into()) }
}
