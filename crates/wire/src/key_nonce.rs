//! The nonce with which a client makes an API key of its own, so that a repeated request gets the same key.

use std::{fmt, str::FromStr};

use crate::{Rule, written::written_as_string};

/// What the client adds to what a new key is derived from: 16 to 64 characters of base64url, as random as possible. It
/// belongs to one request and its repetitions. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyNonce(Box<str>);

impl KeyNonce {
    /// The nonce as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyNonce {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if (16..=64).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(Rule("must be 16 to 64 characters of base64url"))
        }
    }
}

impl fmt::Debug for KeyNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyNonce(…)")
    }
}

written_as_string!(KeyNonce);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_has_16_to_64_characters_of_base64url() {
        for text in ["0123456789abcde_", &"-".repeat(64)] {
            assert_eq!(text.parse::<KeyNonce>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "0123456789abcde",
            &"a".repeat(65),
            "0123456789abcde+",
            "0123456789abcde=",
            "äääääääääääääääää",
        ] {
            assert!(text.parse::<KeyNonce>().is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", "0123456789abcdef".parse::<KeyNonce>().unwrap()), "KeyNonce(…)");
    }
}
