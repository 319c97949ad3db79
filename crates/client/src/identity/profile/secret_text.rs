//! A whole profile as one text, for machines that get their secrets in a variable: `csp1.<base64url>.<checksum>`.
//!
//! The checksum is for copies that were cut, not against anybody: whoever has the text has the keys.

use std::fmt;

use countersign_wire::{Error as WireError, FromMembers, Members, RawObject, base64url};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    error::ProfileError,
    facts::Facts,
    key_store::SecretBytes,
    party::Credential,
    pins::{Pin, Pins},
};
use crate::identity::keys::DeviceKeys;

const PREFIX: &str = "csp1.";

/// Bytes of the checksum: enough for any mistake in copying.
const CHECKSUM: usize = 6;

/// What the text contains.
pub(super) struct Content {
    pub(super) facts: Facts,
    pub(super) credential: Credential,
    pub(super) keys: DeviceKeys,
    pub(super) pins: Pins,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({}, {:?})", self.facts.party, self.keys)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let keys = Zeroizing::new(base64url::encode(self.keys.to_secret().as_slice()));
        let mut map = writer.serialize_map(None)?;
        self.facts.write_members(&mut map)?;
        map.serialize_entry("credential", self.credential.expose())?;
        map.serialize_entry("keys", keys.as_str())?;
        map.serialize_entry("pins", &self.pins.texts())?;
        map.end()
    }
}

impl FromMembers<'_> for Content {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let facts = Facts::from_members(members)?;
        let credential = members.required("credential")?;
        let secret: SecretBytes = members.required("keys")?;
        let secret: Option<&[u8; DeviceKeys::SECRET_BYTES]> = secret.0.as_slice().try_into().ok();
        let keys = secret
            .and_then(DeviceKeys::from_secret)
            .ok_or_else(|| WireError::breaks("keys", "are not the private keys of a device"))?;
        let pins = Pins::from_list(members.required::<Vec<Pin>>("pins")?)?;
        members.close()?;
        Ok(Self { facts, credential, keys, pins })
    }
}

/// Writes everything into one text.
pub(super) fn write(content: &Content) -> Result<Zeroizing<String>, ProfileError> {
    // Room for all of it: a buffer that grows leaves copies of secrets behind.
    let pins = serde_json::to_vec(&content.pins.texts()).map_err(|_| ProfileError::SecretText)?;
    let room = pins.len() + 3 * content.credential.expose().len() + 16_384;
    let mut json = Zeroizing::new(Vec::with_capacity(room));
    serde_json::to_writer(&mut *json, content).map_err(|_| ProfileError::SecretText)?;
    let body = Zeroizing::new(base64url::encode(&json));
    let mut text = Zeroizing::new(String::with_capacity(body.len() + 32));
    text.push_str(PREFIX);
    text.push_str(&body);
    text.push('.');
    text.push_str(&checksum(&body));
    Ok(text)
}

/// Reads what [`write`] has written; blanks around it do not matter.
pub(super) fn read(text: &str) -> Result<Content, ProfileError> {
    let parts = text.trim().strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'));
    let (body, written) = parts.ok_or(ProfileError::SecretText)?;
    if checksum(body) != written {
        return Err(ProfileError::SecretText);
    }
    let json = base64url::decode_all(body).map(Zeroizing::new).ok_or(ProfileError::SecretText)?;
    let view = RawObject::parse(&json).and_then(RawObject::view::<Content>);
    view.map(countersign_wire::Verbatim::into_view).map_err(|_| ProfileError::SecretText)
}

fn checksum(body: &str) -> String {
    let mut hash = Sha256::new_with_prefix(PREFIX);
    hash.update(body);
    base64url::encode(&hash.finalize()[..CHECKSUM])
}
