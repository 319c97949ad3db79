//! A prompt: opened, checked and answered by the enforcer.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim,
    envelope::Envelope,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    msg_type::MsgType,
    parse,
    prompt::{AckStatus, PromptSend, PromptSubmit, SealedPrompt, Target},
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::write::{EXPIRES_AT, PromptContent, SALT, STATEMENT, STATEMENT_TEXT, context};
use crate::{
    enforcer::Enforcer,
    http::{Call, CallError},
    journal::{Journal, JournalError},
    keys::{DeviceKeys, Fingerprint},
    pairing::statement::Statement,
    profile::{Party, Pins},
    seal::{SealError, Sealed},
};

/// How much the clocks of two ends may differ.
const SKEW: Duration = Duration::from_mins(1);

/// For how long a prompt that was taken is remembered at least.
const MIN_MEMORY: Duration = Duration::from_mins(10);

/// How long one call is retried.
const CALL_TIME: Duration = Duration::from_secs(30);

/// A prompt that the enforcer has opened and checked, and takes this once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedPrompt {
    /// The id of the prompt.
    pub request_id: RequestId,
    /// The hash of the prompt, recomputed here.
    pub prompt_hash: Sha256Hex,
    /// Who says it, as their pinned keys have proven.
    pub approver: ApproverId,
    /// The device that it comes from.
    pub device: Fingerprint,
    /// The place in the agent's user interface.
    pub target: Target,
    /// The words or the statement.
    pub content: PromptContent,
    /// The session that is meant, by the approver's word and not the gateway's; `None` if any.
    pub session_id: Option<SessionId>,
    /// When the approver made it, by its clock.
    pub created_at: Timestamp,
    /// The time from which it must not be used.
    pub expires_at: Timestamp,
}

/// Why a prompt is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptRefused {
    /// It is not a prompt of the protocol, or not one that our approvers make.
    #[error("the prompt is not in a format that is known here")]
    Malformed,
    /// It is not sealed, so the gateway could have written it.
    #[error("the prompt is not sealed: anybody between could have written it")]
    NotSealed,
    /// Its sender is not pinned as an approver, or not any more.
    #[error("the prompt comes from a device that is not paired, or not any more")]
    UnknownSender,
    /// It does not open.
    #[error("the prompt does not open: {0}")]
    Seal(#[from] SealError),
    /// What was sealed is not what the gateway says.
    #[error("what was sealed differs from what the gateway says in {0}")]
    Differs(&'static str),
    /// Its time has passed.
    #[error("the prompt came too late")]
    Expired,
    /// It was taken before.
    #[error("the prompt was taken before")]
    Replayed,
    /// It can't be recorded that it is taken.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl PromptRefused {
    /// What the approver is told of it. Of one that was taken before nobody knows what became of it.
    pub fn status(&self) -> AckStatus {
        match self {
            Self::Expired => AckStatus::Expired,
            Self::Replayed | Self::Journal(_) => AckStatus::Error,
            _ => AckStatus::Rejected,
        }
    }
}

/// The enforcer that checks a prompt, and what it knows.
#[derive(Clone, Copy)]
pub struct PromptReader<'a> {
    /// The enforcer's id, which prompts are sealed to.
    pub enforcer: &'a str,
    /// The enforcer's keys, which open them.
    pub keys: &'a DeviceKeys,
    /// Whose prompts are taken.
    pub pins: &'a Pins,
    /// Which prompts were taken.
    pub journal: &'a dyn Journal,
}

/// A check of a prompt. The tests take each out once, to show that nothing else catches what it catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Sender,
    Hash,
    RequestId,
    Target,
    Content,
    Time,
    Replay,
}

impl PromptReader<'_> {
    /// Opens a `prompt.send` envelope, in the order of `docs/trust.md`, and records that it is taken.
    pub fn open(&self, envelope: &Envelope<'_>, now: Timestamp) -> Result<OpenedPrompt, PromptRefused> {
        self.open_except(envelope, now, None)
    }

    fn open_except(
        &self,
        envelope: &Envelope<'_>,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<OpenedPrompt, PromptRefused> {
        let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
        let outer = outer(envelope)?;
        let sealed: Sealed =
            serde_json::from_str(outer.ciphertext.get()).map_err(|_| PromptRefused::Malformed)?;
        let pin = sealed.sender().and_then(|fingerprint| self.pins.get(fingerprint));
        let pin = pin.ok_or(PromptRefused::UnknownSender)?;
        if fails(Check::Sender, !self.pins.is_active(pin.fingerprint(), now)) {
            return Err(PromptRefused::UnknownSender);
        }
        let Party::Approver(approver) = pin.party() else { return Err(PromptRefused::UnknownSender) };
        let context = context(&envelope.request_id, outer.prompt_hash, approver, outer.target);
        let text = sealed.open(self.keys, self.enforcer, pin.bundle(), &context)?;
        let prompt: Verbatim<'_, PromptSend<'_>> = parse(&text).map_err(|_| PromptRefused::Malformed)?;
        let is_other_content = prompt.prompt_hash.check(prompt.raw(), "promptHash").is_err()
            || prompt.prompt_hash != outer.prompt_hash;
        for (check, differs, what) in [
            (Check::Hash, is_other_content, "promptHash"),
            (Check::RequestId, prompt.request_id != envelope.request_id, "requestId"),
            (Check::Target, prompt.target != outer.target, "target"),
        ] {
            if fails(check, differs) {
                return Err(PromptRefused::Differs(what));
            }
        }
        let (said, expires_at) = content(&prompt)?;
        let is_misplaced = matches!(said, PromptContent::Statement(_)) && prompt.target != Target::Other;
        if fails(Check::Content, is_misplaced) {
            return Err(PromptRefused::Malformed);
        }
        if fails(Check::Time, now >= expires_at.plus(SKEW)) {
            return Err(PromptRefused::Expired);
        }
        let keep_until = expires_at.plus(SKEW).max(now.plus(MIN_MEMORY));
        // Under the approver's name: nobody can use up the ids of somebody else, or the nonces of decisions.
        let key = format!("prompt {approver} {}", prompt.request_id);
        let is_new = self.journal.use_nonce(&key, prompt.request_id.as_str(), keep_until, now)?;
        if fails(Check::Replay, !is_new) {
            return Err(PromptRefused::Replayed);
        }
        Ok(OpenedPrompt {
            request_id: prompt.request_id.clone(),
            prompt_hash: outer.prompt_hash,
            approver: approver.clone(),
            device: pin.fingerprint(),
            target: prompt.target,
            content: said,
            session_id: prompt.session_id.clone(),
            created_at: prompt.created_at,
            expires_at,
        })
    }
}

/// What stands around the sealed prompt, which is the gateway's word.
fn outer<'a>(envelope: &Envelope<'a>) -> Result<SealedPrompt<'a>, PromptRefused> {
    if envelope.msg_type != MsgType::PromptSend {
        return Err(PromptRefused::Malformed);
    }
    let body = envelope.body.view::<PromptSubmit<'_>>().map_err(|_| PromptRefused::Malformed)?;
    match body.into_view() {
        PromptSubmit::Sealed(sealed) => Ok(sealed),
        PromptSubmit::Open(_) => Err(PromptRefused::NotSealed),
    }
}

/// What a prompt says, and until when it may be used. Both must be there, in the one form that we write.
fn content(prompt: &PromptSend<'_>) -> Result<(PromptContent, Timestamp), PromptRefused> {
    let read = || -> Result<_, countersign_wire::Error> {
        let extensions = prompt.extensions.ok_or_else(|| countersign_wire::Error::missing("extensions"))?;
        let mut members = extensions.members()?;
        let _salt: String = members.required(SALT)?;
        Ok((members.required::<Timestamp>(EXPIRES_AT)?, members.optional::<RawObject<'_>>(STATEMENT)?))
    };
    let (expires_at, statement) = read().map_err(|_| PromptRefused::Malformed)?;
    let Some(statement) = statement else {
        return Ok((PromptContent::Text(prompt.text.clone()), expires_at));
    };
    let statement: Statement =
        serde_json::from_str(statement.as_str()).map_err(|_| PromptRefused::Malformed)?;
    match prompt.text == STATEMENT_TEXT {
        true => Ok((PromptContent::Statement(Box::new(statement)), expires_at)),
        false => Err(PromptRefused::Malformed),
    }
}

/// The call that answers a prompt.
pub(crate) fn answer(
    enforcer: &EnforcerId,
    request_id: &RequestId,
    prompt_hash: Sha256Hex,
    status: AckStatus,
    now: Timestamp,
) -> Call {
    let body: Value =
        json!({ "requestId": request_id, "promptHash": prompt_hash, "status": status, "ackAt": now });
    let envelope = json!({
        "msgType": MsgType::PromptAck, "requestId": request_id, "createdAt": now,
        "sender": { "enforcerId": enforcer }, "body": body,
    });
    Call::post("/v1/prompt", envelope.to_string())
}

impl Enforcer {
    /// Tells the approver what became of a prompt. Answering again changes nothing.
    pub async fn answer_prompt(&self, prompt: &OpenedPrompt, status: AckStatus) -> Result<(), CallError> {
        let call = answer(&self.id, &prompt.request_id, prompt.prompt_hash, status, self.clock.now());
        self.http.send_until(&call, Instant::now() + CALL_TIME).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
