//! Web Push: a message that only the device can read (RFC 8291), from a sender that its service can recognise (RFC 8292).

use aws_lc_rs::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use countersign_core::random::RandomSource as _;
use serde_json::json;

use crate::random;

/// All messages have the same size, so that it says nothing: with salt, keys and tag below the 4,096 bytes of services.
const PLAINTEXT: usize = 2_048;
const SALT: usize = 16;
const PUBLIC_KEY: usize = 65;
const KEY_LENGTH: u8 = 65;
const AUTH: usize = 16;
const RECORD_SIZE: u32 = 4_096;

/// A sender is recognised for so long; services take at most a day.
const TOKEN_SECONDS: u64 = 12 * 60 * 60;

/// The keys that a device gives out with its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceKeys {
    /// An uncompressed point of P-256.
    public: [u8; PUBLIC_KEY],
    auth: [u8; AUTH],
}

impl DeviceKeys {
    /// Reads both from base64url; `None` if they can't be such keys.
    pub(crate) fn parse(p256dh: &str, auth: &str) -> Option<Self> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let public: [u8; PUBLIC_KEY] = decode(p256dh)?.try_into().ok()?;
        let keys = Self { public, auth: decode(auth)?.try_into().ok()? };
        // Whether it is a point of the curve shows when it is used.
        encrypt(&keys, b"").ok().map(|_| keys)
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut key = [0; N];
    Salt::new(HKDF_SHA256, salt).extract(secret).expand(info, Length(N))?.fill(&mut key)?;
    Ok(key)
}

/// Encrypts a message for a device, as one record of `aes128gcm`. Fails if the device's key is none, or the message is too long.
pub(crate) fn encrypt(device: &DeviceKeys, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let ours = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new())?;
    let mut salt = [0; SALT];
    random::SystemRandom.fill(&mut salt);
    encrypt_with(device, ours, salt, message)
}

fn encrypt_with(
    device: &DeviceKeys,
    ours: EphemeralPrivateKey,
    salt: [u8; SALT],
    message: &[u8],
) -> Result<Vec<u8>, Unspecified> {
    let our_public = ours.compute_public_key()?;
    let our_public = our_public.as_ref();
    let theirs = UnparsedPublicKey::new(&ECDH_P256, &device.public);
    let secret: [u8; 32] = agree_ephemeral(ours, theirs, Unspecified, |shared| {
        derive(&device.auth, shared, &[b"WebPush: info\0", &device.public, our_public])
    })?;
    let key: [u8; 16] = derive(&salt, &secret, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce: [u8; 12] = derive(&salt, &secret, &[b"Content-Encoding: nonce\0"])?;
    if message.len() >= PLAINTEXT {
        return Err(Unspecified);
    }
    let mut record = message.to_vec();
    // The mark of the last record, then padding.
    record.push(2);
    record.resize(PLAINTEXT, 0);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
    let header = [&salt[..], &RECORD_SIZE.to_be_bytes(), &[KEY_LENGTH], our_public].concat();
    Ok([header, record].concat())
}

/// A key of the gateway, by which push services recognise it.
#[derive(Debug)]
pub(crate) struct SenderKey(EcdsaKeyPair);

impl SenderKey {
    /// A new key, as PKCS#8.
    pub(crate) fn generate() -> Result<Vec<u8>, Unspecified> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?;
        Ok(made.as_ref().to_vec())
    }

    /// `None` if it is no such key.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok().map(Self)
    }

    /// As browsers want it: base64url of the uncompressed point.
    pub(crate) fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// The `Authorization` of a message to a service at this origin. `now` is in seconds since 1970.
    pub(crate) fn authorization(
        &self,
        origin: &str,
        subject: Option<&str>,
        now: u64,
    ) -> Result<String, Unspecified> {
        let mut claims = json!({"aud": origin, "exp": now + TOKEN_SECONDS});
        if let Some(subject) = subject {
            claims["sub"] = subject.into();
        }
        let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&json!({"typ": "JWT", "alg": "ES256"})), part(&claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes())?;
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        Ok(format!("vapid t={signed}.{signature}, k={}", self.public()))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        agreement::{PrivateKey, agree},
        signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey},
    };

    use super::*;

    /// What a device does with a message, written from RFC 8291 apart from the code above.
    fn decrypt(private: &PrivateKey, auth: &[u8], body: &[u8]) -> Vec<u8> {
        let (salt, rest) = body.split_at(SALT);
        assert_eq!((&rest[..4], rest[4]), (&[0, 0, 0x10, 0][..], 65));
        let (sender, record) = rest[5..].split_at(65);
        let public = private.compute_public_key().unwrap();
        let theirs = aws_lc_rs::agreement::UnparsedPublicKey::new(&ECDH_P256, sender);
        let info = [b"WebPush: info\0", public.as_ref(), sender].concat();
        let secret: [u8; 32] =
            agree(private, theirs, Unspecified, |shared| derive(auth, shared, &[&info])).unwrap();
        let key: [u8; 16] = derive(salt, &secret, &[b"Content-Encoding: aes128gcm\0"]).unwrap();
        let nonce: [u8; 12] = derive(salt, &secret, &[b"Content-Encoding: nonce\0"]).unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
        let mut record = record.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = key.open_in_place(nonce, Aad::empty(), &mut record).unwrap();
        let end = plain.iter().rposition(|byte| *byte != 0).unwrap();
        assert_eq!(plain[end], 2);
        plain[..end].to_vec()
    }

    #[test]
    fn a_device_reads_what_is_encrypted_for_it_and_all_messages_are_of_one_size() {
        let private = PrivateKey::generate(&ECDH_P256).unwrap();
        let public = private.compute_public_key().unwrap();
        let (p256dh, auth) = (URL_SAFE_NO_PAD.encode(public.as_ref()), URL_SAFE_NO_PAD.encode([7; 16]));
        let keys = DeviceKeys::parse(&p256dh, &auth).unwrap();
        let (short, long) = (encrypt(&keys, b"hi").unwrap(), encrypt(&keys, &[b'x'; 2_047]).unwrap());
        assert_eq!(decrypt(&private, &[7; 16], &short), b"hi");
        assert_eq!(decrypt(&private, &[7; 16], &long), [b'x'; 2_047]);
        assert!(short.len() == long.len() && long.len() < 4_096);
        assert!(encrypt(&keys, &[0; 2_048]).is_err());
        assert_ne!(encrypt(&keys, b"hi").unwrap(), short);
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        let right = PrivateKey::generate(&ECDH_P256).unwrap().compute_public_key().unwrap();
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let auth = text(&[1; 16]);
        assert!(DeviceKeys::parse(&text(right.as_ref()), &auth).is_some());
        assert!(DeviceKeys::parse(&text(right.as_ref()), &text(&[1; 15])).is_none());
        assert!(DeviceKeys::parse(&text(&right.as_ref()[..64]), &auth).is_none());
        let off_the_curve = [&[4][..], &[1; 64]].concat();
        assert!(DeviceKeys::parse(&text(&off_the_curve), &auth).is_none());
        assert!(DeviceKeys::parse("?", &auth).is_none());
    }

    #[test]
    fn a_service_recognises_the_sender_at_its_own_origin() {
        let key = SenderKey::from_pkcs8(&SenderKey::generate().unwrap()).unwrap();
        let said = key.authorization("https://push.example", Some("mailto:a@example.org"), 1_000).unwrap();
        let (token, public) = said.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(public, key.public());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let public =
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, URL_SAFE_NO_PAD.decode(public).unwrap());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        let expected = json!({"aud": "https://push.example", "exp": 44_200, "sub": "mailto:a@example.org"});
        assert_eq!(claims, expected);
        assert!(SenderKey::from_pkcs8(b"x").is_none());
    }
}
