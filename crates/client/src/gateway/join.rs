//! Joining: trades an invitation for an API key of one's own.

use std::{fmt, str::FromStr, time::Duration};

use countersign_wire::{FromMembers, Members, base64url};
use serde_json::json;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    gateway::http::{Call, CallError, Http},
    identity::profile::{Credential, GatewayUrl, Party, ProfileError, Role},
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
    #[error("the invitation is not valid any more, or never was; ask for a new one")]
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

/// Asks what an invitation is for, and does not use it. `None` if the gateway does not say: it may be another one, or can't be
/// reached, or the invitation is not valid; [`join`] says which.
pub async fn preview(link: &JoinLink) -> Option<Invited> {
    let body = Zeroizing::new(json!({ "invitation": *link.invitation }).to_string());
    let http = Http::new(link.gateway.clone(), None).ok()?;
    let call = Call::post("/platform/v1/join/preview", (*body).clone());
    http.send_until(&call, Instant::now() + PREVIEW_TIME).await.ok()?.object().ok()
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
}
