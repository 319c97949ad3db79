//! The link that an enforcer shows as text and as a QR code. What matters is in its fragment, which is never sent.

use std::{fmt, str::FromStr};

use countersign_wire::{base64url, id::EnforcerId};
use zeroize::Zeroizing;

use super::{code::GivenCode, error::PairingError};
use crate::identity::keys::Fingerprint;

/// Bytes of the secret in a link.
pub const SECRET_BYTES: usize = 16;

/// `<gateway>/pair#v1.<code>.<enforcerId>.<fingerprint>.<secret>`, ids and bytes in base64url.
#[derive(Clone)]
pub struct PairingLink {
    /// The gateway's URL, without a slash at its end.
    pub gateway: String,
    /// Identifies the pairing at the gateway.
    pub code: GivenCode,
    /// The enforcer that shows the link.
    pub enforcer_id: String,
    /// The fingerprint of its keys.
    pub fingerprint: Fingerprint,
    /// What the approver proves to have seen.
    pub secret: Zeroizing<[u8; SECRET_BYTES]>,
}

const PATH: &str = "/pair#v1.";

impl fmt::Display for PairingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let enforcer_id = base64url::encode(self.enforcer_id.as_bytes());
        let secret = Zeroizing::new(base64url::encode(self.secret.as_slice()));
        write!(
            f,
            "{}{PATH}{}.{enforcer_id}.{}.{}",
            self.gateway,
            self.code.in_link(),
            self.fingerprint,
            *secret
        )
    }
}

impl FromStr for PairingLink {
    type Err = PairingError;

    fn from_str(text: &str) -> Result<Self, PairingError> {
        let read = || {
            let (gateway, fragment) = text.trim_ascii().split_once(PATH)?;
            let [code, enforcer_id, fingerprint, secret] =
                <[&str; 4]>::try_from(fragment.split('.').collect::<Vec<_>>()).ok()?;
            let enforcer_id = String::from_utf8(base64url::decode_all(enforcer_id)?).ok()?;
            Some(Self {
                gateway: read_gateway(gateway)?,
                code: GivenCode::from_link(code)?,
                enforcer_id: EnforcerId::new(enforcer_id).ok()?.to_string(),
                fingerprint: Fingerprint::parse(fingerprint)?,
                secret: Zeroizing::new(base64url::decode(secret)?),
            })
        };
        read().ok_or(PairingError::NotALink)
    }
}

/// A URL of a host and perhaps a path: nothing that hides before an `@` or that turns the rest into a query.
fn read_gateway(text: &str) -> Option<String> {
    let text = text.trim_end_matches('/');
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'?' | b'#' | b'\\');
    (!rest.is_empty() && !rest.starts_with('/') && rest.bytes().all(is_plain)).then(|| text.to_owned())
}

impl fmt::Debug for PairingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PairingLink({}, {}, {:?})", self.gateway, self.enforcer_id, self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> PairingLink {
        PairingLink {
            gateway: "https://gw.example/countersign".to_owned(),
            code: "BCDF-GHJK".parse().unwrap(),
            enforcer_id: "robot.1 ✓".to_owned(),
            fingerprint: Fingerprint::parse(&base64url::encode(&[5; 32])).unwrap(),
            secret: Zeroizing::new([7; SECRET_BYTES]),
        }
    }

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let read: PairingLink = format!(" {}\n", link()).parse().unwrap();
        assert_eq!(read.to_string(), link().to_string());
        assert_eq!(read.enforcer_id, "robot.1 ✓");
        assert_eq!(*read.secret, [7; SECRET_BYTES]);
    }

    #[test]
    fn everything_secret_is_in_the_fragment_and_not_in_debug_output() {
        let text = link().to_string();
        let (sent, fragment) = text.split_once('#').unwrap();
        assert!(!sent.contains("BCDF") && fragment.contains(&base64url::encode(&[7; SECRET_BYTES])));
        assert!(!format!("{:?}", link()).contains(&base64url::encode(&[7; SECRET_BYTES])));
    }

    #[test]
    fn anything_else_is_no_link() {
        let text = link().to_string();
        for other in [
            "",
            "https://gw.example",
            &text[..text.len() - 1],
            &text.replace("v1.", "v2."),
            &text.replace("https", "ftp"),
            &text.replace("gw.example/countersign", ""),
            &text.replace("gw.example/countersign", "/gw.example"),
            &text.replace("gw.example", "gw.example@evil.example"),
            &text.replace("gw.example", "evil.example?"),
            &text.replace("gw.example", "evil.example#"),
            &text.replace("gw.example", "evil.example\\"),
            &text.replace("gw.example", "evil.example "),
            &text.replace(&base64url::encode("robot.1 ✓".as_bytes()), ""),
            &text.replace(&base64url::encode("robot.1 ✓".as_bytes()), &base64url::encode(b"a\nb")),
            &format!("{text}.x"),
        ] {
            assert_eq!(other.parse::<PairingLink>().err(), Some(PairingError::NotALink), "{other}");
        }
    }
}
