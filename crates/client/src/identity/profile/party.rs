//! Who a profile or a pin is about, and how it reaches the gateway.

use std::{fmt, net::IpAddr};

use countersign_wire::{
    Error as WireError, FromJson, Members,
    id::{ApproverId, EnforcerId},
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::error::ProfileError;
use crate::json::vocabulary;

vocabulary! {
    /// What a party does.
    pub enum Role {
        /// Controls an agent, asks, and enforces the answers.
        Enforcer = "enforcer",
        /// Reviews requests and decides on them.
        Approver = "approver",
    }
}

/// One enforcer or approver: the same id in the other role is somebody else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// A program beside an agent.
    Enforcer(EnforcerId),
    /// A person, who may have several devices.
    Approver(ApproverId),
}

impl Party {
    /// The role, without the id.
    pub fn role(&self) -> Role {
        match self {
            Self::Enforcer(_) => Role::Enforcer,
            Self::Approver(_) => Role::Approver,
        }
    }

    /// The id, without the role.
    pub fn id(&self) -> &str {
        match self {
            Self::Enforcer(id) => id.as_str(),
            Self::Approver(id) => id.as_str(),
        }
    }

    /// Takes the members `role` and `id`.
    pub(super) fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        Ok(match members.required("role")? {
            Role::Enforcer => Self::Enforcer(members.required("id")?),
            Role::Approver => Self::Approver(members.required("id")?),
        })
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role(), self.id())
    }
}

/// The address of a gateway: HTTPS, or HTTP on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayUrl(Box<str>);

impl GatewayUrl {
    const MAX_BYTES: usize = 2_048;

    /// Checks an address such as `https://gw.example` or `https://example.org/gateway`. A slash at the end is dropped.
    pub fn new(text: &str) -> Result<Self, ProfileError> {
        check_url(text).map_err(|rule| ProfileError::Invalid { part: "the address of the gateway", rule })?;
        Ok(Self(text.trim_end_matches('/').into()))
    }

    /// The address without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_url(text: &str) -> Result<(), &'static str> {
    if text.len() > GatewayUrl::MAX_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must be up to 2048 visible ASCII characters");
    }
    if text.contains(['?', '#', '@', '\\']) {
        return Err("must have no user, no query and no fragment");
    }
    let is_local = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => return if host(rest).is_empty() { Err("has no host") } else { Ok(()) },
        (None, Some(rest)) => is_this_machine(host(rest)),
        (None, None) => return Err("must start with https://"),
    };
    if is_local { Ok(()) } else { Err("must start with https://, except on this machine") }
}

/// The host of what follows the scheme, without its port.
fn host(rest: &str) -> &str {
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

impl Serialize for GatewayUrl {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(&self.0)
    }
}

impl FromJson<'_> for GatewayUrl {
    fn from_json(value: &RawValue) -> Result<Self, WireError> {
        let text = String::from_json(value)?;
        check_url(&text).map_err(|rule| WireError::breaks("", rule))?;
        Ok(Self(text.into()))
    }
}

/// What a party authenticates with at the gateway: an API key, or a token of another kind. It is wiped from memory when
/// dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(Zeroizing<String>);

impl Credential {
    const MAX_BYTES: usize = 8_192;

    /// Checks that the text can be sent in a header.
    pub fn new(text: Zeroizing<String>) -> Result<Self, ProfileError> {
        match is_credential(&text) {
            true => Ok(Self(text)),
            false => Err(ProfileError::Invalid { part: "the credential", rule: CREDENTIAL_RULE }),
        }
    }

    /// The secret itself, for the header of a request.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

const CREDENTIAL_RULE: &str = "must be 1 to 8192 visible ASCII characters";

fn is_credential(text: &str) -> bool {
    (1..=Credential::MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

impl FromJson<'_> for Credential {
    fn from_json(value: &RawValue) -> Result<Self, WireError> {
        let text = Zeroizing::new(String::from_json(value)?);
        if is_credential(&text) { Ok(Self(text)) } else { Err(WireError::breaks("", CREDENTIAL_RULE)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_reached_by_https_or_on_this_machine() {
        for good in [
            "https://gw.example",
            "https://gw.example:8443/base/",
            "http://localhost:8080",
            "http://127.0.0.1:8080",
            "http://127.9.9.9/",
            "http://[::1]:8080",
        ] {
            let url = GatewayUrl::new(good).unwrap();
            assert_eq!(url.as_str(), good.trim_end_matches('/'));
        }
        for bad in [
            "",
            "gw.example",
            "ftp://gw.example",
            "https://",
            "https:///path",
            "http://gw.example",
            "http://10.0.0.1",
            "http://127.0.0.1.evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "https://user:secret@gw.example",
            "https://gw.example?x=1",
            "https://gw.example/#code",
            "https://gw.example/ path",
            "https://gw.éxample",
        ] {
            assert!(GatewayUrl::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_credential_fits_into_a_header() {
        let credential = |text: &str| Credential::new(Zeroizing::new(text.to_owned()));
        assert_eq!(credential("csk_acme_x_y").unwrap().expose(), "csk_acme_x_y");
        for bad in ["", "two words", "line\nbreak", "é", &"x".repeat(8_193)] {
            assert!(credential(bad).is_err(), "{bad}");
        }
    }
}
