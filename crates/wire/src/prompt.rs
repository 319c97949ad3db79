//! Prompts: text from an approver to an agent, and its acknowledgement (docs/protocol.md#prompts-and-sessions).

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
        /// The only possible value, `prompt.send`.
        PromptSend = "prompt.send",
    }

    /// Where in the agent's user interface the text goes.
    pub enum Target {
        /// The conversation with the agent.
        AgentChat = "agentChat",
        /// The input field, before the text is sent.
        Composer = "composer",
        /// A tool that the agent uses.
        Tool = "tool",
        /// A place that the other values do not cover.
        Other = "other",
    }

    /// The outcome of a prompt. The only transitions are from `queued` to one of the others, which are final.
    pub enum AckStatus {
        /// Stored for the enforcer, which has not acknowledged it yet.
        Queued = "queued",
        /// The enforcer has passed it to the agent.
        Delivered = "delivered",
        /// The enforcer rejected it, for example by policy.
        Rejected = "rejected",
        /// It reached the enforcer too late to be used.
        Expired = "expired",
        /// The enforcer failed to pass it to the agent.
        Error = "error",
    }
}

/// An open prompt, which the gateway can read.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptSend<'a> {
    /// The id of the prompt, chosen by the approver.
    pub request_id: RequestId,
    /// The session of the agent; if absent, the recipient or the pairing determines the enforcer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// A repository reference that the participants agreed on; absent if none applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    /// Always `prompt.send`; part of the hash.
    pub artifact_type: PromptType,
    /// When the approver created it, by its clock.
    pub created_at: Timestamp,
    /// The place in the agent's user interface that the text is for.
    pub target: Target,
    /// The text for the agent; not empty.
    pub text: String,
    /// Further data, covered by the hash; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
    /// The algorithm of `prompt_hash`.
    pub prompt_hash_alg: HashAlg,
    /// SHA-256 of the canonical prompt without this member.
    pub prompt_hash: Sha256Hex,
    /// Extensions under namespaced keys such as `org.example.key`; absent if there are none.
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

/// A prompt that only its enforcer can decrypt. The gateway relays other members unchanged.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedPrompt<'a> {
    /// The id of the prompt; absent if the envelope has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The session of the agent; if absent, the recipient or the pairing determines the enforcer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The place in the agent's user interface that the text is for.
    pub target: Target,
    /// The hash of the encrypted prompt; the gateway can't check it.
    pub prompt_hash: Sha256Hex,
    /// A string or an object that the gateway relays without reading it.
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

/// The body of `prompt.send`: sealed or open.
#[derive(Debug, Clone)]
pub enum PromptSubmit<'a> {
    /// A body with the member `ciphertext`.
    Sealed(SealedPrompt<'a>),
    /// Any other body, which must be exactly a prompt.
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
    /// Hashes the received text of an open prompt and compares; a sealed one can't be checked and passes.
    pub fn check_hash(&self) -> Result<(), Error> {
        match &**self {
            PromptSubmit::Sealed(_) => Ok(()),
            PromptSubmit::Open(prompt) => prompt.prompt_hash.check(self.raw(), "promptHash"),
        }
    }
}

/// The acknowledgement of a prompt; also the body of `prompt.ack`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptAck<'a> {
    /// The id of the acknowledged prompt.
    pub request_id: RequestId,
    /// The hash of the prompt; a different one is rejected with 400.
    pub prompt_hash: Sha256Hex,
    /// The outcome, as far as the sender knows it.
    pub status: AckStatus,
    /// When the sender set the status, by its clock.
    pub ack_at: Timestamp,
    /// Further data for the approver; absent if there is none.
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
