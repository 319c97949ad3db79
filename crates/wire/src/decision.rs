//! The signed answer of a person (section 2.2), and what its signature covers.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject, Verbatim, canonical,
    error::{MemberFault, Problem},
    hash::{HashAlg, Sha256Hex},
    id::RequestId,
    keys::{SigningKey, VerifyingKey},
    text::NonEmpty,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// What the person decided.
    pub enum Verdict {
        /// It may be done.
        Approve = "approve",
        /// It may not.
        Reject = "reject",
    }

    /// How far an approval reaches. The enforcer keeps to it; the gateway does not look.
    pub enum Scope {
        /// This one time.
        Once = "once",
        /// Until the decision's `expiresAt`.
        Timebox = "timebox",
        /// For the session named in `policyHints.sessionId`.
        Session = "session",
    }

    /// Signature algorithms.
    pub enum SigAlg {
        /// The only one.
        Ed25519 = "Ed25519",
    }
}

/// A decision; also the body of `decision.submit` and `decision.deliver`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision<'a> {
    /// The exchange that it answers.
    pub request_id: RequestId,
    /// How `artifact_hash` was made.
    pub artifact_hash_alg: HashAlg,
    /// What exactly was decided on.
    pub artifact_hash: Sha256Hex,
    /// The repository reference of the artifact.
    pub repo_ref: String,
    /// Yes or no.
    pub decision: Verdict,
    /// How far a yes reaches.
    pub scope: Scope,
    /// From when on the decision is void.
    pub expires_at: Timestamp,
    /// Used once; the enforcer remembers it.
    pub nonce: String,
    /// How `signature` was made.
    pub sig_alg: SigAlg,
    /// Names the key for the enforcer; the gateway does not look it up.
    pub signer_key_id: String,
    /// Ed25519 over the canonical decision without this member, in base64url.
    pub signature: String,
    /// Part of what is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_hints: Option<RawObject<'a>>,
}

const SIGNATURE: &str = "signature";

impl Decision<'_> {
    /// Fills in `signature`.
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
    /// Verifies the signature over the decision as it was written.
    pub fn verify(&self, key: &VerifyingKey) -> Result<(), Error> {
        key.verify(&self.signed_bytes()?, &self.signature)?;
        Ok(())
    }

    /// What the signature covers: the canonical form without the signature itself.
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
        // Whoever verifies would refuse it; the sender is told while it can still act.
        decision.policy_hints.map_or(Ok(()), canonical::refuse_unsafe_integers)?;
        Ok(decision)
    }
}
