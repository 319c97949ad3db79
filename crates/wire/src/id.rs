//! Ids: opaque, case-sensitive, compared byte by byte.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{Rule, limits::MAX_ID, written::written_as_string};

fn check(text: &str) -> Result<(), Rule> {
    if text.is_empty() || text.len() > MAX_ID {
        return Err(Rule("must be 1 to 256 bytes long"));
    }
    if text.chars().any(char::is_control) {
        return Err(Rule("must not have control characters"));
    }
    Ok(())
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        ///
        /// 1 to 256 bytes of UTF-8 without control characters. Cloning is cheap: clones use the same text.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and keeps it as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, Rule> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text))
            }

            /// The id as it was written; no case or Unicode normalisation.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Rule;

            fn from_str(text: &str) -> Result<Self, Rule> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        written_as_string!($name);
    )+};
}

ids! {
    /// One exchange: an artifact and its eventual decision. Also names prompts.
    RequestId,
    /// One message that the gateway sent, stable across redelivery.
    MsgId,
    /// One core envelope, chosen by its sender.
    EnvelopeId,
    /// One session of an agent, chosen by its enforcer.
    SessionId,
    /// One snapshot of a session, unique within it.
    SnapshotId,
    /// One enforcer: the component that controls an agent. Presence calls it `enforcerDeviceId`.
    EnforcerId,
    /// One approver: the component that a person reviews and decides with.
    ApproverId,
    /// One gateway; in the `sender` of every envelope that a gateway sends.
    GatewayId,
    /// One tenant. Tenants are isolated: the same id in two tenants names two different things.
    TenantId,
    /// The `deviceId` of a core envelope: an enforcer's or an approver's id, by the actor.
    DeviceId,
    /// A secret from pairing; a request that contains it is routed to the paired approver.
    RoutingToken,
    /// One pairing, from its code to its completion.
    PairingNonce,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_keeps_its_case_and_its_bytes() {
        let id = RequestId::new("a/B é ’😀").unwrap();
        assert_eq!(id.as_str(), "a/B é ’😀");
        assert_ne!(id, RequestId::new("A/B é ’😀").unwrap());
    }

    #[test]
    fn id_length_is_counted_in_bytes() {
        assert!(RequestId::new("").is_err());
        assert!(RequestId::new("x".repeat(256)).is_ok());
        assert!(RequestId::new("x".repeat(257)).is_err());
        assert!(RequestId::new("é".repeat(128)).is_ok());
        assert!(RequestId::new("é".repeat(129)).is_err());
    }

    #[test]
    fn id_has_no_control_characters() {
        for char in ['\0', '\n', '\r', '\u{7f}', '\u{85}', '\u{9f}'] {
            assert!(RequestId::new(format!("a{char}b")).is_err(), "{char:?}");
        }
        assert!(RequestId::new("a\u{a0}b").is_ok());
    }
}
