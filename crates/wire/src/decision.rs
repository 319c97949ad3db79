//! The signed decision of a person (docs/protocol.md#signatures-and-keys), and what its signature covers.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject, Verbatim, canonical,
    error::{MemberFault, Problem, SignatureFault},
    hash::{HashAlg, Sha256Hex},
    id::RequestId,
    keys::{SigningKey, VerifyingKey},
    text::NonEmpty,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The outcome of a decision.
    pub enum DecisionOutcome {
        /// The enforcer may carry out the artifact, within the [`Scope`].
        Approve = "approve",
        /// The enforcer must not carry out the artifact.
        Reject = "reject",
    }

    /// What an approval covers. The enforcer enforces it; the gateway relays it unchecked.
    pub enum Scope {
        /// One execution of this artifact.
        Once = "once",
        /// Executions until the decision's `expiresAt`.
        Timebox = "timebox",
        /// For the session named in `policyHints.sessionId`.
        Session = "session",
    }

    /// The algorithms that `sigAlg` can name.
    pub enum SigAlg {
        /// Ed25519 (RFC 8032), verified strictly; the protocol has no other.
        Ed25519 = "Ed25519",
    }
}

/// A decision; also the body of `decision.submit` and `decision.deliver`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision<'a> {
    /// The exchange that is decided.
    pub request_id: RequestId,
    /// The algorithm of `artifact_hash`.
    pub artifact_hash_alg: HashAlg,
    /// The hash of the artifact that was reviewed; must be that of the exchange, else 400.
    pub artifact_hash: Sha256Hex,
    /// The repository reference of the artifact.
    pub repo_ref: String,
    /// Whether the artifact is approved or rejected.
    pub decision: DecisionOutcome,
    /// What an approval covers; without effect in a rejection.
    pub scope: Scope,
    /// The time from which the enforcer must not act on the decision any more.
    pub expires_at: Timestamp,
    /// A value for a single use; the enforcer must reject a second decision with the same one.
    pub nonce: String,
    /// The algorithm of `signature`.
    pub sig_alg: SigAlg,
    /// Helps the enforcer to find the key; the gateway tries all keys that the approver registered.
    pub signer_key_id: String,
    /// Ed25519 over the canonical decision without this member, in base64url.
    pub signature: String,
    /// Restrictions for the enforcer, covered by the signature; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_hints: Option<RawObject<'a>>,
}

const SIGNATURE: &str = "signature";

impl Decision<'_> {
    /// Replaces `signature` by one of `key` over all other members.
    pub fn sign(mut self, key: &SigningKey) -> Result<Self, Error> {
        self.signature = key.sign(&self.signed_bytes()?);
        Ok(self)
    }

    fn signed_bytes(&self) -> Result<Vec<u8>, Error> {
        let text =
            serde_json::to_string(self).map_err(|_| MemberFault::here(Problem::NotA("writable as JSON")))?;
        canonical::form_without(RawObject::parse(text.as_bytes())?, SIGNATURE)
    }
}

impl<'a> Verbatim<'a, Decision<'a>> {
    /// Verifies the signature over the canonical form of the received text, not of the parsed fields.
    pub fn verify(&self, key: &VerifyingKey) -> Result<(), Error> {
        self.verify_any(std::slice::from_ref(key))
    }

    /// As [`Verbatim::verify`], under any of several keys; the text is canonicalized once.
    pub fn verify_any(&self, keys: &[VerifyingKey]) -> Result<(), Error> {
        let signed = self.signed_bytes()?;
        let mut result = Err(SignatureFault::DoesNotVerify.into());
        for key in keys {
            result = key.verify(&signed, &self.signature).map_err(Error::from);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// The bytes that the signature covers: the canonical form without the member `signature`.
    pub fn signed_bytes(&self) -> Result<Vec<u8>, Error> {
        canonical::form_without(self.raw(), SIGNATURE)
    }
}

impl<'a> FromMembers<'a> for Decision<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let decision = Self {
            request_id: members.required("requestId")?,
            artifact_hash_alg: members.required("artifactHashAlg")?,
            artifact_hash: members.required("artifactHash")?,
            repo_ref: members.required("repoRef")?,
            decision: members.required("decision")?,
            scope: members.required("scope")?,
            expires_at: members.required("expiresAt")?,
            nonce: members.required("nonce")?,
            sig_alg: members.required("sigAlg")?,
            signer_key_id: members.required("signerKeyId")?,
            signature: members.required::<NonEmpty>(SIGNATURE)?.0,
            policy_hints: members.optional("policyHints")?,
        };
        members.close()?;
        Ok(decision)
    }
}
