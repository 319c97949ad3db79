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
    identity::keys::{DeviceKeys, Fingerprint},
    json,
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
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    approver_id: Option<String>,
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    enforcer_id: Option<String>,
    fingerprint: String,
    enc: String,
    key: String,
}

json::objects!(Sealed, Wrap);

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

    /// The devices that can open it.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Fingerprint> {
        self.recipients.iter().filter_map(|wrap| Fingerprint::parse(&wrap.fingerprint))
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
mod tests;
