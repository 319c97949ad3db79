//! Encryption from one end to the other (docs/sealing.md).
//!
//! One content key encrypts the content once, with AES-256-GCM, bound to its [`Context`]. The content key is wrapped for
//! each device of each recipient with HPKE (RFC 9180) in auth mode, so that a recipient knows who sealed it. A wrap is
//! bound to the whole context and to its one recipient: it opens nothing else, for nobody else.

use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use countersign_wire::{base64url, canonical, keys::KeyBundle};
use hpke::{
    Deserializable as _, OpModeR, OpModeS, Serializable as _,
    aead::AesGcm256,
    kdf::HkdfSha256,
    kem::{Kem, X25519HkdfSha256},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::{
    keys::{DeviceKeys, Fingerprint},
    object,
    random::{self, NoRandomness},
};

/// The only version of the format, which is also the version in every context.
const VERSION: u8 = 1;

/// The suite, by its name in the sealed object.
const SUITE: &str = "HPKE-Auth-X25519-HKDF-SHA256-AES-256-GCM";

/// Most devices that one content can be sealed to.
pub const MAX_RECIPIENTS: usize = 64;

type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type EncappedKey = <X25519HkdfSha256 as Kem>::EncappedKey;

/// What a content is, which separates the kinds from each other: a sealed prompt never opens as an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An artifact, from an enforcer to approvers.
    Artifact,
    /// A prompt, from an approver to an enforcer.
    Prompt,
    /// A snapshot of a session, from an enforcer to approvers.
    Snapshot,
    /// What a decision says beyond approve or reject, from an approver to an enforcer.
    Hints,
}

impl Kind {
    fn info(self) -> &'static [u8] {
        match self {
            Self::Artifact => b"countersign v1 artifact",
            Self::Prompt => b"countersign v1 prompt",
            Self::Snapshot => b"countersign v1 snapshot",
            Self::Hints => b"countersign v1 hints",
        }
    }

    /// The member by which a recipient is named.
    fn recipient_member(self) -> &'static str {
        match self {
            Self::Artifact | Self::Snapshot => "approverId",
            Self::Prompt | Self::Hints => "enforcerId",
        }
    }
}

/// What a content belongs to. It is not sent along: whoever opens builds it from what they know, and a content that was
/// sealed for anything else does not open.
#[derive(Debug, Clone)]
pub struct Context {
    kind: Kind,
    members: Map<String, Value>,
}

impl Context {
    /// The context of an artifact.
    pub fn artifact(request_id: &str, artifact_hash: &str, enforcer_id: &str, expires_at: &str) -> Self {
        Self::new(
            Kind::Artifact,
            &[
                ("requestId", request_id),
                ("artifactHash", artifact_hash),
                ("enforcerId", enforcer_id),
                ("expiresAt", expires_at),
            ],
        )
    }

    /// The context of a prompt.
    pub fn prompt(request_id: &str, prompt_hash: &str, approver_id: &str, target: &str) -> Self {
        Self::new(
            Kind::Prompt,
            &[
                ("requestId", request_id),
                ("promptHash", prompt_hash),
                ("approverId", approver_id),
                ("target", target),
            ],
        )
    }

    /// The context of a session's snapshot.
    pub fn snapshot(session_id: &str, snapshot_id: &str, snapshot_hash: &str, enforcer_id: &str) -> Self {
        Self::new(
            Kind::Snapshot,
            &[
                ("sessionId", session_id),
                ("snapshotId", snapshot_id),
                ("snapshotHash", snapshot_hash),
                ("enforcerId", enforcer_id),
            ],
        )
    }

    /// The context of what a decision says beyond approve or reject.
    pub fn hints(request_id: &str, artifact_hash: &str, approver_id: &str, nonce: &str) -> Self {
        Self::new(
            Kind::Hints,
            &[
                ("requestId", request_id),
                ("artifactHash", artifact_hash),
                ("approverId", approver_id),
                ("nonce", nonce),
            ],
        )
    }

    fn new(kind: Kind, members: &[(&str, &str)]) -> Self {
        let mut map = Map::new();
        map.insert("v".to_owned(), VERSION.into());
        for (name, value) in members {
            map.insert((*name).to_owned(), (*value).into());
        }
        Self { kind, members: map }
    }

    /// What the content is bound to.
    fn content_aad(&self) -> Result<Vec<u8>, SealError> {
        canonical_form(&self.members)
    }

    /// What the wrap for one device is bound to: the whole context, and the device.
    fn wrap_aad(&self, recipient_id: &str, fingerprint: Fingerprint) -> Result<Vec<u8>, SealError> {
        let mut members = self.members.clone();
        // In a prompt or a decision the sender is an approver and the recipient an enforcer, so no name is used twice.
        members.insert(self.kind.recipient_member().to_owned(), recipient_id.into());
        members.insert("fingerprint".to_owned(), fingerprint.to_string().into());
        canonical_form(&members)
    }
}

fn canonical_form(members: &Map<String, Value>) -> Result<Vec<u8>, SealError> {
    let text = serde_json::to_vec(members).map_err(|_| SealError::Malformed)?;
    canonical::form(&text).map_err(|_| SealError::Malformed)
}

/// One device that can open a content.
#[derive(Debug, Clone)]
pub struct Recipient<'a> {
    /// The approver or enforcer whose device it is.
    pub id: &'a str,
    /// Its public keys, as they are pinned.
    pub bundle: &'a KeyBundle,
}

/// A content as it travels: the `ciphertext` of a sealed body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Sealed {
    v: u8,
    suite: String,
    /// The fingerprint of the keys that sealed it: a hint which pin to use, proven by opening.
    sender: String,
    nonce: String,
    content: String,
    recipients: Vec<Wrap>,
}

/// The content key for one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, rename_all = "camelCase")]
struct Wrap {
    #[serde(default, deserialize_with = "object::present", skip_serializing_if = "Option::is_none")]
    approver_id: Option<String>,
    #[serde(default, deserialize_with = "object::present", skip_serializing_if = "Option::is_none")]
    enforcer_id: Option<String>,
    fingerprint: String,
    enc: String,
    key: String,
}

object::objects!(Sealed, Wrap);

/// Why a content can't be sealed or opened. What can't be opened says nothing of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The sealed object is not of this format, or of another version of it.
    #[error("it is not sealed in a format that is known here")]
    Malformed,
    /// No wrap names this device.
    #[error("it is not sealed to this device")]
    NotForThisDevice,
    /// It was not sealed by this sender, for this device, in this context; or it was changed on the way.
    #[error("it was changed on the way, or was not sealed by its sender for this purpose")]
    Forged,
    /// There is nobody to seal it to, or more devices than [`MAX_RECIPIENTS`].
    #[error("it can be sealed to 1 to {MAX_RECIPIENTS} devices")]
    Recipients,
    /// Without randomness nothing is sealed.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// Seals `plaintext` from `sender` to every device of `recipients`.
pub fn seal(
    sender: &DeviceKeys,
    context: &Context,
    plaintext: &[u8],
    recipients: &[Recipient<'_>],
) -> Result<Sealed, SealError> {
    if !(1..=MAX_RECIPIENTS).contains(&recipients.len()) {
        return Err(SealError::Recipients);
    }
    let content_key = random::secret::<32>()?;
    let nonce = random::bytes::<12>()?;
    let aad = context.content_aad()?;
    let cipher = Aes256Gcm::new(&(*content_key).into());
    let encrypted = cipher
        .encrypt(&Nonce::from(nonce), Payload { msg: plaintext, aad: &aad })
        .map_err(|_| SealError::Malformed)?;
    let wraps = recipients.iter().map(|recipient| wrap(sender, context, &content_key, recipient));
    Ok(Sealed {
        v: VERSION,
        suite: SUITE.to_owned(),
        sender: sender.fingerprint().to_string(),
        nonce: base64url::encode(&nonce),
        content: base64url::encode(&encrypted),
        recipients: wraps.collect::<Result<_, _>>()?,
    })
}

fn wrap(
    sender: &DeviceKeys,
    context: &Context,
    content_key: &[u8; 32],
    recipient: &Recipient<'_>,
) -> Result<Wrap, SealError> {
    let fingerprint = Fingerprint::of(recipient.bundle);
    let private = PrivateKey::from_bytes(sender.agreement_secret()).map_err(|_| SealError::Malformed)?;
    let mode = OpModeS::Auth((private, public_key(sender.bundle())?));
    let aad = context.wrap_aad(recipient.id, fingerprint)?;
    let (enc, key) = hpke::single_shot_seal::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
        &mode,
        &public_key(recipient.bundle)?,
        context.kind.info(),
        content_key,
        &aad,
    )
    .map_err(|_| SealError::Malformed)?;
    let id = Some(recipient.id.to_owned());
    let (approver_id, enforcer_id) = match context.kind {
        Kind::Artifact | Kind::Snapshot => (id, None),
        Kind::Prompt | Kind::Hints => (None, id),
    };
    let enc = base64url::encode(&enc.to_bytes());
    Ok(Wrap {
        approver_id,
        enforcer_id,
        fingerprint: fingerprint.to_string(),
        enc,
        key: base64url::encode(&key),
    })
}

fn public_key(bundle: &KeyBundle) -> Result<PublicKey, SealError> {
    PublicKey::from_bytes(bundle.agreement.as_bytes()).map_err(|_| SealError::Malformed)
}

impl Sealed {
    /// The fingerprint that the sealed object names as its sender's. Only a hint which pin to open it with.
    pub fn sender(&self) -> Option<Fingerprint> {
        Fingerprint::parse(&self.sender)
    }

    /// Opens it with the keys of one device. `sender` are the pinned keys of whoever must have sealed it; `own_id` is the
    /// approver or enforcer whose device this is.
    pub fn open(
        &self,
        device: &DeviceKeys,
        own_id: &str,
        sender: &KeyBundle,
        context: &Context,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let is_known = self.v == VERSION && self.suite == SUITE;
        if !is_known || !(1..=MAX_RECIPIENTS).contains(&self.recipients.len()) {
            return Err(SealError::Malformed);
        }
        if self.sender() != Some(Fingerprint::of(sender)) {
            return Err(SealError::Forged);
        }
        let nonce: [u8; 12] = base64url::decode(&self.nonce).ok_or(SealError::Malformed)?;
        let encrypted = base64url::decode_all(&self.content).ok_or(SealError::Malformed)?;
        let content_key = self.unwrap_key(device, own_id, sender, context)?;
        let aad = context.content_aad()?;
        let cipher = Aes256Gcm::new_from_slice(&content_key).map_err(|_| SealError::Forged)?;
        let opened = cipher.decrypt(&Nonce::from(nonce), Payload { msg: &encrypted, aad: &aad });
        opened.map(Zeroizing::new).map_err(|_| SealError::Forged)
    }

    fn unwrap_key(
        &self,
        device: &DeviceKeys,
        own_id: &str,
        sender: &KeyBundle,
        context: &Context,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let fingerprint = device.fingerprint();
        let is_own = |wrap: &&Wrap| {
            let (named, other) = match context.kind {
                Kind::Artifact | Kind::Snapshot => (&wrap.approver_id, &wrap.enforcer_id),
                Kind::Prompt | Kind::Hints => (&wrap.enforcer_id, &wrap.approver_id),
            };
            named.as_deref() == Some(own_id)
                && other.is_none()
                && Fingerprint::parse(&wrap.fingerprint) == Some(fingerprint)
        };
        let wrap = self.recipients.iter().find(is_own).ok_or(SealError::NotForThisDevice)?;
        let enc: [u8; 32] = base64url::decode(&wrap.enc).ok_or(SealError::Malformed)?;
        let key = base64url::decode_all(&wrap.key).ok_or(SealError::Malformed)?;
        let private = PrivateKey::from_bytes(device.agreement_secret()).map_err(|_| SealError::Malformed)?;
        let content_key = hpke::single_shot_open::<AesGcm256, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Auth(public_key(sender)?),
            &private,
            &EncappedKey::from_bytes(&enc).map_err(|_| SealError::Forged)?,
            context.kind.info(),
            &key,
            &context.wrap_aad(own_id, fingerprint)?,
        );
        content_key.map(Zeroizing::new).map_err(|_| SealError::Forged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(number: u8) -> DeviceKeys {
        DeviceKeys::from_secret(&std::array::from_fn(|at| {
            number.wrapping_mul(31).wrapping_add(u8::try_from(at).unwrap())
        }))
        .unwrap()
    }

    fn context() -> Context {
        Context::artifact("r", &"a".repeat(64), "robot", "2026-11-15T12:00:00Z")
    }

    struct World {
        robot: DeviceKeys,
        phone: DeviceKeys,
        laptop: DeviceKeys,
        bob: DeviceKeys,
    }

    impl World {
        fn new() -> Self {
            Self { robot: keys(1), phone: keys(2), laptop: keys(3), bob: keys(4) }
        }

        fn sealed(&self, content: &[u8]) -> Sealed {
            let recipients = [
                Recipient { id: "ada", bundle: self.phone.bundle() },
                Recipient { id: "ada", bundle: self.laptop.bundle() },
                Recipient { id: "bob", bundle: self.bob.bundle() },
            ];
            seal(&self.robot, &context(), content, &recipients).unwrap()
        }
    }

    #[test]
    fn every_device_opens_what_was_sealed_to_it() {
        let world = World::new();
        let sealed = world.sealed(b"rm -rf /");
        let text = serde_json::to_string(&sealed).unwrap();
        assert!(!text.contains("rm -rf"));
        let sealed: Sealed = serde_json::from_str(&text).unwrap();
        for (device, id) in [(&world.phone, "ada"), (&world.laptop, "ada"), (&world.bob, "bob")] {
            let content = sealed.open(device, id, world.robot.bundle(), &context()).unwrap();
            assert_eq!(&**content, b"rm -rf /");
        }
    }

    #[test]
    fn nobody_else_opens_it() {
        let world = World::new();
        let sealed = world.sealed(b"secret");
        let open =
            |device: &DeviceKeys, id: &str| sealed.open(device, id, world.robot.bundle(), &context()).err();
        assert_eq!(open(&keys(9), "ada"), Some(SealError::NotForThisDevice));
        assert_eq!(open(&world.bob, "ada"), Some(SealError::NotForThisDevice), "another approver's name");
    }

    #[test]
    fn a_content_opens_in_its_own_context_only() {
        let world = World::new();
        let sealed = world.sealed(b"secret");
        let hash = "a".repeat(64);
        for other in [
            Context::artifact("r2", &hash, "robot", "2026-11-15T12:00:00Z"),
            Context::artifact("r", &"b".repeat(64), "robot", "2026-11-15T12:00:00Z"),
            Context::artifact("r", &hash, "robot2", "2026-11-15T12:00:00Z"),
            Context::artifact("r", &hash, "robot", "2026-11-15T12:00:01Z"),
            Context::snapshot("r", &hash, "robot", "2026-11-15T12:00:00Z"),
        ] {
            let opened = sealed.open(&world.phone, "ada", world.robot.bundle(), &other);
            assert_eq!(opened.err(), Some(SealError::Forged), "{other:?}");
        }
    }

    #[test]
    fn only_the_pinned_sender_can_have_sealed_it() {
        let world = World::new();
        let recipients = [Recipient { id: "ada", bundle: world.phone.bundle() }];
        let mut forged = seal(&world.bob, &context(), b"run this", &recipients).unwrap();
        let open = |sealed: &Sealed| sealed.open(&world.phone, "ada", world.robot.bundle(), &context()).err();
        assert_eq!(open(&forged), Some(SealError::Forged));
        // A claimed fingerprint changes nothing.
        forged.sender = world.robot.fingerprint().to_string();
        assert_eq!(open(&forged), Some(SealError::Forged));
    }

    #[test]
    fn a_recipient_can_not_reuse_wraps_for_a_content_of_its_own() {
        let world = World::new();
        let sealed = world.sealed(b"harmless");
        // Bob opens his wrap, so he knows the content key. With it he encrypts something else for the same context; what
        // the approver then hashes is not what the context names, and in another context no wrap opens.
        let key = sealed.unwrap_key(&world.bob, "bob", world.robot.bundle(), &context()).unwrap();
        let other = Context::artifact("r2", &"a".repeat(64), "robot", "2026-11-15T12:00:00Z");
        let nonce = [1; 12];
        let aad = other.content_aad().unwrap();
        let cipher = Aes256Gcm::new_from_slice(&key).unwrap();
        let encrypted = cipher.encrypt(&Nonce::from(nonce), Payload { msg: b"evil", aad: &aad }).unwrap();
        let forged = Sealed {
            nonce: base64url::encode(&nonce),
            content: base64url::encode(&encrypted),
            ..sealed.clone()
        };
        assert_eq!(
            forged.open(&world.phone, "ada", world.robot.bundle(), &other).err(),
            Some(SealError::Forged)
        );
        // Bob's wrap under ada's name is refused too.
        let mut swapped = sealed;
        swapped.recipients[0].enc = swapped.recipients[2].enc.clone();
        swapped.recipients[0].key = swapped.recipients[2].key.clone();
        assert_eq!(
            swapped.open(&world.phone, "ada", world.robot.bundle(), &context()).err(),
            Some(SealError::Forged)
        );
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let world = World::new();
        let text = serde_json::to_string(&world.sealed(b"some content")).unwrap();
        let opens = |text: &str| {
            let sealed: Result<Sealed, _> = serde_json::from_str(text);
            sealed.is_ok_and(|it| it.open(&world.phone, "ada", world.robot.bundle(), &context()).is_ok())
        };
        assert!(opens(&text));
        // The wraps of other devices may be changed: they are not this device's to check.
        let own_part = text.find("\"recipients\"").unwrap();
        let own_wrap_end = own_part + text[own_part..].find('}').unwrap();
        for at in 0..own_wrap_end {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(!opens(&String::from_utf8(changed).unwrap()), "byte {at} of {text}");
        }
    }

    #[test]
    fn a_sealed_object_has_one_way_to_be_written() {
        let world = World::new();
        let sealed = world.sealed(b"some content");
        let text = serde_json::to_string(&sealed).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let as_list = |names: [&str; 6]| Value::from_iter(names.map(|name| value[name].clone()));
        for other in [
            as_list(["v", "suite", "sender", "nonce", "content", "recipients"]).to_string(),
            text.replace("{\"v\":1", "{\"v\":1,\"v\":1"),
            text.replace("\"approverId\":\"ada\"", "\"approverId\":\"ada\",\"enforcerId\":null"),
            text.replace("\"v\":1", "\"v\":1,\"more\":1"),
        ] {
            assert_ne!(other, text);
            assert!(serde_json::from_str::<Sealed>(&other).is_err(), "{other}");
        }
        assert_eq!(serde_json::from_str::<Sealed>(&text).unwrap(), sealed);
    }

    #[test]
    fn it_is_sealed_to_somebody_and_not_to_everybody() {
        let robot = keys(1);
        let recipient = Recipient { id: "robot", bundle: robot.bundle() };
        let sealed = |count: usize| seal(&robot, &context(), b"", &vec![recipient.clone(); count]).err();
        assert_eq!((sealed(0), sealed(65)), (Some(SealError::Recipients), Some(SealError::Recipients)));
        assert_eq!(sealed(64), None);
        let mut received = seal(&robot, &context(), b"", &[recipient]).unwrap();
        let opened = |it: &Sealed| it.open(&robot, "robot", robot.bundle(), &context()).map(drop);
        assert_eq!(opened(&received), Ok(()));
        received.recipients = vec![received.recipients[0].clone(); 65];
        assert_eq!(opened(&received), Err(SealError::Malformed));
        received.recipients.clear();
        assert_eq!(opened(&received), Err(SealError::Malformed));
    }
}
