//! Invitations: `csi_<tenant>_<invitation id>_<secret>`, which somebody trades for an API key of their own.

use std::{fmt, str::FromStr};

use crate::{
    Rule,
    api_key::check_tenant,
    hash::Sha256Hex,
    id::TenantId,
    key_nonce::KeyNonce,
    mac::{MAC_LENGTH, MacKey},
};

const PREFIX: &str = "csi_";
const ULID_LENGTH: usize = 26;
const SECRET_LENGTH: usize = 64;
const MAC_PURPOSE: &str = "invitation";
const KEY_PURPOSE: &str = "secret of an API key by invitation";

/// The id of an invitation, which is not secret: a ULID of 26 lowercase letters and digits, and the 16 hex digits of a
/// MAC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvitationId(Box<str>);

impl InvitationId {
    /// The id as it appears in the invitation and in lists.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InvitationId {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if text.len() == ULID_LENGTH + MAC_LENGTH && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(Rule("must be 42 lowercase letters and digits"))
        }
    }
}

impl fmt::Display for InvitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An invitation. Whoever has it can join, once, so it is a secret: `Debug` shows only its id and tenant, and the gateway
/// stores only its [`Invitation::secret_hash`].
///
/// It names the tenant, because whoever joins has no credential that does. The MAC in its id lets a gateway reject what
/// it did not make without a query of its store.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    tenant: TenantId,
    id: InvitationId,
    secret: [u8; SECRET_LENGTH],
}

impl Invitation {
    /// Builds an invitation. `ulid` is the text of a ULID, whatever its case; `secret` must come from a cryptographic
    /// random source.
    pub fn new(tenant: TenantId, ulid: &str, secret: [u8; 32], mac_key: &MacKey) -> Result<Self, Rule> {
        check_tenant(&tenant)?;
        let ulid = ulid.to_ascii_lowercase();
        let hex = Sha256Hex::from_bytes(secret).to_string();
        let mut secret = [0; SECRET_LENGTH];
        secret.copy_from_slice(hex.as_bytes());
        let mac = mac_key.mac(MAC_PURPOSE, &[tenant.as_str().as_bytes(), ulid.as_bytes(), &secret]);
        let id = format!("{ulid}{mac}").parse()?;
        Ok(Self { tenant, id, secret })
    }

    /// Whether a gateway with this key made it. The MAC covers tenant, ULID and secret. Whether it can still be used is
    /// in the store.
    pub fn is_made_with(&self, mac_key: &MacKey) -> bool {
        self.id.0.split_at_checked(ULID_LENGTH).is_some_and(|(ulid, mac)| {
            let parts: [&[u8]; 3] = [self.tenant.as_str().as_bytes(), ulid.as_bytes(), &self.secret];
            mac_key.verifies(MAC_PURPOSE, &parts, mac)
        })
    }

    /// The tenant that it claims to be for; trust it only after [`Invitation::is_made_with`].
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The public part, which the store looks it up by.
    pub fn id(&self) -> &InvitationId {
        &self.id
    }

    /// SHA-256 of the secret: what the gateway stores and compares.
    pub fn secret_hash(&self) -> Sha256Hex {
        Sha256Hex::digest(&self.secret)
    }

    /// The secret of the API key that is made with it. It takes the invitation, the nonce and the gateway's key together:
    /// whoever finds a used invitation can't compute the key, however bad the nonce was.
    pub fn key_secret(&self, nonce: &KeyNonce, mac_key: &MacKey) -> [u8; 32] {
        let (tenant, id) = (self.tenant.as_str().as_bytes(), self.id.as_str().as_bytes());
        mac_key.derive(KEY_PURPOSE, &[tenant, id, &self.secret, nonce.as_str().as_bytes()])
    }

    /// The complete invitation in plain text, to be shown once.
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}_{}_{}", self.tenant, self.id, String::from_utf8_lossy(&self.secret))
    }

    /// The link for whoever is invited, to the gateway at `public_url`. The invitation is its fragment, which browsers
    /// don't send: it gets into no server's log.
    pub fn link(&self, public_url: &str) -> String {
        format!("{public_url}/join#{}", self.expose())
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invitation({} of {})", self.id, self.tenant)
    }
}

impl FromStr for Invitation {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let rule = Rule("must be an invitation, csi_…");
        let mut parts = text.strip_prefix(PREFIX).ok_or(rule)?.split('_');
        let (Some(tenant), Some(id), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(rule);
        };
        let tenant = TenantId::new(tenant)?;
        check_tenant(&tenant)?;
        let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let secret: [u8; SECRET_LENGTH] = secret.as_bytes().try_into().map_err(|_| rule)?;
        if !secret.iter().all(hex) {
            return Err(rule);
        }
        Ok(Self { tenant, id: id.parse()?, secret })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ULID: &str = "01J2V8V3K6B2Z9X6G1V7Y2QK8H";

    fn mac_key() -> MacKey {
        MacKey::new([1; 32])
    }

    fn invitation() -> Invitation {
        Invitation::new("acme".parse().unwrap(), ULID, [7; 32], &mac_key()).unwrap()
    }

    #[test]
    fn an_invitation_is_read_back_as_it_was_written() {
        let text = invitation().expose();
        assert!(text.starts_with("csi_acme_01j2v8v3k6b2z9x6g1v7y2qk8h"), "{text}");
        assert_eq!(text.parse::<Invitation>().unwrap(), invitation());
        assert_eq!(invitation().link("https://g.example"), format!("https://g.example/join#{text}"));
        assert!(invitation().is_made_with(&mac_key()));
        assert!(!invitation().is_made_with(&MacKey::new([2; 32])));
    }

    #[test]
    fn an_invitation_with_any_one_character_changed_is_not_ours() {
        let text = invitation().expose();
        for place in 0..text.len() {
            for other in ["0", "b", "_", "-", "ä"] {
                let mut changed = text.clone();
                changed.replace_range(place..=place, other);
                let is_ours = |read: Invitation| read.is_made_with(&mac_key());
                assert!(changed == text || !changed.parse().is_ok_and(is_ours), "{changed}");
            }
        }
        for text in ["", "csi_", "csi___", &text[1..], &text[..text.len() - 1], &(text.clone() + "0")] {
            assert!(text.parse::<Invitation>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_secret_of_a_key_takes_the_invitation_the_nonce_and_the_gateways_key() {
        let nonce = |text: &str| text.parse::<KeyNonce>().unwrap();
        let secret = invitation().key_secret(&nonce("0123456789abcdef"), &mac_key());
        assert_eq!(invitation().key_secret(&nonce("0123456789abcdef"), &mac_key()), secret);
        let other = |tenant: &str, ulid: &str, random| {
            Invitation::new(tenant.parse().unwrap(), ulid, [random; 32], &mac_key()).unwrap()
        };
        for (invitation, nonce, mac_key) in [
            (invitation(), nonce("0123456789abcdeg"), mac_key()),
            (invitation(), nonce("0123456789abcdef"), MacKey::new([2; 32])),
            (other("acm", ULID, 7), nonce("0123456789abcdef"), mac_key()),
            (other("acme", "01J2V8V3K6B2Z9X6G1V7Y2QK8J", 7), nonce("0123456789abcdef"), mac_key()),
            (other("acme", ULID, 8), nonce("0123456789abcdef"), mac_key()),
        ] {
            assert_ne!(invitation.key_secret(&nonce, &mac_key), secret, "{invitation:?}");
        }
    }

    #[test]
    fn an_invitation_is_not_a_key_with_the_same_parts() {
        let key =
            crate::api_key::ApiKey::with_mac("acme".parse().unwrap(), ULID, [7; 32], &mac_key()).unwrap();
        assert_ne!(key.key_id().as_str(), invitation().id().as_str());
    }

    #[test]
    fn an_invitation_does_not_show_its_secret_when_debugged() {
        assert!(!format!("{:?}", invitation()).contains("0707"), "{:?}", invitation());
    }
}
