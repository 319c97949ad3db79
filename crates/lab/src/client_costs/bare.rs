//! The same bytes through the bare crates: JSON, SHA-256, AES-256-GCM, HPKE and Ed25519, and no check but theirs.

use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use countersign_client::keys::DeviceKeys;
use countersign_wire::base64url;
use ed25519_dalek::{Signer as _, SigningKey};
use hpke::{
    Deserializable as _, OpModeR, OpModeS, Serializable as _,
    aead::AesGcm256,
    kdf::HkdfSha256,
    kem::{Kem as _, X25519HkdfSha256},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::operation::{Operation, Side};
use crate::Failure;

type Kem = X25519HkdfSha256;
type PublicKey = <Kem as hpke::Kem>::PublicKey;
type PrivateKey = <Kem as hpke::Kem>::PrivateKey;

const INFO: &[u8] = b"bare";

/// A payload of about this many bytes: lines of text, as a patch has them.
pub(super) fn payload(bytes: usize) -> Value {
    const LINE: &str = "+    let answer = gateway.wait(&request).await?; // \"quoted\"\n";
    json!({ "argv": ["apply"], "text": LINE.repeat(bytes / LINE.len()) })
}

pub(super) struct Bare {
    payload: String,
    robot: Keys,
    ada: Keys,
    envelope: String,
    hash: String,
    decision: String,
}

struct Keys {
    signing: SigningKey,
    private: PrivateKey,
    public: PublicKey,
}

impl Keys {
    fn new() -> Result<Self, Failure> {
        let secret = DeviceKeys::generate()?.to_secret();
        let private = PrivateKey::from_bytes(&secret[32..]).map_err(fails)?;
        let public = Kem::sk_to_pk(&private);
        Ok(Self { signing: SigningKey::from_bytes(secret[..32].try_into()?), private, public })
    }
}

fn fails(error: impl std::fmt::Display) -> Failure {
    error.to_string().into()
}

#[expect(clippy::disallowed_methods, reason = "bare crates take the system's randomness")]
fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(fails)?;
    Ok(bytes)
}

fn seal(from: &Keys, to: &Keys, content: &[u8]) -> Result<Value, Failure> {
    let (key, nonce) = (random::<32>()?, random::<12>()?);
    let cipher = Aes256Gcm::new(&key.into());
    let encrypted =
        cipher.encrypt(&Nonce::from(nonce), Payload { msg: content, aad: INFO }).map_err(fails)?;
    let mode = OpModeS::Auth((from.private.clone(), from.public.clone()));
    let (enc, wrapped) =
        hpke::single_shot_seal::<AesGcm256, HkdfSha256, Kem>(&mode, &to.public, INFO, &key, INFO)
            .map_err(fails)?;
    Ok(json!({
        "nonce": base64url::encode(&nonce), "content": base64url::encode(&encrypted),
        "enc": base64url::encode(&enc.to_bytes()), "key": base64url::encode(&wrapped),
    }))
}

fn open(from: &Keys, to: &Keys, sealed: &Value) -> Result<Vec<u8>, Failure> {
    let bytes = |name: &str| {
        sealed[name].as_str().and_then(base64url::decode_all).ok_or_else(|| fails("not sealed like this"))
    };
    let enc = <Kem as hpke::Kem>::EncappedKey::from_bytes(&bytes("enc")?).map_err(fails)?;
    let mode = OpModeR::Auth(from.public.clone());
    let key = hpke::single_shot_open::<AesGcm256, HkdfSha256, Kem>(
        &mode,
        &to.private,
        &enc,
        INFO,
        &bytes("key")?,
        INFO,
    )
    .map_err(fails)?;
    let cipher = Aes256Gcm::new_from_slice(&key).map_err(fails)?;
    let nonce: [u8; 12] = bytes("nonce")?.as_slice().try_into()?;
    cipher.decrypt(&Nonce::from(nonce), Payload { msg: &bytes("content")?, aad: INFO }).map_err(fails)
}

fn hash(content: &[u8]) -> String {
    base64url::encode(&Sha256::digest(content))
}

impl Bare {
    pub(super) fn new(payload_bytes: usize) -> Result<Self, Failure> {
        let payload = payload(payload_bytes).to_string();
        let (robot, ada) = (Keys::new()?, Keys::new()?);
        let empty = String::new;
        let mut bare = Self { payload, robot, ada, envelope: empty(), hash: empty(), decision: empty() };
        bare.envelope = bare.request()?;
        bare.hash = bare.opened()?;
        bare.decision = bare.decided()?;
        Ok(bare)
    }

    /// The artifact hashed, sealed and put into an envelope.
    fn request(&self) -> Result<String, Failure> {
        let payload: Value = serde_json::from_str(&self.payload)?;
        let artifact =
            json!({ "requestId": "r", "payload": payload, "salt": base64url::encode(&random::<16>()?) });
        let artifact = artifact.to_string();
        let body = json!({
            "artifactHash": hash(artifact.as_bytes()), "ciphertext": seal(&self.robot, &self.ada, artifact.as_bytes())?,
        });
        Ok(json!({ "requestId": "r", "body": body }).to_string())
    }

    /// The envelope opened. Returns the hash of the artifact.
    fn opened(&self) -> Result<String, Failure> {
        let envelope: Value = serde_json::from_str(&self.envelope)?;
        let content = open(&self.robot, &self.ada, &envelope["body"]["ciphertext"])?;
        let hash = hash(&content);
        let artifact: Value = serde_json::from_slice(&content)?;
        if envelope["body"]["artifactHash"] != hash.as_str() || artifact["payload"]["text"].is_null() {
            return Err("another content".into());
        }
        Ok(hash)
    }

    fn decided(&self) -> Result<String, Failure> {
        let words = json!({ "reason": "because" }).to_string();
        let decision = json!({
            "requestId": "r", "artifactHash": self.hash, "decision": "approve", "scope": "once",
            "nonce": base64url::encode(&random::<16>()?), "hints": seal(&self.ada, &self.robot, words.as_bytes())?,
        });
        let text = decision.to_string();
        let signature = base64url::encode(&self.ada.signing.sign(text.as_bytes()).to_bytes());
        Ok(json!({ "decision": decision, "signature": signature }).to_string())
    }

    /// The decision verified and its words opened. Returns the length of the words.
    fn verified(&self) -> Result<usize, Failure> {
        let decision: Value = serde_json::from_str(&self.decision)?;
        let signature: [u8; 64] = decision["signature"]
            .as_str()
            .and_then(base64url::decode)
            .ok_or_else(|| fails("no signature"))?;
        let text = decision["decision"].to_string();
        let signature = ed25519_dalek::Signature::from_bytes(&signature);
        self.ada.signing.verifying_key().verify_strict(text.as_bytes(), &signature).map_err(fails)?;
        let words = open(&self.ada, &self.robot, &decision["decision"]["hints"])?;
        let words: Value = serde_json::from_slice(&words)?;
        std::hint::black_box(hash(text.as_bytes()));
        words["reason"].as_str().map(str::len).ok_or_else(|| fails("no words"))
    }
}

impl Side for Bare {
    fn run(&self, operation: Operation) -> Result<usize, Failure> {
        match operation {
            Operation::Seal => Ok(self.request()?.len()),
            Operation::Open => self.opened().map(|hash| {
                std::hint::black_box(&hash);
                self.envelope.len()
            }),
            Operation::Sign => Ok(self.decided()?.len()),
            Operation::Verify => self.verified().map(|words| {
                std::hint::black_box(words);
                self.decision.len()
            }),
        }
    }
}
