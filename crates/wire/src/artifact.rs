//! The artifact that an enforcer submits for review: open or sealed (docs/protocol.md#bodies).

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
    /// The kind of artifact to review.
    pub enum ArtifactType {
        /// A plan of an agent, before it starts.
        PlanReview = "plan.review",
        /// A single task of an agent.
        TaskReview = "task.review",
        /// A change of files, before it is applied.
        PatchReview = "patch.review",
        /// A command, before it is executed.
        CommandReview = "command.review",
        /// An agreed point at which the agent waits for approval.
        CheckpointReview = "checkpoint.review",
    }
}

const ARTIFACT_HASH: &str = "artifactHash";

/// An open artifact, which the gateway can read.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact<'a> {
    /// The id of the exchange, chosen by the enforcer; must be that of the envelope.
    pub request_id: RequestId,
    /// The session of the agent; absent if the agent reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The kind of artifact.
    pub artifact_type: ArtifactType,
    /// A repository reference that the participants agreed on.
    pub repo_ref: String,
    /// The revision that the artifact is based on; absent where none applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_revision: Option<String>,
    /// When the enforcer created it, by its clock; the gateway does not evaluate it.
    pub created_at: Timestamp,
    /// The time from which it can't be decided any more.
    pub expires_at: Timestamp,
    /// The content to review; its format depends on `artifact_type`.
    pub payload: RawObject<'a>,
    /// The algorithm of `artifact_hash`.
    pub artifact_hash_alg: HashAlg,
    /// SHA-256 of the canonical artifact without this member.
    pub artifact_hash: Sha256Hex,
    /// Further data, not secret, covered by the hash; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
    /// Extensions under namespaced keys such as `org.example.key`; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<RawObject<'a>>,
}

impl Artifact<'_> {
    /// The buttons that the enforcer requests. On an error, an approver falls back to Approve and Reject.
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

/// Keys of extensions need a namespace, so that two extensions can't use the same key.
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
    /// Hashes the received text and compares with `artifact_hash`.
    pub fn check_hash(&self) -> Result<(), Error> {
        self.artifact_hash.check(self.raw(), ARTIFACT_HASH)
    }
}

/// An artifact that only its approvers can decrypt. The gateway relays other members unchanged.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedArtifact<'a> {
    /// The kind of artifact.
    pub artifact_type: ArtifactType,
    /// The hash of the encrypted artifact; the gateway can't check it.
    pub artifact_hash: Sha256Hex,
    /// The expiry; if absent, the envelope must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// A string or an object that the gateway relays without reading it.
    pub ciphertext: &'a RawValue,
    /// May contain routing keys, see [`SealedArtifact::routing`]; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
}

impl SealedArtifact<'_> {
    /// The routing keys of `metadata`; empty without metadata.
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

/// The addressing of a sealed artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// Addresses the approver of this pairing; absent if none is addressed so.
    pub routing_token: Option<RoutingToken>,
    /// Addresses this approver directly; a routing token takes precedence.
    pub approver_id: Option<ApproverId>,
    /// Ignored: the credential determines the tenant.
    pub tenant_id: Option<TenantId>,
}

impl Routing {
    /// The members that the gateway removes before delivery, from `metadata` or, for an open artifact, from `trace`.
    pub const KEYS: &'static [&'static str] = &["routingToken", "approverId", "tenantId", Turns::KEY];
}

/// How loudly an enforcer asks: whether people are notified of the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loudness {
    /// Nobody is notified: the request waits to be looked at.
    Quiet,
    /// People are notified, except in their quiet hours.
    #[default]
    Normal,
    /// People are notified at any hour.
    Loud,
}

impl Loudness {
    /// The member of `metadata` that says it.
    pub const KEY: &'static str = "org.countersign.ring";

    /// All of them, from the quietest to the loudest.
    pub const ALL: [Self; 3] = [Self::Quiet, Self::Normal, Self::Loud];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Normal => "normal",
            Self::Loud => "loud",
        }
    }

    /// The loudness with this word; `None` if there is none.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|loudness| loudness.as_str() == word)
    }
}

impl FromMembers<'_> for Loudness {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let said: Option<String> = members.optional(Self::KEY)?;
        Ok(said.as_deref().and_then(Self::of_word).unwrap_or_default())
    }
}

/// When one approver is asked, where several are asked in turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Who is asked, by the id that decisions name.
    pub approver_id: ApproverId,
    /// Before this time the approver is no addressee; absent for one who is asked at once.
    pub at: Option<Timestamp>,
}

impl FromMembers<'_> for Turn {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let turn = Self { approver_id: members.required("approverId")?, at: members.optional("at")? };
        members.close()?;
        Ok(turn)
    }
}

/// The addressees of a request, each with their turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns(pub Vec<Turn>);

impl Turns {
    /// The member of `metadata` that has them.
    pub const KEY: &'static str = "org.countersign.turns";

    /// At most so many people are asked in turns.
    pub const MAX: usize = 20;
}

impl FromMembers<'_> for Turns {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let Some(turns) = members.optional::<Vec<Turn>>(Self::KEY)? else { return Ok(Self::default()) };
        let is_twice = |(at, turn): (usize, &Turn)| {
            turns.iter().skip(at + 1).any(|other| other.approver_id == turn.approver_id)
        };
        if turns.is_empty() || turns.len() > Self::MAX || turns.iter().enumerate().any(is_twice) {
            let rule = Rule("must name 1 to 20 approvers, each once");
            return Err(MemberFault::at(Self::KEY, Problem::Breaks(rule)).into());
        }
        Ok(Self(turns))
    }
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

/// The body of `artifact.submit`: sealed or open.
#[derive(Debug, Clone)]
pub enum ArtifactSubmit<'a> {
    /// A body with the member `ciphertext`.
    Sealed(SealedArtifact<'a>),
    /// Exactly an artifact whose payload has the member `ciphertext`. Its hash is that of the plaintext.
    SealedInPlace(Artifact<'a>),
    /// Any other body, which must be exactly an artifact.
    Open(Artifact<'a>),
}

impl ArtifactSubmit<'_> {
    /// How loudly it asks. What can't be read is no reason to refuse a request, and asks as most do.
    pub fn loudness(&self) -> Loudness {
        let said = self.metadata().and_then(|metadata| metadata.view::<Loudness>().ok());
        said.map(Verbatim::into_view).unwrap_or_default()
    }

    /// Who is asked when; empty if nobody has to wait for their turn. What can't be read is an error: it says who may see
    /// the request.
    pub fn turns(&self) -> Result<Turns, Error> {
        let Some(metadata) = self.metadata() else { return Ok(Turns::default()) };
        metadata.view().map(Verbatim::into_view).map_err(|error| inside(error, "metadata"))
    }

    fn metadata(&self) -> Option<RawObject<'_>> {
        match self {
            Self::Sealed(sealed) => sealed.metadata,
            Self::SealedInPlace(artifact) | Self::Open(artifact) => artifact.metadata,
        }
    }

    /// The kind of artifact, which is in both forms of the body.
    pub fn artifact_type(&self) -> ArtifactType {
        match self {
            Self::Sealed(sealed) => sealed.artifact_type,
            Self::SealedInPlace(artifact) | Self::Open(artifact) => artifact.artifact_type,
        }
    }

    /// The hash that a decision has to name.
    pub fn artifact_hash(&self) -> Sha256Hex {
        match self {
            Self::Sealed(sealed) => sealed.artifact_hash,
            Self::SealedInPlace(artifact) | Self::Open(artifact) => artifact.artifact_hash,
        }
    }

    /// The expiry; `None` if a sealed body leaves it to the envelope.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Sealed(sealed) => sealed.expires_at,
            Self::SealedInPlace(artifact) | Self::Open(artifact) => Some(artifact.expires_at),
        }
    }
}

impl<'a> FromMembers<'a> for ArtifactSubmit<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        if members.contains(CIPHERTEXT) {
            return SealedArtifact::from_members(members).map(Self::Sealed);
        }
        let artifact = Artifact::from_members(members)?;
        if artifact.payload.members()?.contains(CIPHERTEXT) {
            return Ok(Self::SealedInPlace(artifact));
        }
        artifact.check_extensions()?;
        Ok(Self::Open(artifact))
    }
}

impl<'a> Verbatim<'a, ArtifactSubmit<'a>> {
    /// Hashes the received text of an open artifact and compares; a sealed one can't be checked and passes.
    pub fn check_hash(&self) -> Result<(), Error> {
        match &**self {
            ArtifactSubmit::Sealed(_) | ArtifactSubmit::SealedInPlace(_) => Ok(()),
            ArtifactSubmit::Open(artifact) => artifact.artifact_hash.check(self.raw(), ARTIFACT_HASH),
        }
    }

    /// The body as approvers receive it: a sealed artifact without the routing keys in its metadata, an open one and one
    /// that is sealed in place byte for byte as submitted.
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
