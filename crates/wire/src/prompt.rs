//! Text from an approver to an agent (section 2.6), and what became of it (section 2.7).

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    Error, FromMembers, Members, RawObject, Verbatim,
    artifact::check_namespaces,
    hash::{HashAlg, Sha256Hex},
    id::{RequestId, SessionId},
    raw::{CIPHERTEXT, Ciphertext},
    text::NonEmpty,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The `artifactType` of a prompt.
    pub enum PromptType {
        /// The only one.
        PromptSend = "prompt.send",
    }

    /// Where in the agent's user interface the text goes.
    pub enum Target {
        /// The conversation.
        AgentChat = "agentChat",
        /// The text being composed.
        Composer = "composer",
        /// A tool.
        Tool = "tool",
        /// Somewhere else.
        Other = "other",
    }

    /// What became of a prompt. It only ever leaves `queued`.
    pub enum AckStatus {
        /// Kept for the enforcer.
        Queued = "queued",
        /// The agent has it.
        Delivered = "delivered",
        /// The enforcer refused it.
        Rejected = "rejected",
        /// It came too late.
        Expired = "expired",
        /// It failed.
        Error = "error",
    }
}

/// A prompt in the clear.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptSend<'a> {
    /// Names the prompt.
    pub request_id: RequestId,
    /// The agent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// A repository reference that the participants agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    /// Always `prompt.send`.
    pub artifact_type: PromptType,
    /// When it was made, by the approver's clock.
    pub created_at: Timestamp,
    /// Where it goes.
    pub target: Target,
    /// What it says; never empty.
    pub text: String,
    /// Part of the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
    /// How `prompt_hash` was made.
    pub prompt_hash_alg: HashAlg,
    /// SHA-256 of the canonical prompt without this member.
    pub prompt_hash: Sha256Hex,
    /// Further members under namespaced keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for PromptSend<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let prompt = Self {
            request_id: members.required("requestId")?,
            session_id: members.optional("sessionId")?,
            repo_ref: members.optional("repoRef")?,
            artifact_type: members.required("artifactType")?,
            created_at: members.required("createdAt")?,
            target: members.required("target")?,
            text: members.required::<NonEmpty>("text")?.0,
            metadata: members.optional("metadata")?,
            prompt_hash_alg: members.required("promptHashAlg")?,
            prompt_hash: members.required("promptHash")?,
            extensions: members.optional("extensions")?,
        };
        members.close()?;
        prompt.extensions.as_ref().map_or(Ok(()), check_namespaces)?;
        Ok(prompt)
    }
}

/// A prompt that only its enforcer can read. Members beside these are passed on.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedPrompt<'a> {
    /// Names the prompt, where no envelope does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The agent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Where it goes.
    pub target: Target,
    /// The hash of the prompt inside.
    pub prompt_hash: Sha256Hex,
    /// A string or an object; never looked into.
    pub ciphertext: &'a RawValue,
}

impl<'a> FromMembers<'a> for SealedPrompt<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            request_id: members.optional("requestId")?,
            session_id: members.optional("sessionId")?,
            target: members.required("target")?,
            prompt_hash: members.required("promptHash")?,
            ciphertext: members.required::<Ciphertext<'_>>(CIPHERTEXT)?.0,
        })
    }
}

/// A prompt, either way.
#[derive(Debug, Clone)]
pub enum PromptSubmit<'a> {
    /// Known by its member `ciphertext`.
    Sealed(SealedPrompt<'a>),
    /// Exactly a prompt.
    Open(PromptSend<'a>),
}

impl<'a> FromMembers<'a> for PromptSubmit<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        if members.contains(CIPHERTEXT) {
            SealedPrompt::from_members(members).map(Self::Sealed)
        } else {
            PromptSend::from_members(members).map(Self::Open)
        }
    }
}

impl<'a> Verbatim<'a, PromptSubmit<'a>> {
    /// Hashes a prompt in the clear as it was written and compares; a sealed one passes.
    pub fn check_hash(&self) -> Result<(), Error> {
        match &**self {
            PromptSubmit::Sealed(_) => Ok(()),
            PromptSubmit::Open(prompt) => prompt.prompt_hash.check(self.raw(), "promptHash"),
        }
    }
}

/// What became of a prompt; also the body of `prompt.ack`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptAck<'a> {
    /// The prompt.
    pub request_id: RequestId,
    /// Its hash, so that no other prompt is meant.
    pub prompt_hash: Sha256Hex,
    /// What became of it.
    pub status: AckStatus,
    /// When, by the clock of whoever says so.
    pub ack_at: Timestamp,
    /// Whatever else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for PromptAck<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let ack = Self {
            request_id: members.required("requestId")?,
            prompt_hash: members.required("promptHash")?,
            status: members.required("status")?,
            ack_at: members.required("ackAt")?,
            details: members.optional("details")?,
        };
        members.close()?;
        Ok(ack)
    }
}
