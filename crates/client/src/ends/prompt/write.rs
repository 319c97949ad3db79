//! A prompt: built and sealed by an approver.

use std::time::Duration;

use countersign_wire::{
    RawObject, base64url,
    extension::{EXPIRES_AT, SALT, STATEMENT, STOP},
    hash::{HashAlg, Sha256Hex},
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    msg_type::MsgType,
    prompt::{AckStatus, PromptType, Target},
    timestamp::Timestamp,
};
use serde_json::json;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    ends::approver::Approver,
    exchange::seal::{Context, Recipient, SealError, seal},
    gateway::{
        answers::prompt_status,
        http::{Call, CallError},
    },
    identity::{
        keys::DeviceKeys,
        pairing::statement::Statement,
        profile::{Party, Pin, Pins},
    },
    random::{self, NoRandomness},
};

/// The text of a prompt that has a statement: for readers that do not know statements.
pub(super) const STATEMENT_TEXT: &str = "A signed statement about a device.";

/// The text of a prompt that stops an agent without words: for readers that do not know it, who pass it on as words.
pub(super) const STOP_TEXT: &str = "Stop this agent.";

/// How long one call is retried.
const CALL_TIME: Duration = Duration::from_secs(30);

/// What a prompt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptContent {
    /// Words for the agent.
    Text(String),
    /// A voucher or a revocation, for the enforcer itself. Its own signature has still to be verified.
    Statement(Box<Statement>),
    /// From now on nothing more is done in the session that the prompt names.
    Stop {
        /// Why, for the agent and whoever is at its machine.
        words: Option<String>,
    },
}

/// What an approver wants to say.
#[derive(Debug, Clone)]
pub struct PromptDraft {
    /// The place in the agent's user interface; what is for the enforcer itself goes to `other`.
    pub target: Target,
    /// The words, the statement, or that the agent is stopped.
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
    /// It stops an agent, and is not for `other` or names no session.
    #[error("what stops an agent names its session, and is for the target other")]
    StopTarget,
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
        let Ok(request_id) = RequestId::new(random::id()?) else { unreachable!("a UUID is an id") };
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

/// A prompt (docs/protocol.md#prompts-and-sessions), and its hash.
pub(super) fn plaintext(
    draft: &PromptDraft,
    request_id: &RequestId,
    now: Timestamp,
) -> Result<(Zeroizing<String>, Sha256Hex), PromptError> {
    let mut extensions = json!({
        SALT.key(): base64url::encode(&random::bytes::<16>()?),
        EXPIRES_AT.key(): now.plus(draft.valid_for),
    });
    let text = match &draft.content {
        PromptContent::Text(text) if text.is_empty() => return Err(PromptError::Empty),
        PromptContent::Text(text) => text,
        PromptContent::Statement(_) if draft.target != Target::Other => {
            return Err(PromptError::StatementTarget);
        }
        PromptContent::Statement(statement) => {
            extensions[STATEMENT.key()] = json!(statement);
            STATEMENT_TEXT
        }
        PromptContent::Stop { .. } if draft.target != Target::Other || draft.session_id.is_none() => {
            return Err(PromptError::StopTarget);
        }
        PromptContent::Stop { words } => {
            extensions[STOP.key()] = json!(true);
            words.as_deref().filter(|words| !words.is_empty()).unwrap_or(STOP_TEXT)
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

pub(super) fn context(
    request_id: &RequestId,
    hash: Sha256Hex,
    approver: &ApproverId,
    target: Target,
) -> Context {
    Context::prompt(request_id.as_str(), &hash.to_string(), approver.as_str(), target.as_str())
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

    /// Sends a prompt that was built. Sending it again is harmless. It was accepted when this returns, and is `queued` where the
    /// gateway does not say more.
    pub async fn send_prompt(&self, prompt: &Prompt) -> Result<AckStatus, PromptError> {
        let call = Call::post("/v1/prompt", prompt.envelope.clone()).idempotent(prompt.request_id.as_str());
        let answer = self.http.send_until(&call, Instant::now() + CALL_TIME).await?;
        Ok(prompt_status(&answer, |ack| {
            ack.request_id == prompt.request_id && ack.prompt_hash == prompt.prompt_hash
        }))
    }
}
