//! A prompt: opened, checked and answered by the enforcer.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim,
    envelope::Envelope,
    extension::{EXPIRES_AT, SALT, STATEMENT, STOP},
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    msg_type::MsgType,
    parse,
    prompt::{AckStatus, PromptSend, PromptSubmit, SealedPrompt, Target},
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::write::{PromptContent, STATEMENT_TEXT, STOP_TEXT, context};
use crate::{
    checks::{self, Check, ensure},
    ends::enforcer::Enforcer,
    exchange::seal::{SealError, Sealed},
    gateway::http::{Call, CallError},
    identity::{
        keys::{DeviceKeys, Fingerprint},
        pairing::statement::Statement,
        profile::{Party, Pin, Pins},
    },
    journal::{Journal, JournalError},
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
    /// The words, the statement, or that the agent is stopped.
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

impl PromptReader<'_> {
    /// Opens a `prompt.send` envelope, in the order of `docs/trust.md`, and records that it is taken.
    pub fn open(&self, envelope: &Envelope<'_>, now: Timestamp) -> Result<OpenedPrompt, PromptRefused> {
        let relayed = Relayed::read(envelope, self.pins, now)?;
        checks::all(&Relayed::SENDER, &relayed)?;
        let text = relayed.open(self)?;
        let unsealed = Unsealed::read(&relayed, &text, now)?;
        checks::all(&Unsealed::AGREES, &unsealed)?;
        let prompt = unsealed.accept()?;
        self.take(&prompt, now)?;
        Ok(prompt)
    }

    /// Records that a prompt is taken; the error says that it was taken before.
    fn take(&self, prompt: &OpenedPrompt, now: Timestamp) -> Result<(), PromptRefused> {
        let keep_until = prompt.expires_at.plus(SKEW).max(now.plus(MIN_MEMORY));
        // Under the approver's name: nobody can use up the ids of somebody else, or the nonces of decisions.
        let key = format!("prompt {} {}", prompt.approver, prompt.request_id);
        let is_new = self.journal.use_nonce(&key, prompt.request_id.as_str(), keep_until, now)?;
        ensure(is_new, PromptRefused::Replayed)
    }
}

/// A prompt as the gateway relays it: sealed content, and what the gateway says of it.
struct Relayed<'a> {
    request_id: &'a RequestId,
    outer: SealedPrompt<'a>,
    sealed: Sealed,
    /// The device that it names as its sender, which is pinned as this approver's.
    pin: &'a Pin,
    approver: &'a ApproverId,
    /// Whether the keys of that device count now.
    is_active: bool,
}

impl<'a> Relayed<'a> {
    const SENDER: [Check<Self, PromptRefused>; 1] =
        [("sender", |it| ensure(it.is_active, PromptRefused::UnknownSender))];

    fn read(envelope: &'a Envelope<'a>, pins: &'a Pins, now: Timestamp) -> Result<Self, PromptRefused> {
        let outer = outer(envelope)?;
        let sealed: Sealed =
            serde_json::from_str(outer.ciphertext.get()).map_err(|_| PromptRefused::Malformed)?;
        let pin = sealed.sender().and_then(|fingerprint| pins.get(fingerprint));
        let pin = pin.ok_or(PromptRefused::UnknownSender)?;
        let Party::Approver(approver) = pin.party() else { return Err(PromptRefused::UnknownSender) };
        let is_active = pins.is_active(pin.fingerprint(), now);
        Ok(Self { request_id: &envelope.request_id, outer, sealed, pin, approver, is_active })
    }

    fn open(&self, reader: &PromptReader<'_>) -> Result<Zeroizing<Vec<u8>>, PromptRefused> {
        let context = context(self.request_id, self.outer.prompt_hash, self.approver, self.outer.target);
        Ok(self.sealed.open(reader.keys, reader.enforcer, self.pin.bundle(), &context)?)
    }
}

/// The content of a prompt beside what the gateway says of it.
struct Unsealed<'a> {
    relayed: &'a Relayed<'a>,
    prompt: Verbatim<'a, PromptSend<'a>>,
    /// What it says, and until when; `None` if it is not in the form that we write.
    said: Option<(PromptContent, Timestamp)>,
    now: Timestamp,
}

impl<'a> Unsealed<'a> {
    const AGREES: [Check<Self, PromptRefused>; 5] = [
        ("hash", |it| {
            let is_own = it.prompt.prompt_hash.check(it.prompt.raw(), "promptHash").is_ok()
                && it.prompt.prompt_hash == it.relayed.outer.prompt_hash;
            ensure(is_own, PromptRefused::Differs("promptHash"))
        }),
        ("request id", |it| {
            ensure(it.prompt.request_id == *it.relayed.request_id, PromptRefused::Differs("requestId"))
        }),
        ("target", |it| {
            ensure(it.prompt.target == it.relayed.outer.target, PromptRefused::Differs("target"))
        }),
        ("content", |it| {
            let is_in_place = it.said.as_ref().is_some_and(|(content, _)| {
                let is_for_machine = it.prompt.target == Target::Other;
                match content {
                    PromptContent::Text(_) => true,
                    PromptContent::Statement(_) => is_for_machine,
                    PromptContent::Stop { .. } => is_for_machine && it.prompt.session_id.is_some(),
                }
            });
            ensure(is_in_place, PromptRefused::Malformed)
        }),
        ("time", |it| {
            let is_in_time = it.said.as_ref().is_some_and(|(_, expires_at)| it.now < expires_at.plus(SKEW));
            ensure(is_in_time, PromptRefused::Expired)
        }),
    ];

    fn read(relayed: &'a Relayed<'a>, text: &'a [u8], now: Timestamp) -> Result<Self, PromptRefused> {
        let prompt: Verbatim<'_, PromptSend<'_>> = parse(text).map_err(|_| PromptRefused::Malformed)?;
        let said = content(&prompt).ok();
        Ok(Self { relayed, prompt, said, now })
    }

    /// The prompt as it is used once every check has passed.
    fn accept(self) -> Result<OpenedPrompt, PromptRefused> {
        let (content, expires_at) = self.said.ok_or(PromptRefused::Malformed)?;
        Ok(OpenedPrompt {
            request_id: self.prompt.request_id.clone(),
            prompt_hash: self.relayed.outer.prompt_hash,
            approver: self.relayed.approver.clone(),
            device: self.relayed.pin.fingerprint(),
            target: self.prompt.target,
            content,
            session_id: self.prompt.session_id.clone(),
            created_at: self.prompt.created_at,
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
        let salt: Option<String> = SALT.read(&mut members)?;
        let expires_at: Option<Timestamp> = EXPIRES_AT.read(&mut members)?;
        let statement = STATEMENT.read::<RawObject<'_>>(&mut members)?;
        Ok((salt.and(expires_at), statement, STOP.read::<bool>(&mut members)?))
    };
    let (expires_at, statement, stop) = read().map_err(|_| PromptRefused::Malformed)?;
    let expires_at = expires_at.ok_or(PromptRefused::Malformed)?;
    let text = &prompt.text;
    let content = match (statement, stop) {
        (None, None) => PromptContent::Text(text.clone()),
        (None, Some(true)) => PromptContent::Stop { words: (text != STOP_TEXT).then(|| text.clone()) },
        (Some(statement), None) if text == STATEMENT_TEXT => {
            let statement: Result<Statement, _> = serde_json::from_str(statement.as_str());
            PromptContent::Statement(Box::new(statement.map_err(|_| PromptRefused::Malformed)?))
        }
        _ => return Err(PromptRefused::Malformed),
    };
    Ok((content, expires_at))
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
