//! An enforcer asks for a decision.

use std::collections::BTreeSet;

use bytes::Bytes;
use countersign_wire::{
    RawObject, Verbatim,
    artifact::{ArtifactSubmit, Loudness, Turns},
    exchange::{Accepted, ExchangeState},
    failure::Failure,
    id::{ApproverId, EnforcerId, RequestId, RoutingToken, TenantId},
    limits,
    timestamp::Timestamp,
};

use super::{
    idempotency::{IdempotencyUse, missing_idempotency_key},
    notify::notice_of,
};
use crate::{
    audit::Actor,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{ReadFrom, record_of},
    model::{
        exchange::{Command, Exchange, State, TransitionResult, evaluate},
        idempotency::IdempotencyKey,
        notification::Notifying,
        pairing::{PairedEnforcer, Route},
        policy::{POLICY_ID, Policy},
        turns::{self, Turn},
        viewer::Viewer,
    },
    store::{Change, Guard, Kind, Mailbox, Versioned},
    transitions::{ExchangeRef, before_expiry, requests, transition_change},
};

/// A submission is new as a rule: nothing is read then, and the guards of its commit find out if it is not.
const NEW_SUBMISSION: ReadFrom = ReadFrom::Memory { new: &[Kind::Exchange, Kind::Idempotency] };

/// What an enforcer submits.
#[derive(Debug, Clone)]
pub struct Submission<'a> {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub request_id: RequestId,
    pub body: Verbatim<'a, ArtifactSubmit<'a>>,
    /// The envelope's own expiry; `None` where only the body names one.
    pub expires_at: Option<Timestamp>,
    /// The approver that the envelope names; `None` where it names none.
    pub recipient: Option<ApproverId>,
    pub trace: Option<RawObject<'a>>,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// What becomes of a submission.
struct NewExchange {
    expires_at: Timestamp,
    mailboxes: BTreeSet<Mailbox>,
    turns: Vec<Turn>,
    notifying: Option<Notifying>,
}

/// The answer to a submission or a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    pub accepted: Accepted,
    /// Whether it is an idempotent replay of an earlier answer.
    pub replayed: bool,
}

impl Gateway {
    /// Accepts a submission, or recognises a repeated one.
    pub async fn submit(&self, submission: Submission<'_>) -> Result<Submitted, Error> {
        check_sizes(&submission)?;
        let expires_at = expiry(&submission)?;
        submission.body.check_hash().map_err(Error::in_hashed_body)?;
        let token = routing_token(&submission)?;
        let hash = submission.body.artifact_hash();
        let exchange = ExchangeRef::new(&submission.tenant, &submission.request_id);
        let key = submission.idempotency_key.as_ref();
        let idempotency = IdempotencyUse { key, request_id: &submission.request_id, hash };
        let accepted = Accepted {
            request_id: submission.request_id.clone(),
            state: ExchangeState::PendingApproval,
            artifact_hash: Some(hash),
        };
        let others = (
            record_of::<Policy>(POLICY_ID),
            record_of::<PairedEnforcer>(&submission.enforcer),
            token.as_ref().map(record_of::<Route>),
            idempotency.record(),
        );
        let load = (exchange.record(), others);
        // A free id must be distinguished from another enforcer's, so every exchange is visible here.
        let answered =
            self.update_exchange(NEW_SUBMISSION, exchange, Viewer::Operator, &load, |known, others, now| {
                let command =
                    Command::Submit { enforcer: &submission.enforcer, artifact_hash: hash, expires_at };
                match (evaluate(known.map(|known| &known.value), command, now), known) {
                    (TransitionResult::Rejected(error), Some(known)) => {
                        Ok(Evaluation::reject_if_unchanged(exchange.unchanged(known), error))
                    }
                    (TransitionResult::Rejected(error), None) => Err(error.into()),
                    (_, None) => {
                        let (policy, paired, route, used) = others;
                        let policy = policy.map(|policy| policy.value).unwrap_or_default();
                        check_policy(&submission, &policy, expires_at, now)?;
                        let mut change = Change::new(submission.tenant.clone());
                        let (mailboxes, turns) =
                            addressees(&submission, token.is_some(), route, paired, now)?;
                        if !idempotency.check(used.as_ref(), now, &self.retention, &mut change)? {
                            return Ok(Evaluation::reject_if_unchanged(change, Failure::Idempotency));
                        }
                        let notifying = notifying(&submission, &policy, now);
                        let notifies = notifying.is_some();
                        let new = NewExchange { expires_at, mailboxes, turns, notifying };
                        self.add_submission(&mut change, &submission, new, now)?;
                        change.guards.push(Guard::NotBefore(policy.earliest_submission(expires_at)));
                        let answer = Submitted { accepted: accepted.clone(), replayed: false };
                        Ok(Evaluation::commit_and_ring(change, exchange.ring(), (answer, notifies)))
                    }
                    (_, Some(known)) => {
                        let answer = Submitted { accepted: accepted.clone(), replayed: true };
                        Ok(Evaluation::commit(exchange.unchanged(known), (answer, false)))
                    }
                }
            });
        let (submitted, notifies) = answered.await?;
        if notifies {
            self.notices.submitted(notice_of(&submission.tenant, &submission.request_id));
        }
        Ok(submitted)
    }

    fn add_submission(
        &self,
        change: &mut Change,
        submission: &Submission<'_>,
        NewExchange { expires_at, mailboxes, turns, notifying }: NewExchange,
        now: Timestamp,
    ) -> Result<(), Error> {
        let exchange_ref = ExchangeRef::new(&submission.tenant, &submission.request_id);
        let body = submission.body.text_for_approvers().map_err(Error::in_hashed_body)?;
        let artifact = self.random.payload_id(now);
        let trace = match submission.trace {
            Some(trace) => Some(trace.text_without(&["routingToken"]).map_err(Error::in_hashed_body)?),
            None => None,
        };
        let trace = trace.map(|text| (self.random.payload_id(now), Bytes::from(text)));
        let exchange = Exchange {
            enforcer: submission.enforcer.clone(),
            artifact_type: submission.body.artifact_type(),
            artifact_hash: submission.body.artifact_hash(),
            created_at: now,
            expires_at,
            mailboxes: mailboxes.into_iter().collect(),
            turns,
            request: self.random.msg_id(now),
            artifact: Some(artifact),
            trace: trace.as_ref().map(|(id, _)| *id),
            size: body.len() + trace.as_ref().map_or(0, |(_, text)| text.len()),
            refreshed_at: None,
            refresh: None,
            hidden_by: Vec::new(),
            seen: Vec::new(),
            notifying,
            state: State::Pending,
        };
        let key = exchange_ref.key();
        let actor = Actor::Enforcer(submission.enforcer.as_str());
        change.append(transition_change(&exchange_ref, None, &exchange, &self.retention, actor)?);
        change.guards.push(before_expiry(&exchange));
        change.payloads.push((artifact, Bytes::from(body.into_owned())));
        change.payloads.extend(trace);
        change.deliveries.extend(requests(&key, &exchange, &exchange.mailboxes));
        Ok(())
    }
}

fn check_sizes(submission: &Submission<'_>) -> Result<(), Error> {
    let body = submission.body.raw().as_str().len();
    let trace = submission.trace.map_or(0, |trace| trace.as_str().len());
    let (member, payload, limit, metadata) = match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => {
            ("ciphertext", sealed.ciphertext.get().len(), limits::MAX_ARTIFACT_CIPHERTEXT, sealed.metadata)
        }
        ArtifactSubmit::SealedInPlace(artifact) => {
            ("payload", artifact.payload.as_str().len(), limits::MAX_ARTIFACT_CIPHERTEXT, artifact.metadata)
        }
        ArtifactSubmit::Open(artifact) => {
            ("payload", artifact.payload.as_str().len(), limits::MAX_ARTIFACT_PAYLOAD, artifact.metadata)
        }
    };
    let metadata = metadata.map_or(0, |metadata| metadata.as_str().len());
    Error::check_size(member, payload, limit)?;
    Error::check_size("metadata and trace", metadata + trace, limits::MAX_METADATA_AND_TRACE)?;
    Error::check_size("body", body - payload, limits::MAX_OTHER_BODY)
}

/// The expiry, from the body or the envelope. Where both name one, the body's counts: it is what was hashed.
fn expiry(submission: &Submission<'_>) -> Result<Timestamp, Error> {
    if let ArtifactSubmit::Open(artifact) | ArtifactSubmit::SealedInPlace(artifact) = &*submission.body
        && artifact.request_id != submission.request_id
    {
        let fault = countersign_wire::Error::breaks("body.requestId", "is not that of the envelope");
        return Err(Error::Invalid { failure: Failure::Structure, fault });
    }
    submission.body.expires_at().or(submission.expires_at).ok_or_else(|| Error::Invalid {
        failure: Failure::Structure,
        fault: countersign_wire::Error::missing("expiresAt"),
    })
}

fn check_policy(
    submission: &Submission<'_>,
    policy: &Policy,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    if policy.require_idempotency_key && submission.idempotency_key.is_none() {
        return Err(missing_idempotency_key());
    }
    if policy.require_sealed && matches!(*submission.body, ArtifactSubmit::Open(_)) {
        return Err(Error::Policy("requireSealed"));
    }
    if now < policy.earliest_submission(expires_at) {
        return Err(Error::Policy("maxLifeSeconds"));
    }
    Ok(())
}

/// Whether people are notified of it, outside of the protocol: where somebody of the tenant has a channel for that, and the
/// enforcer does not ask for quiet.
fn notifying(submission: &Submission<'_>, policy: &Policy, now: Timestamp) -> Option<Notifying> {
    let loudness = Some(submission.body.loudness()).filter(|_| policy.notifies)?;
    (loudness != Loudness::Quiet).then(|| Notifying::begin(loudness == Loudness::Loud, now))
}

/// The routing token: in the metadata of a sealed artifact, or in the trace.
fn routing_token(submission: &Submission<'_>) -> Result<Option<RoutingToken>, Error> {
    let in_body = match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => sealed.routing().map_err(Error::in_hashed_body)?.routing_token,
        ArtifactSubmit::SealedInPlace(_) | ArtifactSubmit::Open(_) => None,
    };
    let in_trace = match submission.trace {
        Some(trace) => trace
            .members()
            .and_then(|mut members| members.optional("routingToken"))
            .map_err(|fault| Error::Invalid { failure: Failure::Validation, fault })?,
        None => None,
    };
    Ok(in_body.or(in_trace))
}

/// The mailboxes of those who are asked at once, and the turns of the others.
fn addressees(
    submission: &Submission<'_>,
    has_token: bool,
    route: Option<Versioned<Route>>,
    paired: Option<Versioned<PairedEnforcer>>,
    now: Timestamp,
) -> Result<(BTreeSet<Mailbox>, Vec<Turn>), Error> {
    let turns = turns(submission, has_token)?;
    match turns.0.is_empty() {
        true => Ok((mailboxes(submission, has_token, route, paired)?, Vec::new())),
        false => turns::divide(&turns, expiry(submission)?, now).map_err(broken_turns),
    }
}

/// The addressees with their turns; empty if the request names none so. They are all of its addressees, so nothing else can
/// name one.
fn turns(submission: &Submission<'_>, has_token: bool) -> Result<Turns, Error> {
    let turns = submission.body.turns().map_err(Error::in_hashed_body)?;
    let is_addressed =
        submission.recipient.is_some() || has_token || named_in_metadata(submission)?.is_some();
    if !turns.0.is_empty() && is_addressed {
        return Err(broken_turns("can't be combined with a recipient, an approverId or a routing token"));
    }
    Ok(turns)
}

fn broken_turns(rule: &'static str) -> Error {
    let fault = countersign_wire::Error::breaks("body.metadata.org.countersign.turns", rule);
    Error::Invalid { failure: Failure::Structure, fault }
}

fn named_in_metadata(submission: &Submission<'_>) -> Result<Option<ApproverId>, Error> {
    match &*submission.body {
        ArtifactSubmit::Sealed(sealed) => Ok(sealed.routing().map_err(Error::in_hashed_body)?.approver_id),
        ArtifactSubmit::SealedInPlace(_) | ArtifactSubmit::Open(_) => Ok(None),
    }
}

/// The mailbox of the approver that the envelope names, else of the one behind the token, else of the one that the
/// metadata names, else of all that are paired; for an enforcer that was never paired, the shared one. An enforcer that has
/// lost its last pair has no recipient: losing a device must not widen who sees its requests.
fn mailboxes(
    submission: &Submission<'_>,
    has_token: bool,
    route: Option<Versioned<Route>>,
    paired: Option<Versioned<PairedEnforcer>>,
) -> Result<BTreeSet<Mailbox>, Error> {
    // An unknown token is an error even where something else names the approver: a wrong secret must show.
    let route = route.filter(|route| route.value.is_valid(paired.as_ref().map(|paired| &paired.value)));
    if has_token && route.is_none() {
        return Err(Failure::NoRecipient.into());
    }
    let in_metadata = named_in_metadata(submission)?;
    let by_token = route.map(|route| route.value.approver);
    match (submission.recipient.clone().or(by_token).or(in_metadata), paired) {
        (Some(approver), _) => Ok(BTreeSet::from([Mailbox::Approver(approver)])),
        (None, None) => Ok(BTreeSet::from([Mailbox::Shared])),
        (None, Some(paired)) if paired.value.approvers.is_empty() => Err(Failure::NoRecipient.into()),
        (None, Some(paired)) => Ok(paired.value.approvers.into_iter().map(Mailbox::Approver).collect()),
    }
}
