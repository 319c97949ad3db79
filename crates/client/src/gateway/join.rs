//! Joining: trades an invitation for an API key of one's own.

use std::{fmt, str::FromStr, time::Duration};

use countersign_wire::{FromMembers, Members, base64url};
use serde_json::json;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    gateway::http::{Call, CallError, Http},
    identity::{
        pairing::link::PairingLink,
        profile::{Credential, GatewayUrl, Party, ProfileError, Role},
    },
    random::{self, NoRandomness},
};

/// For how long a join is retried. The gateway gives the same answer to the same nonce for a minute.
const JOIN_TIME: Duration = Duration::from_secs(45);

/// For how long the gateway is asked what an invitation is for.
const PREVIEW_TIME: Duration = Duration::from_secs(5);

/// `<gateway>/join#<invitation>`. What is secret is in the fragment, which is never sent to a server as part of a link.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinLink {
    gateway: GatewayUrl,
    invitation: Zeroizing<String>,
}

/// Why nobody has joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The text is not a link of `countersign-gateway invite`.
    #[error(
        "this is not an invitation; it looks like https://gateway.example/join#…, with all that follows the #"
    )]
    NotALink,
    /// The invitation is unknown, expired, revoked or used; the gateway does not say which.
    #[error("this invitation was used, or has expired; ask for a new one")]
    Invalid,
    /// The gateway refused for another reason, or could not be reached.
    #[error(transparent)]
    Call(CallError),
    /// What the gateway returned can't be kept.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Without randomness nobody joins.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

impl FromStr for JoinLink {
    type Err = JoinError;

    fn from_str(text: &str) -> Result<Self, JoinError> {
        let (gateway, invitation) = text.trim_ascii().split_once("/join#").ok_or(JoinError::NotALink)?;
        let is_plain = !invitation.is_empty() && invitation.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain {
            return Err(JoinError::NotALink);
        }
        let gateway = GatewayUrl::new(gateway).map_err(|_| JoinError::NotALink)?;
        Ok(Self { gateway, invitation: Zeroizing::new(invitation.to_owned()) })
    }
}

impl JoinLink {
    /// The gateway that invites.
    pub fn gateway(&self) -> &GatewayUrl {
        &self.gateway
    }

    /// The same invitation, used over another address of the same gateway.
    #[must_use]
    pub fn at(&self, gateway: GatewayUrl) -> Self {
        Self { gateway, invitation: self.invitation.clone() }
    }
}

/// `<gateway>/connect#v1.<code>.<enforcerId>.<fingerprint>.<secret>.<invitation>`: one code that joins and pairs. The two are
/// good once each, so whoever has joined goes on with the pairing alone.
#[derive(Debug, Clone)]
pub struct ConnectLink {
    /// Lets a device join, as the one that it is for.
    pub invitation: JoinLink,
    /// Pairs it with the machine that shows the link.
    pub pairing: PairingLink,
}

const CONNECT: &str = "/connect#v1.";

impl FromStr for ConnectLink {
    type Err = JoinError;

    fn from_str(text: &str) -> Result<Self, JoinError> {
        let (gateway, fragment) = text.trim_ascii().split_once(CONNECT).ok_or(JoinError::NotALink)?;
        let (dot, _) = fragment.match_indices('.').nth(3).ok_or(JoinError::NotALink)?;
        let (pairing, invitation) = (&fragment[..dot], &fragment[dot + 1..]);
        let pairing = Zeroizing::new(format!("{gateway}/pair#v1.{pairing}"));
        Ok(Self {
            invitation: Zeroizing::new(format!("{gateway}/join#{invitation}")).parse()?,
            pairing: pairing.parse().map_err(|_| JoinError::NotALink)?,
        })
    }
}

impl fmt::Display for ConnectLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairing = Zeroizing::new(self.pairing.to_string());
        let (gateway, pairing) = pairing.split_once("/pair#v1.").ok_or(fmt::Error)?;
        write!(f, "{gateway}{CONNECT}{pairing}.{}", *self.invitation.invitation)
    }
}

impl fmt::Debug for JoinLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinLink({})", self.gateway.as_str())
    }
}

/// What somebody who joined has: everything that a profile needs besides keys.
#[derive(Debug)]
pub struct Joined {
    /// The gateway that invited.
    pub gateway: GatewayUrl,
    /// The API key, which nobody else has.
    pub credential: Credential,
    /// The tenant that the operator's invitation is for.
    pub tenant: String,
    /// Who one is there.
    pub party: Party,
}

struct NewKey {
    key: Zeroizing<String>,
    tenant: String,
    party: Party,
}

impl FromMembers<'_> for NewKey {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let party = party(members)?;
        let key = Zeroizing::new(members.required("key")?);
        Ok(Self { key, tenant: members.required("tenant")?, party })
    }
}

/// What an invitation is for, in the gateway's word, which nobody has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invited {
    /// The tenant that the operator's invitation is for.
    pub tenant: String,
    /// Who one would be there.
    pub party: Party,
}

impl FromMembers<'_> for Invited {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        Ok(Self { party: party(members)?, tenant: members.required("tenant")? })
    }
}

fn party(members: &mut Members<'_>) -> Result<Party, countersign_wire::Error> {
    Ok(match members.required("role")? {
        Role::Enforcer => Party::Enforcer(members.required("id")?),
        Role::Approver => Party::Approver(members.required("id")?),
    })
}

/// What a gateway says of an invitation that nobody has used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preview {
    /// It is for this.
    Invited(Invited),
    /// It is unknown, expired, revoked or used.
    Invalid,
    /// The gateway does not say: it may be another one, or can't be reached.
    Unsaid,
}

/// Asks what an invitation is for, and does not use it.
pub async fn preview(link: &JoinLink) -> Preview {
    let body = Zeroizing::new(json!({ "invitation": *link.invitation }).to_string());
    let Ok(http) = Http::new(link.gateway.clone(), None) else { return Preview::Unsaid };
    let call = Call::post("/platform/v1/join/preview", (*body).clone());
    match http.send_until(&call, Instant::now() + PREVIEW_TIME).await {
        Ok(answer) => answer.object().map_or(Preview::Unsaid, Preview::Invited),
        Err(error @ CallError::Refused { status: 404, .. }) if !error.is_no_endpoint() => Preview::Invalid,
        Err(_) => Preview::Unsaid,
    }
}

/// Joins with an invitation, which is used up then. A lost answer is asked for again under the same nonce.
pub async fn join(link: &JoinLink) -> Result<Joined, JoinError> {
    let nonce = base64url::encode(&random::bytes::<24>()?);
    let body = Zeroizing::new(json!({ "invitation": *link.invitation, "nonce": nonce }).to_string());
    let http = Http::new(link.gateway.clone(), None).map_err(JoinError::Call)?;
    let call = Call::post("/platform/v1/join", (*body).clone());
    let answer = match http.send_until(&call, Instant::now() + JOIN_TIME).await {
        Err(CallError::Refused { status: 404, .. }) => return Err(JoinError::Invalid),
        answer => answer.map_err(JoinError::Call)?,
    };
    let made: NewKey = answer.object().map_err(JoinError::Call)?;
    let credential = Credential::new(made.key)?;
    Ok(Joined { gateway: link.gateway.clone(), credential, tenant: made.tenant, party: made.party })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_gateway_and_an_invitation() {
        let link: JoinLink = " https://gw.example/countersign/join#csi_acme_x.y-z\n".parse().unwrap();
        assert_eq!(
            (link.gateway.as_str(), link.invitation.as_str()),
            ("https://gw.example/countersign", "csi_acme_x.y-z")
        );
        assert!(!format!("{link:?}").contains("csi_"));
        for other in [
            "",
            "https://gw.example/join",
            "https://gw.example/join#",
            "http://gw.example/join#x",
            "join#x",
            "https://gw/join#a b",
        ] {
            assert!(matches!(other.parse::<JoinLink>(), Err(JoinError::NotALink)), "{other}");
        }
    }

    #[test]
    fn one_link_joins_and_pairs() {
        let (id, print) = (base64url::encode("Ada's laptop".as_bytes()), base64url::encode(&[5; 32]));
        let secret = base64url::encode(&[7; 16]);
        let text = format!("https://gw.example/c/connect#v1.BCDFGHJK.{id}.{print}.{secret}.csi_acme_x.y-z");
        let link: ConnectLink = format!(" {text}\n").parse().unwrap();
        assert_eq!(link.to_string(), text);
        assert_eq!(link.invitation.invitation.as_str(), "csi_acme_x.y-z");
        assert_eq!(
            link.pairing.to_string(),
            format!("https://gw.example/c/pair#v1.BCDFGHJK.{id}.{print}.{secret}")
        );
        assert!(!format!("{link:?}").contains("csi_") && !format!("{link:?}").contains(&secret));
        for other in [
            text.replace("/connect#", "/join#"),
            text.replace(".csi_acme_x.y-z", ""),
            text.replace(".csi_acme_x.y-z", "."),
            text.replace(&secret, "x"),
            text.replace("https://gw", "http://gw"),
            text.replace("gw.example", "gw.example@evil"),
        ] {
            assert!(matches!(other.parse::<ConnectLink>(), Err(JoinError::NotALink)), "{other}");
        }
    }
}
