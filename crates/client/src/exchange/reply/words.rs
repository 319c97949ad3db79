//! What a decision says beyond approve or reject, and by what it is named.

use countersign_wire::{RawObject, hash::Sha256Hex, id::ApproverId};
use serde::{Deserialize, Serialize};

use crate::{
    content::pattern::Pattern,
    exchange::{edit::Edit, seal::Context},
};

/// What a decision says beyond approve or reject. It is sealed to the enforcer, since the decision itself travels in the
/// clear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Words {
    /// For the agent: why not, or what to mind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was shown to the person, in their client's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The requested action that was chosen, where the enforcer offered some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Which other commands an approval for a time or a session covers; `None` for this effect only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// With a rejection: what the call should be instead, which is then asked for (docs/edits.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

pub(super) fn hints_context(request_id: &str, hash: &str, approver: &ApproverId, nonce: &str) -> Context {
    Context::hints(request_id, hash, approver.as_str(), nonce)
}

/// The hash by which a receipt names a decision: of all of it, in canonical form.
pub(crate) fn decision_hash(decision: RawObject<'_>) -> Result<Sha256Hex, countersign_wire::Error> {
    Ok(Sha256Hex::digest(&countersign_wire::canonical::form(decision.as_str().as_bytes())?))
}
