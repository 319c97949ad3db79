//! An enforcer asks for a decision.

use std::collections::BTreeSet;

use bytes::Bytes;
use countersign_wire::{
    RawObject, Verbatim,
    artifact::ArtifactSubmit,
    exchange::{Accepted, State as WireState},
    failure::Failure,
    id::{ApproverId, EnforcerId, RequestId, RoutingToken, TenantId},
    limits,
    msg_type::MsgType,
    timestamp::Timestamp,
};

use super::{
    Viewer,
    idempotency::{self, IdempotencyKey},
    named,
};
use crate::{
    Error, Gateway,
    edges::{Actor, moving, not_expired, tell},
    exchange::{Command, Edge, Exchange, State, Verdict, judge},
    gateway::Attempt,
    pairing::{PairedEnforcer, Route},
    policy::{POLICY_ID, Policy},
    store::{Change, Mailbox, NewDelivery},
    stored::Stored as _,
};

/// What an enforcer submits.
#[derive(Debug, Clone)]
pub struct Submission<'a> {
    /// Whose tenant.
    pub tenant: TenantId,
    /// Who.
    pub enforcer: EnforcerId,
    /// Under which id.
    pub request_id: RequestId,
    /// The body.
    pub body: Verbatim<'a, ArtifactSubmit<'a>>,
    /// The envelope's expiry.
    pub expires_at: Option<Timestamp>,
    /// The approver that the envelope names.
    pub recipient: Option<ApproverId>,
    /// The envelope's trace.
    pub trace: Option<RawObject<'a>>,
    /// The request's `Idempotency-Key`.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// What was accepted, and whether it had been before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The answer.
    pub accepted: Accepted,
    /// Whether it is the answer to an earlier, equal submission.
    pub replayed: bool,
}

impl Gateway {
    /// Takes a submission in, or recognises it.
    pub async fn submit(&self, submission: Submission<'_>) -> Result<Submitted, Error> {
        check_sizes(&submission)?;
        let expires_at = expiry(&submission)?;
        submission.body.check_hash().map_err(Error::in_hashed_body)?;
        let token = routing_token(&submission)?;
        let named = named(&submission.tenant, &submission.request_id);
        let mut others = vec![Policy::key(POLICY_ID), PairedEnforcer::key(&submission.enforcer)];
        others.extend(token.as_ref().map(Route::key));
        others.extend(submission.idempotency_key.as_ref().map(IdempotencyKey::record_key));
        let used = idempotency::Use {
            key: submission.idempotency_key.as_ref(),
            request_id: &submission.request_id,
            hash: submission.body.artifact_hash(),
        };
        loop {
            // An id that is another enforcer's must be told apart from a free one, so all are seen here.
            let looked = self.look_to_write(&named, Viewer::Operator, &others).await?;
            let policy =
                Policy::read(looked.others[0].as_ref())?.map(|policy| policy.value).unwrap_or_default();
            check_policy(&submission, &policy, expires_at, looked.now)?;
            let command = Command::Submit {
                enforcer: &submission.enforcer,
                artifact_hash: submission.body.artifact_hash(),
                expires_at,
            };
            let accepted = Accepted {
                request_id: submission.request_id.clone(),
                state: WireState::PendingApproval,
                artifact_hash: Some(submission.body.artifact_hash()),
            };
            let known = looked.exchange.as_ref();
            let mut change = Change::new(submission.tenant.clone());
            let remembered = looked.others.last().and_then(Option::as_ref);
            if !used.remember(remembered, looked.now, &self.retention, &mut change)? {
                self.refuse_resting_on(change, Failure::Idempotency).await?;
                continue;
            }
            match judge(known.map(|known| &known.value), command, looked.now) {
                Verdict::Refuse(refusal) => return self.refuse(&named, known, refusal).await,
                Verdict::Go(Edge::Submit) => {
                    let paired = PairedEnforcer::read(looked.others[1].as_ref())?;
                    let route = match &token {
                        Some(_) => Route::read(looked.others[2].as_ref())?,
                        None => None,
                    };
                    // An unknown token is a fault even where something else says where to go: a wrong secret
                    // must show.
                    if token.is_some() && route.is_none() {
                        return Err(Failure::NoApprover.into());
                    }
                    let by_token = route.map(|route| route.value.approver);
                    let paired = paired.map(|paired| paired.value.approvers).unwrap_or_default();
                    let mailboxes = mailboxes(&submission, by_token, paired)?;
                    self.add_submission(&mut change, &submission, expires_at, mailboxes, looked.now)?;
                    if let Attempt::Done = self.commit(change, Some(named.ring())).await? {
                        return Ok(Submitted { accepted, replayed: false });
                    }
                }
                _ => {
                    if let Some(known) = known
                        && self.still_stands_with(&named, known, change).await?
                    {
                        return Ok(Submitted { accepted, replayed: true });
                    }
                }
            }
        }
    }

    fn add_submission(
        &self,
        change: &mut Change,
        submission: &Submission<'_>,
        expires_at: Timestamp,
        mailboxes: BTreeSet<Mailbox>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let named = named(&submission.tenant, &submission.request_id);
        let body = submission.body.text_for_approvers().map_err(Error::in_hashed_body)?;
        let artifact = self.chance.payload_id(now);
        let trace = match submission.trace {
            Some(trace) => Some(trace.text_without(&["routingToken"]).map_err(Error::in_hashed_body)?),
            None => None,
        };
        let trace = trace.map(|text| (self.chance.payload_id(now), Bytes::from(text)));
        let exchange = Exchange {
            enforcer: submission.enforcer.clone(),
            artifact_type: submission.body.artifact_type(),
            artifact_hash: submission.body.artifact_hash(),
            created_at: now,
            expires_at,
            mailboxes: mailboxes.into_iter().collect(),
            request: self.chance.msg_id(now),
            artifact: Some(artifact),
            trace: trace.as_ref().map(|(id, _)| *id),
            size: body.len() + trace.as_ref().map_or(0, |(_, text)| text.len()),
            refreshed_at: None,
            refresh: None,
            state: State::Pending,
        };
        let key = named.key();
        let actor = Actor::Enforcer(submission.enforcer.as_str());
        change.append(moving(&named, None, &exchange, &self.retention, actor)?);
        change.guards.push(not_expired(&exchange));
        change.payloads.push((artifact, Bytes::from(body.into_owned())));
        change.payloads.extend(trace);
        for mailbox in &exchange.mailboxes {
            let told =
                tell(&key, mailbox.clone(), exchange.request.clone(), MsgType::ApprovalRequest, expires_at);
            change.deliveries.push(NewDelivery { payload: Some(artifact), ..told });
        }
        Ok(())
    }
}

fn check_sizes(submission: &Submission<'_>) -> Result<(), Error> {
    let body = submission.body.raw().as_str().len();
    let trace = submission.trace.map_or(0, |trace| trace.as_str().len());
    let (payload, payload_limit, metadata) = match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => {
            (sealed.ciphertext.get().len(), limits::MAX_ARTIFACT_CIPHERTEXT, sealed.metadata)
        }
        ArtifactSubmit::Open(artifact) => {
            (artifact.payload.as_str().len(), limits::MAX_ARTIFACT_PAYLOAD, artifact.metadata)
        }
    };
    let metadata = metadata.map_or(0, |metadata| metadata.as_str().len());
    let fits = payload <= payload_limit
        && metadata + trace <= limits::MAX_METADATA_AND_TRACE
        && body - payload <= limits::MAX_OTHER_BODY;
    if fits { Ok(()) } else { Err(Failure::TooLarge.into()) }
}

/// The expiry, from the body or the envelope; where both name one, they must agree.
fn expiry(submission: &Submission<'_>) -> Result<Timestamp, Error> {
    if let ArtifactSubmit::Open(artifact) = &*submission.body
        && artifact.request_id != submission.request_id
    {
        return Err(Failure::Structure.into());
    }
    match (submission.body.expires_at(), submission.expires_at) {
        (Some(body), Some(envelope)) if body != envelope => Err(Failure::Structure.into()),
        (Some(expires_at), _) | (None, Some(expires_at)) => Ok(expires_at),
        (None, None) => Err(Failure::Structure.into()),
    }
}

fn check_policy(
    submission: &Submission<'_>,
    policy: &Policy,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    let keyless = submission.idempotency_key.is_none();
    let open = matches!(*submission.body, ArtifactSubmit::Open(_));
    let too_long = policy.max_life.is_some_and(|max_life| expires_at > now.plus(max_life));
    if policy.require_sealed && open || policy.require_idempotency_key && keyless || too_long {
        return Err(Failure::PolicyDeny.into());
    }
    Ok(())
}

/// The routing token: in the metadata of a sealed artifact, or in the trace.
fn routing_token(submission: &Submission<'_>) -> Result<Option<RoutingToken>, Error> {
    let in_body = match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => sealed.routing().map_err(Error::in_hashed_body)?.routing_token,
        ArtifactSubmit::Open(_) => None,
    };
    let in_trace = match submission.trace {
        Some(trace) => trace
            .members()
            .and_then(|mut members| members.optional("routingToken"))
            .map_err(|fault| Error::Faulty { failure: Failure::Validation, fault })?,
        None => None,
    };
    Ok(in_body.or(in_trace))
}

/// To the approver that the envelope names, else to the one behind the token, else to the one that the
/// metadata names, else to all that are paired, else to everybody.
fn mailboxes(
    submission: &Submission<'_>,
    by_token: Option<ApproverId>,
    paired: Vec<ApproverId>,
) -> Result<BTreeSet<Mailbox>, Error> {
    let in_metadata = match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => sealed.routing().map_err(Error::in_hashed_body)?.approver_id,
        ArtifactSubmit::Open(_) => None,
    };
    Ok(match submission.recipient.clone().or(by_token).or(in_metadata) {
        Some(approver) => BTreeSet::from([Mailbox::Approver(approver)]),
        None if paired.is_empty() => BTreeSet::from([Mailbox::Shared]),
        None => paired.into_iter().map(Mailbox::Approver).collect(),
    })
}
