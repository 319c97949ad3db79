//! A request on its way: built, hashed and sealed by an enforcer; opened and checked by an approver. No I/O.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim,
    artifact::{Artifact, ArtifactType},
    base64url,
    envelope::Envelope,
    hash::Sha256Hex,
    id::{EnforcerId, RequestId},
    msg_type::MsgType,
    parse,
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::{
    keys::DeviceKeys,
    profile::{Party, Pin, Pins},
    random::{self, NoRandomness},
    seal::{Context, Recipient, SealError, Sealed, seal},
};

/// The extension that makes a hash impossible to guess: 128 random bits.
const SALT: &str = "org.proto.salt";

/// The extension with the name behind `repoRef`, which the gateway must not learn.
const REPO_NAME: &str = "org.proto.repoName";

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
}

/// A request with everything that its answer is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The id of the exchange.
    pub request_id: RequestId,
    /// The hash of the artifact, which the approver signs.
    pub artifact_hash: Sha256Hex,
    /// The opaque reference that the decision repeats.
    pub repo_ref: String,
    /// The time from which it can't be decided.
    pub expires_at: Timestamp,
    /// The `artifact.submit` envelope, as JSON.
    pub envelope: String,
}

/// Why a request can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody is paired who could answer.
    #[error("no approver is paired; pair one first")]
    NobodyPaired,
    /// The payload is not a JSON object that can be hashed.
    #[error("the payload can't be used: {0}")]
    Payload(#[from] countersign_wire::Error),
    /// It can't be sealed.
    #[error("the request can't be sealed: {0}")]
    Seal(#[from] SealError),
    /// Without randomness there is no request.
    #[error(transparent)]
    Random(#[from] NoRandomness),
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
        let pinned: Vec<&Pin> = pins.active_in_role(crate::profile::Role::Approver, now).collect();
        if pinned.is_empty() {
            return Err(RequestError::NobodyPaired);
        }
        let request_id: RequestId = match RequestId::new(base64url::encode(&random::bytes::<16>()?)) {
            Ok(request_id) => request_id,
            Err(_) => unreachable!("22 characters of base64url are an id"),
        };
        let expires_at = now.plus(draft.valid_for);
        let repo_ref = keys.repo_ref(&draft.repo_name);
        let payload = RawObject::parse(draft.payload.as_bytes())?;
        let mut artifact = json!({
            "requestId": request_id,
            "artifactType": draft.artifact_type,
            "repoRef": repo_ref,
            "createdAt": now,
            "expiresAt": expires_at,
            "payload": payload,
            "artifactHashAlg": "SHA-256",
            "extensions": {
                SALT: base64url::encode(&random::bytes::<16>()?),
                REPO_NAME: draft.repo_name,
            },
        });
        let unhashed = Zeroizing::new(artifact.to_string());
        let artifact_hash =
            Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes())?, "artifactHash")?;
        artifact["artifactHash"] = artifact_hash.to_string().into();
        let text = Zeroizing::new(artifact.to_string());
        let context = context(&request_id, artifact_hash, enforcer, expires_at);
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
        // With one approver it is addressed; several are found by the gateway, which knows the pairs.
        if pinned.iter().all(|pin| pin.party() == pinned[0].party()) {
            envelope["recipient"] = json!({ "approverId": pinned[0].party().id() });
        }
        Ok(Self { request_id, artifact_hash, repo_ref, expires_at, envelope: envelope.to_string() })
    }
}

fn context(request_id: &RequestId, hash: Sha256Hex, enforcer: &EnforcerId, expires_at: Timestamp) -> Context {
    Context::artifact(request_id.as_str(), &hash.to_string(), enforcer.as_str(), &expires_at.to_string())
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
    /// When the enforcer made it, by its clock.
    pub created_at: Timestamp,
    /// The time from which it can't be decided.
    pub expires_at: Timestamp,
    /// The content to review, a JSON object.
    pub payload: String,
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

/// A check of a request. The tests take each out once, to show that nothing else catches what it catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Sender,
    Hash,
    RequestId,
    ExpiresAt,
    ArtifactType,
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
        Self::open_except(envelope, approver, keys, pins, now, None)
    }

    fn open_except(
        envelope: &Envelope<'_>,
        approver: &str,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<Self, OpenError> {
        if envelope.msg_type != MsgType::ApprovalRequest {
            return Err(OpenError::Malformed);
        }
        let body: Value = serde_json::from_str(envelope.body.as_str()).map_err(|_| OpenError::Malformed)?;
        let ciphertext = body.get("ciphertext").ok_or(OpenError::NotSealed)?;
        let sealed: Sealed = serde_json::from_value(ciphertext.clone()).map_err(|_| OpenError::Malformed)?;
        let hash: Sha256Hex = member(&body, "artifactHash")?;
        let expires_at: Timestamp = member(&body, "expiresAt")?;
        let enforcer = envelope.sender.enforcer_id.clone().ok_or(OpenError::Malformed)?;
        let party = Party::Enforcer(enforcer.clone());
        let counts = |pin: &&Pin| except == Some(Check::Sender) || pins.is_active(pin.fingerprint(), now);
        let asked_by = sealed.sender().and_then(|fingerprint| pins.get(fingerprint));
        let asked_by = asked_by.filter(|pin| *pin.party() == party).filter(counts);
        let asked_by = asked_by.ok_or_else(|| OpenError::UnknownSender(enforcer.to_string()))?.clone();
        let context = context(&envelope.request_id, hash, &enforcer, expires_at);
        let text = sealed.open(keys, approver, asked_by.bundle(), &context)?;
        let artifact: Verbatim<'_, Artifact<'_>> = parse(&text).map_err(|_| OpenError::Malformed)?;
        let is_other_content = artifact.check_hash().is_err() || artifact.artifact_hash != hash;
        let is_other_type = body.get("artifactType") != Some(&json!(artifact.artifact_type));
        let differs = [
            (Check::Hash, is_other_content, "artifactHash"),
            (Check::RequestId, artifact.request_id != envelope.request_id, "requestId"),
            (Check::ExpiresAt, artifact.expires_at != expires_at, "expiresAt"),
            (Check::ArtifactType, is_other_type, "artifactType"),
        ];
        if let Some((.., what)) =
            differs.iter().find(|(check, differs, _)| *differs && except != Some(*check))
        {
            return Err(OpenError::Differs(what));
        }
        Ok(Self {
            request_id: artifact.request_id.clone(),
            enforcer,
            artifact_type: artifact.artifact_type,
            artifact_hash: hash,
            repo_ref: artifact.repo_ref.clone(),
            repo_name: repo_name(&artifact),
            created_at: artifact.created_at,
            expires_at,
            payload: artifact.payload.as_str().to_owned(),
            asked_by,
        })
    }
}

fn member<T: std::str::FromStr>(body: &Value, name: &str) -> Result<T, OpenError> {
    let text = body.get(name).and_then(Value::as_str).ok_or(OpenError::Malformed)?;
    text.parse().map_err(|_| OpenError::Malformed)
}

fn repo_name(artifact: &Artifact<'_>) -> Option<String> {
    artifact.extensions?.members().ok()?.optional(REPO_NAME).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::PinSource;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    struct World {
        robot: DeviceKeys,
        ada: DeviceKeys,
        adas: Pins,
    }

    impl World {
        fn new() -> Self {
            let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
            let mut adas = Pins::default();
            let party = Party::Enforcer("robot".parse().unwrap());
            adas.insert(Pin::new(party, robot.bundle(), PinSource::Paired, now())).unwrap();
            Self { robot, ada, adas }
        }

        /// A pushed request whose content is `artifact`, sealed for what the envelope says; `body` changes the body.
        fn pushed(&self, artifact: &Value, hash: Option<Sha256Hex>, body: impl FnOnce(&mut Value)) -> String {
            let (id, expires_at): (RequestId, Timestamp) =
                ("r".parse().unwrap(), "2026-11-15T13:00:00Z".parse().unwrap());
            let own = artifact["artifactHash"].as_str().unwrap().parse().unwrap();
            let hash = hash.unwrap_or(own);
            let context = context(&id, hash, &"robot".parse().unwrap(), expires_at);
            let recipient = Recipient { id: "ada", bundle: self.ada.bundle() };
            let sealed = seal(&self.robot, &context, artifact.to_string().as_bytes(), &[recipient]).unwrap();
            let mut sent = json!({
                "artifactType": "command.review", "artifactHash": hash, "expiresAt": expires_at, "ciphertext": sealed,
            });
            body(&mut sent);
            json!({
                "msgType": "approval.request", "requestId": id, "createdAt": now(),
                "sender": { "enforcerId": "robot" }, "body": sent,
            })
            .to_string()
        }

        fn open(&self, text: &str, pins: &Pins, except: Option<Check>) -> Result<OpenedRequest, OpenError> {
            let envelope = parse(text.as_bytes()).unwrap();
            OpenedRequest::open_except(&envelope, "ada", &self.ada, pins, now(), except)
        }
    }

    fn artifact(change: impl FnOnce(&mut Value)) -> Value {
        let mut artifact = json!({
            "requestId": "r", "artifactType": "command.review", "repoRef": "repo:x", "createdAt": now(),
            "expiresAt": "2026-11-15T13:00:00Z", "payload": { "argv": ["ls"] }, "artifactHashAlg": "SHA-256",
        });
        change(&mut artifact);
        let text = artifact.to_string();
        let object = RawObject::parse(text.as_bytes()).unwrap();
        artifact["artifactHash"] = json!(Sha256Hex::of_object_without(object, "artifactHash").unwrap());
        artifact
    }

    /// For each check an attack that is refused because of it, and succeeds without it.
    #[test]
    fn every_check_catches_what_no_other_catches() {
        let world = World::new();
        let honest = world.pushed(&artifact(|_| ()), None, |_| ());
        assert_eq!(world.open(&honest, &world.adas, None).unwrap().payload, r#"{"argv":["ls"]}"#);
        let mut revoked = world.adas.clone();
        revoked.revoke(world.robot.fingerprint(), now()).unwrap();
        let other_content =
            world.pushed(&artifact(|_| ()), Some(Sha256Hex::digest(b"shown elsewhere")), |_| ());
        let other_request = world.pushed(&artifact(|it| it["requestId"] = "r2".into()), None, |_| ());
        let longer =
            world.pushed(&artifact(|it| it["expiresAt"] = "2026-11-16T13:00:00Z".into()), None, |_| ());
        let other_type =
            world.pushed(&artifact(|_| ()), None, |body| body["artifactType"] = "plan.review".into());
        for (check, text, pins, differs) in [
            (Check::Sender, &honest, &revoked, None),
            (Check::Hash, &other_content, &world.adas, Some("artifactHash")),
            (Check::RequestId, &other_request, &world.adas, Some("requestId")),
            (Check::ExpiresAt, &longer, &world.adas, Some("expiresAt")),
            (Check::ArtifactType, &other_type, &world.adas, Some("artifactType")),
        ] {
            let expected = differs.map_or(OpenError::UnknownSender("robot".to_owned()), OpenError::Differs);
            assert_eq!(world.open(text, pins, None).err(), Some(expected), "{check:?}");
            assert!(world.open(text, pins, Some(check)).is_ok(), "without {check:?} the attack succeeds");
        }
    }

    #[test]
    fn what_is_not_sealed_is_not_opened() {
        let world = World::new();
        let open = world
            .pushed(&artifact(|_| ()), None, |body| drop(body.as_object_mut().unwrap().remove("ciphertext")));
        assert_eq!(world.open(&open, &world.adas, None).err(), Some(OpenError::NotSealed));
    }
}
