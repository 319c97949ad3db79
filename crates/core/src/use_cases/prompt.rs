//! An approver sends text to an agent, and the enforcer says what became of it.

use bytes::Bytes;
use countersign_wire::{
    Verbatim,
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, RequestId, SessionId, TenantId},
    limits,
    msg_type::MsgType,
    prompt::{AckStatus, PromptAck, PromptSubmit},
    timestamp::Timestamp,
};

use super::idempotency::{IdempotencyUse, missing_idempotency_key};
use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::{
        idempotency::IdempotencyKey,
        pairing::{PairedApprover, PairedEnforcer},
        policy::{POLICY_ID, Policy},
        prompt::{AckResult, Prompt},
        session::Session,
    },
    store::{Change, Guard, Key, Mailbox, NewDelivery, Record, Removal, Stored as _, Versioned},
};

/// What an approver sends.
#[derive(Debug, Clone)]
pub struct PromptSubmission<'a> {
    pub tenant: TenantId,
    pub approver: ApproverId,
    pub request_id: RequestId,
    pub body: Verbatim<'a, PromptSubmit<'a>>,
    /// The enforcer that the envelope names; `None` where it names none.
    pub recipient: Option<EnforcerId>,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptReceipt {
    pub prompt_hash: Sha256Hex,
    pub status: AckStatus,
    pub ack_at: Timestamp,
    /// Whether it is an idempotent replay of an earlier answer.
    pub replayed: bool,
    /// What has become of the prompt by now.
    pub current: AckStatus,
}

impl Gateway {
    /// Queues a prompt for its enforcer, or recognises a repeated one.
    pub async fn send_prompt(&self, submission: PromptSubmission<'_>) -> Result<PromptReceipt, Error> {
        let PromptSubmission { tenant, approver, request_id, body, idempotency_key, .. } = &submission;
        body.check_hash().map_err(Error::in_hashed_body)?;
        check_size(body)?;
        let (prompt_hash, session) = hash_and_session(body);
        let idempotency = IdempotencyUse { key: idempotency_key.as_ref(), request_id, hash: prompt_hash };
        // The session names the recipient only where the envelope names none. It never changes its enforcer.
        let session = session.filter(|_| submission.recipient.is_none()).map(record_of::<Session>);
        let of_session = self.load(tenant, &session).await?.0.map(|session| session.value.enforcer);
        let candidate = submission.recipient.as_ref().or(of_session.as_ref());
        let load = (
            record_of::<Prompt>(request_id),
            record_of::<Policy>(POLICY_ID),
            (record_of::<PairedApprover>(approver), candidate.map(record_of::<PairedEnforcer>)),
            idempotency.record(),
        );
        self.update(tenant, &load, |(known, policy, (paired, of_candidate), used), now| {
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(load.0.key(), known.as_ref()));
            match known {
                Some(known)
                    if known.value.prompt_hash == prompt_hash && known.value.approver == *approver =>
                {
                    // The original answer, whatever has become of the prompt since.
                    let (status, ack_at) = (AckStatus::Queued, known.value.created_at);
                    let current = known.value.status;
                    let receipt = PromptReceipt { prompt_hash, status, ack_at, current, replayed: true };
                    Ok(Evaluation::commit(change, receipt))
                }
                Some(_) => Ok(Evaluation::reject_if_unchanged(change, Failure::AlreadyExists)),
                None => {
                    if policy.is_some_and(|policy| policy.value.require_idempotency_key)
                        && idempotency_key.is_none()
                    {
                        return Err(missing_idempotency_key());
                    }
                    let enforcer =
                        recipient(&submission, paired, of_candidate.as_ref(), of_session.as_ref())?;
                    // Last: a key that was used for something else matters only where the prompt would be taken as new.
                    if !idempotency.check(used.as_ref(), now, &self.retention, &mut change)? {
                        return Ok(Evaluation::reject_if_unchanged(change, Failure::Idempotency));
                    }
                    self.add_prompt(&mut change, &submission, prompt_hash, enforcer, now)?;
                    let (status, ack_at) = (AckStatus::Queued, now);
                    let current = status;
                    let receipt = PromptReceipt { prompt_hash, status, ack_at, current, replayed: false };
                    Ok(Evaluation::commit(change, receipt))
                }
            }
        })
        .await
    }

    fn add_prompt(
        &self,
        change: &mut Change,
        submission: &PromptSubmission<'_>,
        prompt_hash: Sha256Hex,
        enforcer: EnforcerId,
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = Prompt::key(&submission.request_id);
        let payload = self.random.payload_id(now);
        let prompt = Prompt {
            approver: submission.approver.clone(),
            enforcer,
            prompt_hash,
            body: Some(payload),
            created_at: now,
            status: AckStatus::Queued,
            ack_at: now,
            ack: None,
        };
        let until = now.plus(self.retention.after_end);
        change.puts.push(prompt.put(key.clone())?);
        let actor = Actor::Approver(submission.approver.as_str());
        change.audit.push(audit::action(key.clone(), actor, "prompt.sent")?);
        change.payloads.push((payload, Bytes::from(submission.body.raw().as_str().to_owned())));
        change.due.push((until, key.clone()));
        change.deliveries.push(NewDelivery {
            mailbox: Mailbox::Enforcer(prompt.enforcer),
            msg_id: self.random.msg_id(now),
            msg_type: MsgType::PromptSend,
            subject: key,
            payload: Some(payload),
            until,
        });
        Ok(())
    }

    /// An enforcer acknowledges a prompt, and the acknowledgement is forwarded to the approver. One that would move the
    /// status backward is ignored.
    pub async fn acknowledge_prompt(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        ack: &Verbatim<'_, PromptAck<'_>>,
    ) -> Result<(), Error> {
        let record = record_of::<Prompt>(&ack.request_id);
        self.update(tenant, &record, |known, now| {
            let known = known.filter(|known| known.value.enforcer == *enforcer).ok_or(Failure::NotFound)?;
            if known.value.prompt_hash != ack.prompt_hash {
                return Err(Error::breaks("promptHash", "is not that of the prompt"));
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(record.key(), Some(&known)));
            if known.value.acknowledge(ack.status) == AckResult::Advance {
                let text = Bytes::from(ack.raw().as_str().to_owned());
                let actor = Actor::Enforcer(enforcer.as_str());
                self.add_prompt_ack(&mut change, record.key(), &known.value, (ack, text), actor, now)?;
            }
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    /// What a prompt that nobody took comes to at its end: its approver is told. `None` if somebody took it.
    pub(crate) fn expire_prompt(
        &self,
        tenant: &TenantId,
        record: &Record,
        now: Timestamp,
    ) -> Result<Option<Change>, Error> {
        let Some(known) = Prompt::read(Some(record))? else { return Ok(None) };
        if known.value.acknowledge(AckStatus::Expired) != AckResult::Advance {
            return Ok(None);
        }
        let ack = PromptAck {
            request_id: record.key.id.parse().map_err(|_| Failure::Internal)?,
            prompt_hash: known.value.prompt_hash,
            status: AckStatus::Expired,
            ack_at: now,
            details: None,
        };
        let text = serde_json::to_vec(&ack).map_err(|_| Failure::Internal)?;
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::unchanged(record.key.clone(), Some(&known)));
        change.due.push((now.plus(self.retention.after_end), record.key.clone()));
        let ack = (&ack, text.into());
        self.add_prompt_ack(&mut change, record.key.clone(), &known.value, ack, Actor::Clock, now)?;
        Ok(Some(change))
    }

    fn add_prompt_ack(
        &self,
        change: &mut Change,
        key: Key,
        prompt: &Prompt,
        (ack, text): (&PromptAck<'_>, Bytes),
        actor: Actor<'_>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let payload = self.random.payload_id(now);
        let (status, ack_at) = (ack.status, ack.ack_at);
        let next = Prompt { status, ack_at, ack: Some(payload), ..prompt.clone() };
        change.puts.push(next.put(key.clone())?);
        change.audit.push(audit::action(key.clone(), actor, "prompt.acknowledged")?);
        change.payloads.push((payload, text));
        let msg_types = vec![MsgType::PromptSend];
        change.removals.push(Removal::BySubject { subject: key.clone(), msg_types });
        change.deliveries.push(NewDelivery {
            mailbox: Mailbox::News(next.approver),
            msg_id: self.random.msg_id(now),
            msg_type: MsgType::PromptAck,
            subject: key,
            payload: Some(payload),
            until: now.plus(self.retention.after_end),
        });
        Ok(())
    }
}

fn hash_and_session<'a>(body: &'a PromptSubmit<'_>) -> (Sha256Hex, Option<&'a SessionId>) {
    match body {
        PromptSubmit::Sealed(sealed) => (sealed.prompt_hash, sealed.session_id.as_ref()),
        PromptSubmit::Open(prompt) => (prompt.prompt_hash, prompt.session_id.as_ref()),
    }
}

/// The text has a limit of its own; everything around it is limited as it is written.
fn check_size(body: &Verbatim<'_, PromptSubmit<'_>>) -> Result<(), Error> {
    let (text, as_written, limit) = match &**body {
        PromptSubmit::Sealed(sealed) => {
            let length = sealed.ciphertext.get().len();
            (length, length, limits::MAX_PROMPT_CIPHERTEXT)
        }
        PromptSubmit::Open(prompt) => {
            let members = body.raw().members().map_err(Error::in_hashed_body)?;
            let text = members.rest().find(|(name, _)| *name == "text");
            (prompt.text.len(), text.map_or(0, |(_, text)| text.get().len()), limits::MAX_PROMPT)
        }
    };
    Error::check_size("text", text, limit)?;
    Error::check_size("body", body.raw().as_str().len() - as_written, limits::MAX_OTHER_BODY)
}

/// The enforcer that the envelope names, else that of the session, else the only one that is paired. Whatever way led to it,
/// it must admit the approver.
fn recipient(
    submission: &PromptSubmission<'_>,
    paired: Option<Versioned<PairedApprover>>,
    of_candidate: Option<&Versioned<PairedEnforcer>>,
    of_session: Option<&EnforcerId>,
) -> Result<EnforcerId, Error> {
    let is_admitted = PairedEnforcer::admits(of_candidate, &submission.approver);
    match (&submission.recipient, of_session) {
        (Some(named), _) if is_admitted => return Ok(named.clone()),
        (Some(_), _) => return Err(Failure::NoRecipient.into()),
        (None, Some(of_session)) if is_admitted => return Ok(of_session.clone()),
        // A session that the approver may not see is treated as one that does not exist.
        (None, _) => {}
    }
    match paired.map(|paired| paired.value.enforcers).unwrap_or_default().as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(Failure::NoRecipient.into()),
    }
}
