//! A request on its way: built, hashed and sealed by an enforcer; opened and checked by an approver. No I/O.

mod addressees;

use std::time::Duration;

use countersign_wire::{
    RawObject, Rule, Verbatim,
    artifact::{Artifact, ArtifactType},
    base64url,
    envelope::Envelope,
    extension::{REPO_NAME, SALT, VERIFY},
    hash::{HashAlg, Sha256Hex},
    id::{EnforcerId, RequestId, SessionId},
    msg_type::MsgType,
    parse,
    requested_actions::{self, Action, RequestedActions},
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    checks::{self, Check, ensure},
    exchange::{
        audience::{self, Audience, Turn, Verify},
        edit::{self, Place},
        seal::{Context, Recipient, SealError, Sealed, seal},
    },
    identity::{
        keys::{DeviceKeys, Fingerprint},
        profile::{Party, Pin, Pins},
    },
    random::{self, NoRandomness},
};

/// The extension in which the session of a request was before it was the artifact's own member.
const FORMER_SESSION_ID: &str = "org.proto.sessionId";

/// The extension that names the request whose place this one takes: a text.
const SUPERSEDES: &str = "org.countersign.supersedes";

/// What an enforcer asks for.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The kind of artifact.
    pub artifact_type: ArtifactType,
    /// The content to review, a JSON object. See `docs/payloads.md`.
    pub payload: String,
    /// The name of the repository, which only the approvers learn.
    pub repo_name: String,
    /// How long it can be decided.
    pub valid_for: Duration,
    /// The session of the agent that it belongs to, so that an approval can be for the session.
    pub session: Option<String>,
    /// Buttons instead of approve and reject, at most five. The answer says which was chosen.
    pub actions: Vec<Action>,
    /// What of the call an approver may change before they approve, as JSON pointers into its message; see [`crate::edit`].
    pub edits: Vec<String>,
    /// Whom to ask, and how loudly.
    pub to: Audience,
}

/// The request whose place another one takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before<'a> {
    pub(crate) request_id: &'a RequestId,
    /// The device whose edit has made the new one of it: nobody else is asked.
    pub(crate) edited_by: Option<Fingerprint>,
}

/// A request with everything that its answer is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The id of the exchange.
    pub request_id: RequestId,
    /// The hash of the artifact, which the approver signs.
    pub artifact_hash: Sha256Hex,
    /// The opaque reference that the decision repeats.
    pub repo_ref: String,
    /// The time from which it can't be decided.
    pub expires_at: Timestamp,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// The `artifact.submit` envelope, as JSON.
    pub envelope: String,
    /// The artifact in the clear, which the journal and bundles keep. It is wiped from memory when dropped.
    pub artifact: Zeroizing<String>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({} {})", self.request_id, self.artifact_hash)
    }
}

/// Why a request can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody is paired who could answer.
    #[error("no approver is paired; pair one first")]
    NobodyPaired,
    /// None of the people whom it is for is paired.
    #[error("none of {0} is paired here")]
    NobodyOf(String),
    /// A person has to be verified, and none of the devices that would be asked has a lock that is known here.
    #[error(
        "only a device with a lock may approve this, and this machine knows no such device among those it would ask"
    )]
    NobodyVerified,
    /// The payload is not a JSON object that can be hashed.
    #[error("the payload can't be used: {0}")]
    Payload(#[from] countersign_wire::Error),
    /// The name of the session is no id.
    #[error("the session {0}")]
    Session(Rule),
    /// It can't be sealed.
    #[error("the request can't be sealed: {0}")]
    Seal(#[from] SealError),
    /// Without randomness there is no request.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

impl RequestError {
    /// None of these people can be asked; nobody at all, if there are none.
    fn nobody(people: &[Turn]) -> Self {
        let names: Vec<&str> = people.iter().map(|turn| turn.person.as_str()).collect();
        match names.is_empty() {
            true => Self::NobodyPaired,
            false => Self::NobodyOf(names.join(", ")),
        }
    }
}

impl Request {
    /// Builds, hashes, salts and seals a request to every device that is pinned and counts now.
    pub fn build(
        draft: &Draft,
        enforcer: &EnforcerId,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Self, RequestError> {
        Self::build_after(None, draft, enforcer, keys, pins, now)
    }

    /// As [`Request::build`], in place of another request: that is said to the approvers in what is sealed, and to the gateway
    /// in the trace.
    pub(crate) fn build_after(
        before: Option<Before<'_>>,
        draft: &Draft,
        enforcer: &EnforcerId,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Self, RequestError> {
        let people = audience::in_time(&draft.to.people, draft.valid_for);
        let mut pinned = audience::asked(&people, pins, now);
        let edited_by = before.and_then(|before| before.edited_by);
        pinned.retain(|pin| edited_by.is_none_or(|device| pin.fingerprint() == device));
        if pinned.is_empty() {
            return Err(RequestError::nobody(&draft.to.people));
        }
        if draft.to.verify == Verify::Person && pinned.iter().all(|pin| pin.lock().is_none()) {
            return Err(RequestError::NobodyVerified);
        }
        let request_id: RequestId = match RequestId::new(random::id()?) {
            Ok(request_id) => request_id,
            Err(_) => unreachable!("a UUID is an id"),
        };
        let expires_at = now.plus(draft.valid_for);
        let repo_ref = keys.repo_ref(&draft.repo_name);
        let mut artifact = artifact_of(draft, &request_id, &repo_ref, now)?;
        if let Some(extensions) = artifact["extensions"].as_object_mut() {
            edit::say(extensions, &draft.edits, edited_by.is_some());
            extensions.extend(before.map(|before| (SUPERSEDES.to_owned(), json!(before.request_id))));
        }
        let unhashed = Zeroizing::new(artifact.to_string());
        let artifact_hash =
            Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes())?, "artifactHash")?;
        artifact["artifactHash"] = artifact_hash.to_string().into();
        let text = Zeroizing::new(artifact.to_string());
        let context = context(&request_id, artifact_hash, enforcer, &expires_at.to_string());
        let recipients: Vec<Recipient<'_>> =
            pinned.iter().map(|pin| Recipient { id: pin.party().id(), bundle: pin.bundle() }).collect();
        let sealed = seal(keys, &context, text.as_bytes(), &recipients)?;
        let body = json!({
            "artifactType": draft.artifact_type, "artifactHash": artifact_hash, "expiresAt": expires_at,
            "ciphertext": sealed,
        });
        let mut envelope = json!({
            "msgType": MsgType::ArtifactSubmit, "requestId": request_id, "createdAt": now, "expiresAt": expires_at,
            "sender": { "enforcerId": enforcer }, "body": body,
        });
        // With one approver it is addressed. Of several the gateway is told their turns, or it finds them: it knows the pairs.
        if pinned.iter().all(|pin| pin.party() == pinned[0].party()) {
            envelope["recipient"] = json!({ "approverId": pinned[0].party().id() });
        }
        if let Some(metadata) = audience::for_gateway(&people, draft.to.ring, &pinned, now) {
            envelope["body"]["metadata"] = metadata;
        }
        if let Some(before) = before {
            envelope["trace"] = json!({ "supersedes": before.request_id });
        }
        let (session, envelope) = (draft.session.clone(), envelope.to_string());
        Ok(Self { request_id, artifact_hash, repo_ref, expires_at, session, envelope, artifact: text })
    }

    /// The request that an artifact of one's own belongs to, with the envelope that submits it. The hash is checked.
    pub fn of_artifact(
        artifact: Zeroizing<String>,
        envelope: String,
    ) -> Result<Self, countersign_wire::Error> {
        let read: Verbatim<'_, Artifact<'_>> = parse(artifact.as_bytes())?;
        read.check_hash()?;
        let (request_id, artifact_hash) = (read.request_id.clone(), read.artifact_hash);
        let (repo_ref, expires_at, session) = (read.repo_ref.clone(), read.expires_at, session(&read));
        Ok(Self { request_id, artifact_hash, repo_ref, expires_at, session, envelope, artifact })
    }

    /// The envelope with the sealed content in the place of the payload, so that its body is exactly an Artifact, for a gateway
    /// that takes nothing else. What it says besides is the opaque reference and the time; extensions and session stay sealed.
    pub(crate) fn sealed_in_place(&self) -> Result<String, RequestError> {
        let artifact: Verbatim<'_, Artifact<'_>> = parse(self.artifact.as_bytes())?;
        let Ok(mut envelope) = serde_json::from_str::<Value>(&self.envelope) else {
            unreachable!("an envelope of our own is JSON")
        };
        let body = &mut envelope["body"];
        body["payload"] = json!({ "ciphertext": body["ciphertext"].take() });
        body["requestId"] = json!(self.request_id);
        body["repoRef"] = json!(self.repo_ref);
        body["createdAt"] = json!(artifact.created_at);
        body["artifactHashAlg"] = json!(HashAlg::Sha256);
        if let Some(members) = body.as_object_mut() {
            members.remove("ciphertext");
        }
        Ok(envelope.to_string())
    }

    /// Whether it is what an edit of its only approver has made of another one. What can't be read may be.
    pub(crate) fn is_edited(&self) -> bool {
        let read = parse::<Artifact<'_>>(self.artifact.as_bytes());
        read.map_or(true, |artifact| edit::is_edited(&artifact))
    }

    /// What was asked for, from the artifact. Whom it was asked is in no request.
    pub(crate) fn draft(&self) -> Result<Draft, RequestError> {
        let read: Verbatim<'_, Artifact<'_>> = parse(self.artifact.as_bytes())?;
        Ok(Draft {
            artifact_type: read.artifact_type,
            payload: read.payload.as_str().to_owned(),
            repo_name: repo_name(&read).unwrap_or_default(),
            valid_for: read.expires_at.since(read.created_at),
            session: self.session.clone(),
            actions: actions_of(&read),
            edits: edit::offered(&read).into_iter().map(|place| place.pointer).collect(),
            to: Audience { people: Vec::new(), ring: self.ring(), verify: Verify::of(&read) },
        })
    }
}

/// The artifact, not hashed yet.
fn artifact_of(
    draft: &Draft,
    request_id: &RequestId,
    repo_ref: &str,
    now: Timestamp,
) -> Result<Value, RequestError> {
    let payload = RawObject::parse(draft.payload.as_bytes())?;
    let mut artifact = json!({
        "requestId": request_id,
        "artifactType": draft.artifact_type,
        "repoRef": repo_ref,
        "createdAt": now,
        "expiresAt": now.plus(draft.valid_for),
        "payload": payload,
        "artifactHashAlg": "SHA-256",
        "extensions": {
            SALT.key(): base64url::encode(&random::bytes::<16>()?),
            REPO_NAME.key(): draft.repo_name,
        },
    });
    if let Some(session) = &draft.session {
        let session = SessionId::new(session.as_str()).map_err(RequestError::Session)?;
        artifact["sessionId"] = json!(session);
    }
    if let Some(word) = draft.to.verify.word() {
        artifact["extensions"][VERIFY.key()] = word.into();
    }
    if !draft.actions.is_empty() {
        artifact["extensions"][requested_actions::KEY] = json!(RequestedActions::new(draft.actions.clone())?);
    }
    Ok(artifact)
}

/// The time is the text of the body, as it is written there.
fn context(request_id: &RequestId, hash: Sha256Hex, enforcer: &EnforcerId, expires_at: &str) -> Context {
    Context::artifact(request_id.as_str(), &hash.to_string(), enforcer.as_str(), expires_at)
}

/// A request that an approver has opened and checked.
#[derive(Debug, Clone)]
pub struct OpenedRequest {
    /// The id of the exchange.
    pub request_id: RequestId,
    /// Who asks, as its pinned keys have proven.
    pub enforcer: EnforcerId,
    /// The kind of artifact.
    pub artifact_type: ArtifactType,
    /// The hash of the artifact, recomputed here.
    pub artifact_hash: Sha256Hex,
    /// The opaque reference that the decision repeats.
    pub repo_ref: String,
    /// The name behind the reference; `None` if the enforcer gave none.
    pub repo_name: Option<String>,
    /// The session that it belongs to; only then an approval can be for a session.
    pub session: Option<String>,
    /// When the enforcer made it, by its clock.
    pub created_at: Timestamp,
    /// The time from which it can't be decided.
    pub expires_at: Timestamp,
    /// The content to review, a JSON object.
    pub payload: String,
    /// The artifact that it is in, as it was sealed.
    pub artifact: Zeroizing<String>,
    /// Buttons that the enforcer asks for; empty for approve and reject.
    pub actions: Vec<Action>,
    /// The request of the same enforcer whose place this one takes: it expired, a device was connected that could not open it,
    /// or this device has changed it.
    pub supersedes: Option<RequestId>,
    /// What of the call this device may change before it approves.
    pub edits: Vec<Place>,
    /// Whether it is what this device has made of the other one. Then it can be approved once, and not for longer.
    pub is_edited: bool,
    /// Whether an approval needs a person whom their device has verified, by the enforcer's rules.
    pub verify: Verify,
    /// The device that asked, to which words of the decision are sealed.
    pub asked_by: Pin,
}

/// Why a request is not shown for a decision. What can't be checked can't be approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not an `approval.request` of the protocol.
    #[error("the request is not in a format that is known here")]
    Malformed,
    /// It is not sealed, so the gateway could have written it.
    #[error("the request is not sealed: anybody between could have written it")]
    NotSealed,
    /// Its sender is not pinned, or not any more.
    #[error("it comes from {0}, which is not paired with this device")]
    UnknownSender(String),
    /// It does not open.
    #[error("the request does not open: {0}")]
    Seal(#[from] SealError),
    /// What was sealed is not what the envelope says.
    #[error("what was sealed differs from what the gateway says in {0}")]
    Differs(&'static str),
}

impl OpenedRequest {
    /// Opens an `approval.request` envelope, in this order: shape, sealed, sender pinned, sealed by that sender to this
    /// device in this context, hash of the content, agreement of content and envelope.
    pub fn open(
        envelope: &Envelope<'_>,
        approver: &str,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Self, OpenError> {
        let relayed = Relayed::read(envelope, pins, now)?;
        checks::all(&Relayed::SENDER, &relayed)?;
        let text = relayed.open(approver, keys)?;
        let unsealed = Unsealed::read(&relayed, &text)?;
        checks::all(&Unsealed::AGREES, &unsealed)?;
        Ok(unsealed.accept())
    }
}

/// A request as the gateway relays it: sealed content, and what the gateway says of it.
struct Relayed<'a> {
    envelope: &'a Envelope<'a>,
    body: Value,
    sealed: Sealed,
    hash: Sha256Hex,
    expires_at: Timestamp,
    enforcer: EnforcerId,
    /// The device that it names as its sender, which is pinned as that enforcer's.
    asked_by: &'a Pin,
    /// Whether the keys of that device count now.
    is_active: bool,
}

impl<'a> Relayed<'a> {
    const SENDER: [Check<Self, OpenError>; 1] =
        [("sender", |it| ensure(it.is_active, OpenError::UnknownSender(it.enforcer.to_string())))];

    fn read(envelope: &'a Envelope<'a>, pins: &'a Pins, now: Timestamp) -> Result<Self, OpenError> {
        if envelope.msg_type != MsgType::ApprovalRequest {
            return Err(OpenError::Malformed);
        }
        let body: Value = serde_json::from_str(envelope.body.as_str()).map_err(|_| OpenError::Malformed)?;
        // Sealed as a whole, or in the place of the payload: the content and all checks are the same.
        let in_place = || body.get("payload")?.get("ciphertext");
        let ciphertext = body.get("ciphertext").or_else(in_place).ok_or(OpenError::NotSealed)?;
        let sealed: Sealed = serde_json::from_value(ciphertext.clone()).map_err(|_| OpenError::Malformed)?;
        let (hash, expires_at) = (member(&body, "artifactHash")?, member(&body, "expiresAt")?);
        let pin = sealed.sender().and_then(|fingerprint| pins.get(fingerprint));
        let (enforcer, asked_by) = sender(envelope, pin)?;
        let is_active = pins.is_active(asked_by.fingerprint(), now);
        Ok(Self { envelope, body, sealed, hash, expires_at, enforcer, asked_by, is_active })
    }

    fn open(&self, approver: &str, keys: &DeviceKeys) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let written: String = member(&self.body, "expiresAt")?;
        let context = context(&self.envelope.request_id, self.hash, &self.enforcer, &written);
        Ok(self.sealed.open(keys, approver, self.asked_by.bundle(), &context)?)
    }
}

/// The content of a request beside what the gateway says of it.
struct Unsealed<'a> {
    relayed: &'a Relayed<'a>,
    artifact: Verbatim<'a, Artifact<'a>>,
}

impl<'a> Unsealed<'a> {
    const AGREES: [Check<Self, OpenError>; 4] = [
        ("hash", |it| {
            let is_own = it.artifact.check_hash().is_ok() && it.artifact.artifact_hash == it.relayed.hash;
            ensure(is_own, OpenError::Differs("artifactHash"))
        }),
        ("request id", |it| {
            let is_own = it.artifact.request_id == it.relayed.envelope.request_id;
            ensure(is_own, OpenError::Differs("requestId"))
        }),
        ("expiry", |it| {
            ensure(it.artifact.expires_at == it.relayed.expires_at, OpenError::Differs("expiresAt"))
        }),
        ("artifact type", |it| {
            let is_own = it.relayed.body.get("artifactType") == Some(&json!(it.artifact.artifact_type));
            ensure(is_own, OpenError::Differs("artifactType"))
        }),
    ];

    fn read(relayed: &'a Relayed<'a>, text: &'a [u8]) -> Result<Self, OpenError> {
        Ok(Self { relayed, artifact: parse(text).map_err(|_| OpenError::Malformed)? })
    }

    /// The request as it is shown once every check has passed.
    fn accept(&self) -> OpenedRequest {
        let (relayed, artifact) = (self.relayed, &self.artifact);
        OpenedRequest {
            request_id: artifact.request_id.clone(),
            enforcer: relayed.enforcer.clone(),
            artifact_type: artifact.artifact_type,
            artifact_hash: relayed.hash,
            repo_ref: artifact.repo_ref.clone(),
            repo_name: repo_name(artifact),
            session: session(artifact),
            created_at: artifact.created_at,
            expires_at: relayed.expires_at,
            payload: artifact.payload.as_str().to_owned(),
            artifact: Zeroizing::new(artifact.raw().as_str().to_owned()),
            actions: actions_of(artifact),
            supersedes: supersedes(artifact),
            edits: edit::offered(artifact),
            is_edited: edit::is_edited(artifact),
            verify: Verify::of(artifact),
            asked_by: relayed.asked_by.clone(),
        }
    }
}

/// Who asks: the machine whose pinned keys have sealed the request. A gateway may leave out who it is, and must not say that
/// it is another one.
fn sender<'a>(envelope: &Envelope<'_>, pin: Option<&'a Pin>) -> Result<(EnforcerId, &'a Pin), OpenError> {
    let named = envelope.sender.enforcer_id.as_ref();
    match pin.map(|pin| (pin, pin.party())) {
        Some((pin, Party::Enforcer(id))) if named.is_none_or(|named| named == id) => Ok((id.clone(), pin)),
        _ => Err(OpenError::UnknownSender(
            named.map_or_else(|| "a machine without a name".to_owned(), ToString::to_string),
        )),
    }
}

/// The buttons of an artifact. A list that is broken or not known means approve and reject.
pub(crate) fn actions_of(artifact: &Artifact<'_>) -> Vec<Action> {
    let list = artifact.requested_actions().ok().flatten();
    list.map(|list| list.actions().to_vec()).unwrap_or_default()
}

fn member<T: std::str::FromStr>(body: &Value, name: &str) -> Result<T, OpenError> {
    let text = body.get(name).and_then(Value::as_str).ok_or(OpenError::Malformed)?;
    text.parse().map_err(|_| OpenError::Malformed)
}

/// The session that an artifact belongs to: its member, or else the extension of earlier programs.
fn session(artifact: &Artifact<'_>) -> Option<String> {
    let former = || artifact.extensions?.members().ok()?.optional(FORMER_SESSION_ID).ok()?;
    artifact.session_id.as_ref().map(ToString::to_string).or_else(former)
}

/// The request whose place an artifact takes; what is no id names none.
fn supersedes(artifact: &Artifact<'_>) -> Option<RequestId> {
    artifact.extensions?.members().ok()?.optional(SUPERSEDES).ok()?
}

/// The name of the repository that an artifact is about.
pub(crate) fn repo_name(artifact: &Artifact<'_>) -> Option<String> {
    REPO_NAME.read(&mut artifact.extensions?.members().ok()?).ok()?
}

#[cfg(test)]
mod tests;
