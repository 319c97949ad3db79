//! The MAC in API keys, tickets and invitations, by which a gateway rejects a forged one without a read from its store.

use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::hash::Sha256Hex;

/// Hex digits of a MAC. It has 64 bits: whoever forges one gains no more than a read from the store.
pub const MAC_LENGTH: usize = 16;

/// The key of these MACs, and those before it, whose MACs are still accepted. It is a secret: `Debug` does not show it.
#[derive(Clone)]
pub struct MacKey {
    newest: [u8; 32],
    older: Arc<[[u8; 32]]>,
}

impl std::fmt::Debug for MacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MacKey(…)")
    }
}

impl MacKey {
    /// `key` must come from a cryptographic random source.
    pub fn new(key: [u8; 32]) -> Self {
        Self { newest: key, older: Arc::default() }
    }

    /// Also accepts what was made with these.
    #[must_use]
    pub fn accepting(self, older: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self { older: older.into_iter().collect(), ..self }
    }

    /// HMAC-SHA-256 over `purpose` and `parts`, cut to [`MAC_LENGTH`] lowercase hex digits.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> String {
        let full: [u8; 32] = over(&self.newest, purpose, parts).finalize().into_bytes().into();
        Sha256Hex::from_bytes(full).to_string()[..MAC_LENGTH].to_owned()
    }

    /// All 32 bytes of HMAC-SHA-256 over `purpose` and `parts`, as a secret. Nobody can compute it without this key and
    /// all the parts. A purpose is for this or for [`MacKey::mac`], never for both.
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        over(&self.newest, purpose, parts).finalize().into_bytes().into()
    }

    /// Whether `mac` is what [`MacKey::mac`] returns, or returned before the key was replaced. The time that it takes does not
    /// depend on how much of it is right.
    pub fn verifies(&self, purpose: &str, parts: &[&[u8]], mac: &str) -> bool {
        let spelled_as_ours = mac.len() == MAC_LENGTH
            && mac.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let Ok(bits) = u64::from_str_radix(mac, 16) else { return false };
        let is_of = |key| over(key, purpose, parts).verify_truncated_left(&bits.to_be_bytes()).is_ok();
        spelled_as_ours && std::iter::once(&self.newest).chain(&*self.older).any(is_of)
    }
}

/// Each part with its length, so that no two lists of parts are the same bytes.
fn over(key: &[u8; 32], purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC takes a key of any length")
    };
    for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_is_for_its_key_its_purpose_and_its_parts() {
        let key = MacKey::new([7; 32]);
        let parts: &[&[u8]] = &[b"ab", b"c"];
        let mac = key.mac("test", parts);
        assert_eq!(mac.len(), MAC_LENGTH);
        assert!(key.verifies("test", parts, &mac));
        assert!(!key.verifies("other", parts, &mac));
        assert!(!key.verifies("test", &[b"a", b"bc"], &mac));
        assert!(!MacKey::new([8; 32]).verifies("test", parts, &mac));
        for place in 0..MAC_LENGTH {
            for other in ["0", "1", "f", "z", "A", "+", "ä"] {
                let mut changed = mac.clone();
                changed.replace_range(place..=place, other);
                assert!(changed == mac || !key.verifies("test", parts, &changed), "{changed}");
            }
        }
        assert!(!key.verifies("test", parts, "") && !key.verifies("test", parts, &mac[1..]));
        assert_eq!(format!("{key:?}"), "MacKey(…)");
    }

    #[test]
    fn a_key_that_replaced_another_accepts_what_that_one_made_and_makes_its_own() {
        let (old, new) = (MacKey::new([7; 32]), MacKey::new([8; 32]).accepting([[6; 32], [7; 32]]));
        assert!(new.verifies("test", &[], &old.mac("test", &[])));
        assert_eq!(new.mac("test", &[]), MacKey::new([8; 32]).mac("test", &[]));
        assert!(!old.verifies("test", &[], &new.mac("test", &[])));
        assert!(!new.verifies("test", &[], &MacKey::new([9; 32]).mac("test", &[])));
    }

    /// The value of Python's `hmac` module over the same bytes.
    #[test]
    fn it_is_hmac_sha_256() {
        assert_eq!(MacKey::new([7; 32]).mac("test", &[b"ab", b"c"]), "3d55558669ec0a95");
        assert_eq!(MacKey::new([7; 32]).derive("test", &[b"ab", b"c"])[..4], [0x3d, 0x55, 0x55, 0x86]);
    }
}
