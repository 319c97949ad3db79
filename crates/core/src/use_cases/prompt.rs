//! Text from an approver to an agent, and what became of it.

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

use super::idempotency::{self, IdempotencyKey};
use crate::{
    Error, Gateway,
    edges::{Actor, note},
    gateway::Attempt,
    policy::{POLICY_ID, Policy},
    prompt::{Prompt, Verdict},
    session::Session,
    store::{Change, Mailbox, NewDelivery, Removal},
    stored::{Stored as _, unchanged},
};

/// What an approver sends.
#[derive(Debug, Clone)]
pub struct PromptSubmission<'a> {
    /// Whose tenant.
    pub tenant: TenantId,
    /// Who.
    pub approver: ApproverId,
    /// Whether they see the sessions of every enforcer, and not only of those they are paired with.
    pub sees_all: bool,
    /// Under which id.
    pub request_id: RequestId,
    /// The prompt.
    pub body: Verbatim<'a, PromptSubmit<'a>>,
    /// The enforcer that the envelope names.
    pub recipient: Option<EnforcerId>,
    /// The request's `Idempotency-Key`.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// How a prompt stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptStanding {
    /// Its hash.
    pub prompt_hash: Sha256Hex,
    /// What became of it.
    pub status: AckStatus,
    /// Since when.
    pub ack_at: Timestamp,
    /// Whether it had been sent before.
    pub replayed: bool,
}

impl Gateway {
    /// Queues a prompt for its enforcer, or recognises it.
    pub async fn send_prompt(&self, submission: PromptSubmission<'_>) -> Result<PromptStanding, Error> {
        let PromptSubmission { tenant, approver, request_id, body, idempotency_key, .. } = &submission;
        body.check_hash().map_err(Error::in_hashed_body)?;
        let (prompt_hash, session, text, limit) = match &**body {
            PromptSubmit::Sealed(sealed) => (
                sealed.prompt_hash,
                sealed.session_id.as_ref(),
                sealed.ciphertext.get().len(),
                limits::MAX_PROMPT_CIPHERTEXT,
            ),
            PromptSubmit::Open(prompt) => {
                (prompt.prompt_hash, prompt.session_id.as_ref(), prompt.text.len(), limits::MAX_PROMPT)
            }
        };
        // As it is written, which is what the rest of the message is counted against.
        let written = match &**body {
            PromptSubmit::Sealed(_) => text,
            PromptSubmit::Open(_) => {
                let members = body.raw().members().map_err(Error::in_hashed_body)?;
                members.rest().find(|(name, _)| *name == "text").map_or(0, |(_, text)| text.get().len())
            }
        };
        if text > limit || body.raw().as_str().len() - written > limits::MAX_OTHER_BODY {
            return Err(Failure::TooLarge.into());
        }
        let key = Prompt::key(request_id);
        let used = idempotency::Use { key: idempotency_key.as_ref(), request_id, hash: prompt_hash };
        let mut keys = vec![key.clone(), Policy::key(POLICY_ID)];
        keys.extend(idempotency_key.as_ref().map(IdempotencyKey::record_key));
        loop {
            let loaded = self.store.load(tenant, &keys).await?;
            let known = Prompt::read(loaded.records[0].as_ref())?;
            let policy =
                Policy::read(loaded.records[1].as_ref())?.map(|policy| policy.value).unwrap_or_default();
            if policy.require_idempotency_key && idempotency_key.is_none() {
                return Err(Failure::PolicyDeny.into());
            }
            let mut change = Change::new(tenant.clone());
            let remembered = loaded.records.last().and_then(Option::as_ref);
            if !used.remember(remembered, loaded.now, &self.retention, &mut change)? {
                self.refuse_resting_on(change, Failure::Idempotency).await?;
                continue;
            }
            change.guards.push(unchanged(key.clone(), known.as_ref()));
            let (prompt, replayed) = match known {
                Some(known)
                    if known.value.prompt_hash == prompt_hash && known.value.approver == *approver =>
                {
                    // The answer that was given, whatever has become of the prompt since.
                    (
                        Prompt { status: AckStatus::Queued, ack_at: known.value.created_at, ..known.value },
                        true,
                    )
                }
                Some(_) => {
                    self.refuse_resting_on(change, Failure::AlreadyExists).await?;
                    continue;
                }
                None => {
                    let stored_as = self.chance.payload_id(loaded.now);
                    let enforcer = self.prompt_recipient(&submission, session).await?;
                    let prompt = Prompt {
                        approver: approver.clone(),
                        enforcer,
                        prompt_hash,
                        body: Some(stored_as),
                        created_at: loaded.now,
                        status: AckStatus::Queued,
                        ack_at: loaded.now,
                        ack: None,
                    };
                    let until = loaded.now.plus(self.retention.after_end);
                    change.puts.push(prompt.put(key.clone())?);
                    change.audit.push(note(key.clone(), Actor::Approver(approver.as_str()), "prompt.sent")?);
                    change.payloads.push((stored_as, Bytes::from(body.raw().as_str().to_owned())));
                    change.due.push((until, key.clone()));
                    change.deliveries.push(NewDelivery {
                        mailbox: Mailbox::Enforcer(prompt.enforcer.clone()),
                        msg_id: self.chance.msg_id(loaded.now),
                        msg_type: MsgType::PromptSend,
                        subject: key.clone(),
                        payload: Some(stored_as),
                        until,
                    });
                    (prompt, false)
                }
            };
            if let Attempt::Done = self.commit(change, None).await? {
                let Prompt { prompt_hash, status, ack_at, .. } = prompt;
                return Ok(PromptStanding { prompt_hash, status, ack_at, replayed });
            }
        }
    }

    /// The enforcer that the envelope names, else that of the session, else the one that is paired.
    async fn prompt_recipient(
        &self,
        submission: &PromptSubmission<'_>,
        session: Option<&SessionId>,
    ) -> Result<EnforcerId, Error> {
        let PromptSubmission { tenant, approver, sees_all, .. } = submission;
        if let Some(named) = &submission.recipient {
            return Ok(named.clone());
        }
        let paired = self.paired_enforcers(tenant, approver).await?;
        if let Some(session) = session {
            let loaded = self.store.load(tenant, &[Session::key(session)]).await?;
            // One that the approver may not see is as one that is not there.
            if let Some(known) = Session::read(loaded.first())?
                && (*sees_all || paired.contains(&known.value.enforcer))
            {
                return Ok(known.value.enforcer);
            }
        }
        match paired.as_slice() {
            [only] => Ok(only.clone()),
            _ => Err(Failure::NoApprover.into()),
        }
    }

    /// The enforcer that a prompt is for.
    pub async fn enforcer_of_prompt(
        &self,
        tenant: &TenantId,
        request_id: &RequestId,
    ) -> Result<EnforcerId, Error> {
        let loaded = self.store.load(tenant, &[Prompt::key(request_id)]).await?;
        let known = Prompt::read(loaded.first())?;
        Ok(known.ok_or(Failure::NotFound)?.value.enforcer)
    }

    /// An enforcer says what became of a prompt; the approver is told. Going back is ignored.
    pub async fn acknowledge_prompt(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        ack: &Verbatim<'_, PromptAck<'_>>,
    ) -> Result<(), Error> {
        let key = Prompt::key(&ack.request_id);
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&key)).await?;
            let known = Prompt::read(loaded.first())?;
            let known = known.filter(|known| known.value.enforcer == *enforcer).ok_or(Failure::NotFound)?;
            if known.value.prompt_hash != ack.prompt_hash {
                let fault = countersign_wire::Error::breaks("promptHash", "is not that of the prompt");
                return Err(Error::Faulty { failure: Failure::Validation, fault });
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(key.clone(), Some(&known)));
            if known.value.acknowledge(ack.status) == Verdict::Advance {
                let stored_as = self.chance.payload_id(loaded.now);
                let (status, ack_at) = (ack.status, ack.ack_at);
                let next = Prompt { status, ack_at, ack: Some(stored_as), ..known.value.clone() };
                change.puts.push(next.put(key.clone())?);
                let actor = Actor::Enforcer(enforcer.as_str());
                change.audit.push(note(key.clone(), actor, "prompt.acknowledged")?);
                change.payloads.push((stored_as, Bytes::from(ack.raw().as_str().to_owned())));
                let msg_types = vec![MsgType::PromptSend];
                change.removals.push(Removal::About { subject: key.clone(), msg_types });
                change.deliveries.push(NewDelivery {
                    mailbox: Mailbox::News(next.approver),
                    msg_id: self.chance.msg_id(loaded.now),
                    msg_type: MsgType::PromptAck,
                    subject: key.clone(),
                    payload: Some(stored_as),
                    until: loaded.now.plus(self.retention.after_end),
                });
            }
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(());
            }
        }
    }
}
