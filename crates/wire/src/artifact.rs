//! What an enforcer submits for review: in the clear (section 2.1) or sealed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    Error, FromMembers, Members, RawObject, Rule, Verbatim,
    error::{MemberFault, Problem},
    hash::{HashAlg, Sha256Hex},
    id::{ApproverId, RequestId, RoutingToken, SessionId, TenantId},
    members::inside,
    raw::{CIPHERTEXT, Ciphertext},
    requested_actions::{self, RequestedActions},
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// What kind of thing is to be reviewed.
    pub enum ArtifactType {
        /// A plan.
        PlanReview = "plan.review",
        /// A task.
        TaskReview = "task.review",
        /// A change of files.
        PatchReview = "patch.review",
        /// A command to be run.
        CommandReview = "command.review",
        /// A point at which the agent stops by agreement.
        CheckpointReview = "checkpoint.review",
    }
}

const ARTIFACT_HASH: &str = "artifactHash";

/// An artifact in the clear.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact<'a> {
    /// Names the exchange.
    pub request_id: RequestId,
    /// The agent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What kind of thing it is.
    pub artifact_type: ArtifactType,
    /// A repository reference that the participants agreed on.
    pub repo_ref: String,
    /// The revision that it builds on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_revision: Option<String>,
    /// When it was made, by the enforcer's clock.
    pub created_at: Timestamp,
    /// From when on it can no longer be decided.
    pub expires_at: Timestamp,
    /// What is to be reviewed.
    pub payload: RawObject<'a>,
    /// How `artifact_hash` was made.
    pub artifact_hash_alg: HashAlg,
    /// SHA-256 of the canonical artifact without this member.
    pub artifact_hash: Sha256Hex,
    /// Nothing secret; part of the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
    /// Further members under namespaced keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<RawObject<'a>>,
}

impl Artifact<'_> {
    /// The buttons that the enforcer asks for. An approver that meets an error here falls back to
    /// Approve and Reject.
    pub fn requested_actions(&self) -> Result<Option<RequestedActions>, Error> {
        let Some(extensions) = self.extensions else { return Ok(None) };
        extensions.members()?.optional(requested_actions::KEY).map_err(|error| inside(error, "extensions"))
    }

    fn check_extensions(&self) -> Result<(), Error> {
        let Some(extensions) = &self.extensions else { return Ok(()) };
        check_namespaces(extensions)?;
        self.requested_actions().map(drop)
    }
}

/// Keys of extensions have a namespace, so that two of them never mean two things.
pub(crate) fn check_namespaces(extensions: &RawObject<'_>) -> Result<(), Error> {
    if extensions.members()?.rest().any(|(key, _)| !key.contains('.')) {
        let rule = Rule("has a key without a namespace, such as org.example.key");
        return Err(MemberFault::at("extensions", Problem::Breaks(rule)).into());
    }
    Ok(())
}

impl<'a> FromMembers<'a> for Artifact<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let artifact = Self {
            request_id: members.required("requestId")?,
            session_id: members.optional("sessionId")?,
            artifact_type: members.required("artifactType")?,
            repo_ref: members.required("repoRef")?,
            base_revision: members.optional("baseRevision")?,
            created_at: members.required("createdAt")?,
            expires_at: members.required("expiresAt")?,
            payload: members.required("payload")?,
            artifact_hash_alg: members.required("artifactHashAlg")?,
            artifact_hash: members.required(ARTIFACT_HASH)?,
            metadata: members.optional("metadata")?,
            extensions: members.optional("extensions")?,
        };
        members.close()?;
        Ok(artifact)
    }
}

impl<'a> Verbatim<'a, Artifact<'a>> {
    /// Hashes the artifact as it was written and compares.
    pub fn check_hash(&self) -> Result<(), Error> {
        self.artifact_hash.check(self.raw(), ARTIFACT_HASH)
    }
}

/// An artifact that only its approvers can read. Members beside these are passed on.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedArtifact<'a> {
    /// What kind of thing it is.
    pub artifact_type: ArtifactType,
    /// The hash of the artifact inside.
    pub artifact_hash: Sha256Hex,
    /// Here or in the envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// A string or an object; never looked into.
    pub ciphertext: &'a RawValue,
    /// May say where the request is to go; see [`SealedArtifact::routing`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
}

impl SealedArtifact<'_> {
    /// The routing keys of `metadata`.
    pub fn routing(&self) -> Result<Routing, Error> {
        let Some(metadata) = self.metadata else { return Ok(Routing::default()) };
        metadata.view().map(Verbatim::into_view).map_err(|error| inside(error, "metadata"))
    }
}

impl<'a> FromMembers<'a> for SealedArtifact<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            artifact_type: members.required("artifactType")?,
            artifact_hash: members.required(ARTIFACT_HASH)?,
            expires_at: members.optional("expiresAt")?,
            ciphertext: members.required::<Ciphertext<'_>>(CIPHERTEXT)?.0,
            metadata: members.optional("metadata")?,
        })
    }
}

/// Where a sealed artifact asks to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// To the approver behind this token.
    pub routing_token: Option<RoutingToken>,
    /// To this approver.
    pub approver_id: Option<ApproverId>,
    /// Redundant: the tenant comes from the credential.
    pub tenant_id: Option<TenantId>,
}

impl Routing {
    /// The members of `metadata`, or of `trace` for an open artifact, that approvers never see.
    pub const KEYS: &'static [&'static str] = &["routingToken", "approverId", "tenantId"];
}

impl FromMembers<'_> for Routing {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            routing_token: members.optional("routingToken")?,
            approver_id: members.optional("approverId")?,
            tenant_id: members.optional("tenantId")?,
        })
    }
}

/// The body of `artifact.submit`.
#[derive(Debug, Clone)]
pub enum ArtifactSubmit<'a> {
    /// Known by its member `ciphertext`.
    Sealed(SealedArtifact<'a>),
    /// Exactly an artifact.
    Open(Artifact<'a>),
}

impl ArtifactSubmit<'_> {
    /// What kind of thing it is.
    pub fn artifact_type(&self) -> ArtifactType {
        match self {
            Self::Sealed(sealed) => sealed.artifact_type,
            Self::Open(artifact) => artifact.artifact_type,
        }
    }

    /// What a decision has to name.
    pub fn artifact_hash(&self) -> Sha256Hex {
        match self {
            Self::Sealed(sealed) => sealed.artifact_hash,
            Self::Open(artifact) => artifact.artifact_hash,
        }
    }

    /// The expiry, where the body names one.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Sealed(sealed) => sealed.expires_at,
            Self::Open(artifact) => Some(artifact.expires_at),
        }
    }
}

impl<'a> FromMembers<'a> for ArtifactSubmit<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        if members.contains(CIPHERTEXT) {
            return SealedArtifact::from_members(members).map(Self::Sealed);
        }
        let artifact = Artifact::from_members(members)?;
        artifact.check_extensions()?;
        Ok(Self::Open(artifact))
    }
}

impl<'a> Verbatim<'a, ArtifactSubmit<'a>> {
    /// Hashes an artifact in the clear as it was written and compares; a sealed one passes.
    pub fn check_hash(&self) -> Result<(), Error> {
        match &**self {
            ArtifactSubmit::Sealed(_) => Ok(()),
            ArtifactSubmit::Open(artifact) => artifact.artifact_hash.check(self.raw(), ARTIFACT_HASH),
        }
    }

    /// The body as approvers get it: of a sealed artifact without the routing keys in its metadata,
    /// otherwise byte for byte as submitted.
    pub fn text_for_approvers(&self) -> Result<Cow<'a, str>, Error> {
        match &**self {
            ArtifactSubmit::Sealed(SealedArtifact { metadata: Some(metadata), .. }) => {
                let replacement = metadata.text_without(Routing::KEYS)?;
                Ok(self.raw().text_with(*metadata, &replacement).into())
            }
            _ => Ok(self.raw().as_str().into()),
        }
    }
}
