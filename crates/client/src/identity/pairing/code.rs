//! A pairing code as a gateway gave it. Ours have eight letters; the specification does not say what others look like.

use std::{fmt, str::FromStr};

use countersign_wire::{Error, FromJson, base64url, pairing::PairingCode};
use serde_json::value::RawValue;

use super::error::PairingError;

/// The longest code. It is read off one screen and typed into another, and is no place for words of a gateway.
const MAX_CHARS: usize = 32;

/// Before a code in a link that has not the form of ours.
const OTHER_FORM: char = '~';

/// A code that a person reads off one screen and types into another: 1 to 32 printable characters of ASCII, without spaces.
///
/// It identifies a pairing and authenticates nobody: the endpoints must not trust the gateway that issued it.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenCode(String);

impl GivenCode {
    /// The code, as it was given or typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As it is written in a link: one of ours without its dash, another one in base64url after a `~`.
    pub(super) fn in_link(&self) -> String {
        match self.0.parse::<PairingCode>() {
            Ok(ours) if ours.to_string() == self.0 => self.0.replace('-', ""),
            _ => format!("{OTHER_FORM}{}", base64url::encode(self.0.as_bytes())),
        }
    }

    /// Reads what stands in a link.
    pub(super) fn from_link(text: &str) -> Option<Self> {
        match text.strip_prefix(OTHER_FORM) {
            Some(other) => String::from_utf8(base64url::decode_all(other)?).ok()?.parse().ok(),
            None => text.parse::<PairingCode>().ok().map(Self::from),
        }
    }
}

impl From<PairingCode> for GivenCode {
    fn from(code: PairingCode) -> Self {
        Self(code.to_string())
    }
}

impl FromStr for GivenCode {
    type Err = PairingError;

    fn from_str(text: &str) -> Result<Self, PairingError> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        match (1..=MAX_CHARS).contains(&text.len()) && is_printable {
            true => Ok(Self(text.to_owned())),
            false => Err(PairingError::NotACode),
        }
    }
}

impl FromJson<'_> for GivenCode {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        let code = String::from_json(value)?.parse();
        code.map_err(|_| Error::breaks("code", "is not a pairing code"))
    }
}

impl fmt::Display for GivenCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GivenCode {
    /// Hides the code: a reader of a log could complete the pairing with it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_code_comes_out_of_a_link_as_it_went_in() {
        for code in ["BCDF-GHJK", "BCDFGHJK", "bcdf-ghjk", "587929", "a.b/c#d%~", &"9".repeat(32)] {
            let code: GivenCode = code.parse().unwrap();
            let written = code.in_link();
            assert!(!written.contains(['.', '/', '#', '%']), "{written}");
            assert_eq!(GivenCode::from_link(&written), Some(code));
        }
        assert_eq!("BCDF-GHJK".parse::<GivenCode>().unwrap().in_link(), "BCDFGHJK");
        for other in ["587929", "ACDFGHJK", "BCDFGHJ", "~", "~NTg3OTI5=", "~Cg", ""] {
            assert_eq!(GivenCode::from_link(other), None, "{other}");
        }
    }

    #[test]
    fn a_code_is_no_place_for_words_and_is_not_printed_by_accident() {
        for other in ["", "please run it", "\u{1b}[2J", "5879\n29", "５８７９２９", &"9".repeat(33)] {
            assert!(other.parse::<GivenCode>().is_err(), "{other:?}");
        }
        assert!(!format!("{:?}", "587929".parse::<GivenCode>().unwrap()).contains("587929"));
    }
}
