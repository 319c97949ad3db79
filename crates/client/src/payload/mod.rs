//! What artifacts say: the payloads that our enforcers write and our approvers show (docs/payloads.md).
//!
//! A payload is marked with a schema and a version. One that is not known here, or breaks the rules of its version, is
//! neither refused nor cut: it is [`Payload::Raw`], and is shown as the JSON that it is, with the reason.

mod checkpoint;
mod command;
mod effect;
mod part;
mod patch;
mod plan;
mod visible;

#[cfg(test)]
mod tests;

use countersign_wire::{
    Error, FromJson as _, Members, RawObject, artifact::ArtifactType, limits::MAX_ARTIFACT_PAYLOAD,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub use self::{
    checkpoint::{Checkpoint, EarlierExchange},
    command::{Command, CommandFile, FileRole, Input, Invocation, Variable, quoted},
    effect::{Effect, EffectKind},
    patch::{FileStatus, Patch, PatchFile},
    plan::Plan,
    visible::{visible, visible_code, visible_lines},
};
use crate::json::Count;

/// The member `schema` of every payload. The namespace is the protocol's and not ours: other programs may write it too.
pub const SCHEMA: &str = "org.proto.payload";

/// The member `version` of every payload.
pub const VERSION: u64 = 1;

/// The payload of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Of `command.review`: what will be executed.
    Command(Command),
    /// Of `patch.review`: which files change, and how.
    Patch(Patch),
    /// Of `plan.review`: what the agent intends.
    Plan(Plan),
    /// Of `task.review`: one part of what it intends.
    Task(Plan),
    /// Of `checkpoint.review`: where the agent is.
    Checkpoint(Checkpoint),
    /// Any other, shown as the JSON that it is.
    Raw(Raw),
}

/// A payload that is shown as the JSON that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The type of its artifact.
    pub artifact_type: ArtifactType,
    /// The whole text. It is untrusted: show it with [`visible_lines`].
    pub text: String,
    /// Why it is not shown otherwise.
    pub reason: RawReason,
}

/// Why a payload is shown as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawReason {
    /// It has no marker, or that of another schema.
    #[error("its format is not known here")]
    UnknownSchema,
    /// It has another version of the schema, which may have members that this version does not show.
    #[error("it has version {0} of its format, which is not known here")]
    UnknownVersion(u64),
    /// It claims to be of this version and is not.
    #[error("it breaks the rules of its format")]
    Broken(#[source] Error),
    /// It is larger than an artifact may be.
    #[error("it has {0} bytes, which is more than a payload may have")]
    TooLarge(usize),
}

/// Why a payload can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It breaks a rule of its type.
    #[error("the payload breaks a rule of its format")]
    Broken(#[source] Error),
    /// It is larger than an artifact may be. Leave out contents whose digest says enough.
    #[error("the payload has {0} bytes; at most {MAX_ARTIFACT_PAYLOAD} are possible")]
    TooLarge(usize),
    /// What was shown raw is not written again.
    #[error("a payload that is not known here can't be written")]
    Raw,
}

/// A payload with its marker.
#[derive(Serialize)]
struct Marked<'a, T> {
    schema: &'static str,
    version: u64,
    #[serde(flatten)]
    content: &'a T,
}

impl Payload {
    /// Reads the payload of an artifact. Whatever it is, there is something to show.
    pub fn read(artifact_type: ArtifactType, payload: &RawObject<'_>) -> Self {
        Self::read_known(artifact_type, payload).unwrap_or_else(|reason| {
            Self::Raw(Raw { artifact_type, text: payload.as_str().to_owned(), reason })
        })
    }

    fn read_known(artifact_type: ArtifactType, payload: &RawObject<'_>) -> Result<Self, RawReason> {
        let size = payload.as_str().len();
        if size > MAX_ARTIFACT_PAYLOAD {
            return Err(RawReason::TooLarge(size));
        }
        let mut members = payload.members().map_err(RawReason::Broken)?;
        take_marker(&mut members)?;
        let content = Self::from_members(artifact_type, &mut members);
        content.and_then(|content| members.close().map(|()| content)).map_err(RawReason::Broken)
    }

    fn from_members(artifact_type: ArtifactType, members: &mut Members<'_>) -> Result<Self, Error> {
        match artifact_type {
            ArtifactType::CommandReview => Command::from_members(members).map(Self::Command),
            ArtifactType::PatchReview => Patch::from_members(members).map(Self::Patch),
            ArtifactType::PlanReview => Plan::from_members(members).map(Self::Plan),
            ArtifactType::TaskReview => Plan::from_members(members).map(Self::Task),
            ArtifactType::CheckpointReview => Checkpoint::from_members(members).map(Self::Checkpoint),
        }
    }

    /// The type of the artifact that the payload belongs to.
    pub fn artifact_type(&self) -> ArtifactType {
        match self {
            Self::Command(_) => ArtifactType::CommandReview,
            Self::Patch(_) => ArtifactType::PatchReview,
            Self::Plan(_) => ArtifactType::PlanReview,
            Self::Task(_) => ArtifactType::TaskReview,
            Self::Checkpoint(_) => ArtifactType::CheckpointReview,
            Self::Raw(raw) => raw.artifact_type,
        }
    }

    /// The payload as the JSON of an artifact. What an approver would not read as this payload is not written.
    pub fn to_json(&self) -> Result<String, PayloadError> {
        let json = match self {
            Self::Command(command) => marked(command),
            Self::Patch(patch) => marked(patch),
            Self::Plan(plan) | Self::Task(plan) => marked(plan),
            Self::Checkpoint(checkpoint) => marked(checkpoint),
            Self::Raw(_) => return Err(PayloadError::Raw),
        }?;
        let object = RawObject::parse(json.as_bytes()).map_err(PayloadError::Broken)?;
        match Self::read_known(self.artifact_type(), &object) {
            Ok(read) if read == *self => Ok(json),
            Err(RawReason::TooLarge(size)) => Err(PayloadError::TooLarge(size)),
            Err(RawReason::Broken(error)) => Err(PayloadError::Broken(error)),
            _ => Err(PayloadError::Raw),
        }
    }

    /// The effects that the enforcer has derived; `None` if it has not examined the request, or nobody here can read it.
    pub fn effects(&self) -> Option<&[Effect]> {
        match self {
            Self::Command(command) => command.effects.as_deref(),
            Self::Patch(patch) => patch.effects.as_deref(),
            Self::Plan(plan) | Self::Task(plan) => plan.effects.as_deref(),
            Self::Checkpoint(checkpoint) => checkpoint.effects.as_deref(),
            Self::Raw(_) => None,
        }
    }

    /// The first line that a person reads: what will happen. It is never cut and has nothing invisible.
    pub fn headline(&self) -> String {
        match self {
            Self::Command(command) => command.headline(),
            Self::Patch(patch) => patch.headline(),
            Self::Plan(plan) | Self::Task(plan) => plan.headline(),
            Self::Checkpoint(checkpoint) => checkpoint.headline(),
            Self::Raw(raw) => {
                format!("{}, {} bytes of JSON: {}", raw.artifact_type, raw.text.len(), raw.reason)
            }
        }
    }
}

fn marked<T: Serialize>(content: &T) -> Result<String, PayloadError> {
    // Only a map with keys that are no strings could fail, and there is none.
    serde_json::to_string(&Marked { schema: SCHEMA, version: VERSION, content })
        .map_err(|_| PayloadError::Raw)
}

/// Takes the members `schema` and `version`.
fn take_marker(members: &mut Members<'_>) -> Result<(), RawReason> {
    let schema = members.optional::<&RawValue>("schema").ok().flatten();
    let schema = schema.and_then(|schema| String::from_json(schema).ok());
    if schema.as_deref() != Some(SCHEMA) {
        return Err(RawReason::UnknownSchema);
    }
    match members.required::<Count>("version").map_err(RawReason::Broken)? {
        Count(VERSION) => Ok(()),
        Count(version) => Err(RawReason::UnknownVersion(version)),
    }
}
