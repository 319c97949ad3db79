//! The payload of `checkpoint.review`: where an agent is, and what has changed since the person last looked.

use countersign_wire::{Error, FromMembers, Members, hash::Sha256Hex, id::RequestId};
use serde::Serialize;

use super::{
    context::Context,
    effect::Effect,
    part::{list, text, texts},
    visible::visible,
};

/// A point at which an agent waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Where the work is, in a few words.
    pub summary: String,
    /// What has changed since the last checkpoint, each in one sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// What was asked before and belongs to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierExchange>,
    /// What going on will do; absent if the enforcer has not examined it, empty if it has found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// The call behind it, and who asks.
    #[serde(flatten)]
    pub context: Context,
}

/// A link to an earlier exchange. The hash says which artifact is meant, whatever the gateway has under that id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierExchange {
    /// The id that the enforcer gave it.
    pub request_id: RequestId,
    /// The hash of its artifact.
    pub artifact_hash: Sha256Hex,
}

impl Checkpoint {
    /// A checkpoint with nothing but its summary.
    pub fn new(summary: impl Into<String>) -> Self {
        let (changes, earlier, context) = (Vec::new(), Vec::new(), Context::default());
        Self { summary: summary.into(), changes, earlier, effects: None, context }
    }

    /// The summary on one line.
    pub(super) fn headline(&self) -> String {
        visible(&self.summary)
    }

    /// Takes the members after the marker.
    pub(super) fn from_members(members: &mut Members<'_>, context: Context) -> Result<Self, Error> {
        Ok(Self {
            summary: text(members, "summary")?,
            changes: texts(members, "changes")?,
            earlier: list(members, "earlier")?,
            effects: members.optional("effects")?,
            context,
        })
    }
}

impl FromMembers<'_> for EarlierExchange {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let earlier = Self {
            request_id: members.required("requestId")?,
            artifact_hash: members.required("artifactHash")?,
        };
        members.close()?;
        Ok(earlier)
    }
}
