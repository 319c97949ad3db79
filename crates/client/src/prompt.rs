//! What an approver says to an enforcer without being asked: text for its agent, or a statement about a device
//! (docs/prompts.md). Built and sealed by the approver; opened, checked and answered by the enforcer.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim, base64url,
    envelope::Envelope,
    hash::{HashAlg, Sha256Hex},
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    msg_type::MsgType,
    parse,
    prompt::{AckStatus, PromptAck, PromptSend, PromptSubmit, PromptType, SealedPrompt, Target},
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    approver::Approver,
    enforcer::Enforcer,
    http::{Call, CallError},
    journal::{Journal, JournalError},
    keys::{DeviceKeys, Fingerprint},
    pairing::statement::Statement,
    profile::{Party, Pin, Pins},
    random::{self, NoRandomness},
    seal::{Context, Recipient, SealError, Sealed, seal},
};

/// The extension that makes a hash impossible to guess: 128 random bits.
const SALT: &str = "org.proto.salt";

/// The extension with the time from which the prompt must not be used. The gateway does not see it.
const EXPIRES_AT: &str = "org.proto.expiresAt";

/// The extension with a statement about a device.
const STATEMENT: &str = "org.proto.statement";

/// The text of a prompt that has a statement: for readers that do not know statements.
const STATEMENT_TEXT: &str = "A signed statement about a device.";

/// How much the clocks of two ends may differ.
const SKEW: Duration = Duration::from_mins(1);

/// For how long a prompt that was taken is remembered at least.
const MIN_MEMORY: Duration = Duration::from_mins(10);

/// How long one call is retried.
const CALL_TIME: Duration = Duration::from_secs(30);

/// What a prompt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptContent {
    /// Words for the agent.
    Text(String),
    /// A voucher or a revocation, for the enforcer itself. Its own signature has still to be verified.
    Statement(Box<Statement>),
}

/// What an approver wants to say.
#[derive(Debug, Clone)]
pub struct PromptDraft {
    /// The place in the agent's user interface; a statement goes to `other`.
    pub target: Target,
    /// The words or the statement.
    pub content: PromptContent,
    /// The session of the agent that is meant; `None` if any.
    pub session_id: Option<SessionId>,
    /// How long it may be used. A gateway can hold a prompt back, and words have their time.
    pub valid_for: Duration,
}

/// A prompt that is ready to be sent, as often as needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The id of the prompt, by which its acknowledgement is recognised.
    pub request_id: RequestId,
    /// The hash of the prompt, which its acknowledgement repeats.
    pub prompt_hash: Sha256Hex,
    /// The `prompt.send` envelope, as JSON.
    pub envelope: String,
}

/// Why a prompt can't be made or sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// No device of the enforcer is paired.
    #[error("{0} is not paired with this device; pair it first")]
    NotPaired(EnforcerId),
    /// There is nothing in it.
    #[error("the prompt has no text")]
    Empty,
    /// It has a statement and is not for `other`.
    #[error("a statement is for the target other")]
    StatementTarget,
    /// It can't be hashed.
    #[error("the prompt can't be hashed: {0}")]
    Hash(#[from] countersign_wire::Error),
    /// It can't be sealed.
    #[error("the prompt can't be sealed: {0}")]
    Seal(#[from] SealError),
    /// Without randomness there is no prompt.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// The gateway refused, or could not be reached.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Prompt {
    /// Builds, hashes, salts and seals a prompt to every device of the enforcer that is pinned and counts now.
    pub fn build(
        draft: &PromptDraft,
        approver: &ApproverId,
        enforcer: &EnforcerId,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Self, PromptError> {
        let party = Party::Enforcer(enforcer.clone());
        let devices: Vec<&Pin> = pins.active(&party, now).collect();
        if devices.is_empty() {
            return Err(PromptError::NotPaired(enforcer.clone()));
        }
        let Ok(request_id) = RequestId::new(base64url::encode(&random::bytes::<16>()?)) else {
            unreachable!("22 characters of base64url are an id")
        };
        let (text, prompt_hash) = plaintext(draft, &request_id, now)?;
        let context = context(&request_id, prompt_hash, approver, draft.target);
        let recipients: Vec<Recipient<'_>> =
            devices.iter().map(|pin| Recipient { id: enforcer.as_str(), bundle: pin.bundle() }).collect();
        let ciphertext = seal(keys, &context, text.as_bytes(), &recipients)?;
        let mut body = json!({ "ciphertext": ciphertext, "promptHash": prompt_hash, "target": draft.target });
        if let Some(session_id) = &draft.session_id {
            body["sessionId"] = json!(session_id);
        }
        let envelope = json!({
            "msgType": MsgType::PromptSend, "requestId": request_id, "createdAt": now,
            "sender": { "approverId": approver }, "recipient": { "enforcerId": enforcer }, "body": body,
        });
        Ok(Self { request_id, prompt_hash, envelope: envelope.to_string() })
    }
}

/// The object of section 2.6, and its hash.
fn plaintext(
    draft: &PromptDraft,
    request_id: &RequestId,
    now: Timestamp,
) -> Result<(Zeroizing<String>, Sha256Hex), PromptError> {
    let mut extensions = json!({
        SALT: base64url::encode(&random::bytes::<16>()?),
        EXPIRES_AT: now.plus(draft.valid_for),
    });
    let text = match &draft.content {
        PromptContent::Text(text) if text.is_empty() => return Err(PromptError::Empty),
        PromptContent::Text(text) => text,
        PromptContent::Statement(_) if draft.target != Target::Other => {
            return Err(PromptError::StatementTarget);
        }
        PromptContent::Statement(statement) => {
            extensions[STATEMENT] = json!(statement);
            STATEMENT_TEXT
        }
    };
    let mut prompt = json!({
        "requestId": request_id, "artifactType": PromptType::PromptSend, "createdAt": now, "target": draft.target,
        "text": text, "promptHashAlg": HashAlg::Sha256, "extensions": extensions,
    });
    if let Some(session_id) = &draft.session_id {
        prompt["sessionId"] = json!(session_id);
    }
    let unhashed = Zeroizing::new(prompt.to_string());
    let hash = Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes())?, "promptHash")?;
    prompt["promptHash"] = json!(hash);
    Ok((Zeroizing::new(prompt.to_string()), hash))
}

fn context(request_id: &RequestId, hash: Sha256Hex, approver: &ApproverId, target: Target) -> Context {
    Context::prompt(request_id.as_str(), &hash.to_string(), approver.as_str(), target.as_str())
}

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
        let is_new = self.journal.use_nonce(&key, prompt.request_id.as_str(), keep_until)?;
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

impl Approver {
    /// Sends a prompt to one enforcer. It is queued when this returns; what became of it comes over a
    /// [channel](crate::channel), and is the gateway's word.
    pub async fn prompt(
        &self,
        enforcer: &EnforcerId,
        draft: &PromptDraft,
        pins: &Pins,
    ) -> Result<Prompt, PromptError> {
        let prompt = Prompt::build(draft, &self.id, enforcer, &self.keys, pins, self.clock.now())?;
        self.send_prompt(&prompt).await?;
        Ok(prompt)
    }

    /// Sends a prompt that was built. Sending it again is harmless.
    pub async fn send_prompt(&self, prompt: &Prompt) -> Result<AckStatus, PromptError> {
        let call = Call::post("/v1/prompt", prompt.envelope.clone()).idempotent(prompt.request_id.as_str());
        let answer = self.http.send_until(&call, Instant::now() + CALL_TIME).await?;
        let ack: PromptAck<'_> = answer.object()?;
        match ack.request_id == prompt.request_id && ack.prompt_hash == prompt.prompt_hash {
            true => Ok(ack.status),
            false => Err(CallError::NotUnderstood.into()),
        }
    }
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
