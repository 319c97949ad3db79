//! Pairing an enforcer with an approver through a short code (docs/protocol.md#pairing).

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::{
    Error, FromMembers, Label, Members, Rule,
    error::{MemberFault, Problem},
    id::{ApproverId, EnforcerId, PairingNonce, RoutingToken},
    keys::PublicKey,
    lock::{EXTENSION as LOCK, RelayedLock},
    timestamp::Timestamp,
    written::written_as_string,
};

/// The letters of a code: no vowels, so no words; none that look alike.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// Eight letters that a person reads off one screen and types into another, shown as `XXXX-XXXX`.
///
/// It identifies a pairing and authenticates nobody: the endpoints must not trust the gateway that issued it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PairingCode([u8; LENGTH]);

impl PairingCode {
    /// Draws a code; all codes are equally likely if all bytes are.
    ///
    /// ```
    /// # use countersign_wire::pairing::PairingCode;
    /// let mut bytes = 0..=u8::MAX;
    /// let code = PairingCode::draw(|| bytes.next().unwrap_or(0));
    /// assert_eq!(code.to_string(), "BCDF-GHJK");
    /// ```
    pub fn draw(mut random_byte: impl FnMut() -> u8) -> Self {
        // 240 is the largest multiple of 20 in a byte; accepting more would favour some letters.
        let mut letter = || loop {
            let byte = random_byte();
            if byte < 240 {
                return ALPHABET[usize::from(byte) % ALPHABET.len()];
            }
        };
        Self(std::array::from_fn(|_| letter()))
    }

    /// The letters without the dash, in upper case: what is stored, under a keyed hash.
    pub fn letters(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl FromStr for PairingCode {
    type Err = Rule;

    /// Reads a code as people type it: any case, with or without the dash.
    fn from_str(text: &str) -> Result<Self, Rule> {
        const RULE: Rule = Rule("is not a pairing code");
        let joined = match text.split_once('-') {
            Some((left, right)) if left.len() == LENGTH / 2 => [left, right].concat(),
            _ => text.to_owned(),
        };
        let letters: [u8; LENGTH] = joined.to_ascii_uppercase().into_bytes().try_into().map_err(|_| RULE)?;
        if letters.iter().all(|letter| ALPHABET.contains(letter)) { Ok(Self(letters)) } else { Err(RULE) }
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, letter) in self.0.iter().enumerate() {
            let dash = if index == LENGTH / 2 { "-" } else { "" };
            write!(f, "{dash}{}", char::from(*letter))?;
        }
        Ok(())
    }
}

impl fmt::Debug for PairingCode {
    /// Hides the code: a reader of a log could complete the pairing with it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(…)")
    }
}

impl Serialize for PairingCode {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

written_as_string!(PairingCode);

/// Starts a pairing, sent by the enforcer. Here and in the types below, other members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitiateRequest {
    /// The enforcer to pair; the credential must be valid for it.
    pub enforcer_id: EnforcerId,
    /// The enforcer's name for people; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<Label>,
    /// The enforcer's workspace; absent if it reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Label>,
    /// The enforcer's keys; must not contain a key of the approver.
    pub public_key: PublicKey,
}

impl FromMembers<'_> for InitiateRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            enforcer_id: members.required("enforcerId")?,
            enforcer_label: members.optional("enforcerLabel")?,
            workspace_name: members.optional("workspaceName")?,
            public_key: members.required("publicKey")?,
        })
    }
}

/// The response to [`InitiateRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitiateResponse {
    /// The code for a person to type on the approver's device.
    pub code: PairingCode,
    /// Identifies the pairing in the calls that follow.
    pub nonce: PairingNonce,
    /// The time from which the code is invalid: ten minutes after the start.
    pub expires_at: Timestamp,
}

impl FromMembers<'_> for InitiateResponse {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            code: members.required("code")?,
            nonce: members.required("nonce")?,
            expires_at: members.required("expiresAt")?,
        })
    }
}

/// The response to an approver that resolves a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolveResponse {
    /// Identifies the pairing in the calls that follow.
    pub nonce: PairingNonce,
    /// The enforcer, whose id is part of what both sides compare; absent from other gateways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// The enforcer's name for people; empty if it has none.
    #[serde(serialize_with = "label_or_empty")]
    pub enforcer_label: Option<Label>,
    /// The enforcer's workspace; empty if it reported none.
    #[serde(serialize_with = "label_or_empty")]
    pub workspace_name: Option<Label>,
    /// The enforcer's keys, as the gateway relays them: compare them over another channel.
    pub public_key: PublicKey,
}

impl FromMembers<'_> for ResolveResponse {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            nonce: members.required("nonce")?,
            enforcer_id: members.optional("enforcerId")?,
            enforcer_label: members.optional("enforcerLabel")?,
            workspace_name: members.optional("workspaceName")?,
            public_key: members.required("publicKey")?,
        })
    }
}

/// Completes a pairing, sent by the approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteRequest {
    /// Identifies the pairing in the calls that follow.
    pub nonce: PairingNonce,
    /// The approver to pair; the credential must be valid for it.
    pub approver_id: ApproverId,
    /// The approver's keys; the gateway registers the signing key of a bundle.
    pub public_key: PublicKey,
    /// What the approver's device calls itself, an extension of ours; absent if it has no name.
    #[serde(rename = "org.countersign.deviceLabel", skip_serializing_if = "Option::is_none")]
    pub device_label: Option<Label>,
    /// The lock of the approver's device, an extension of ours; absent if it has none. The gateway relays it unread.
    #[serde(rename = "org.countersign.lock", skip_serializing_if = "Option::is_none")]
    pub lock: Option<RelayedLock>,
}

/// What the approver's device calls itself.
const DEVICE_LABEL: &str = "org.countersign.deviceLabel";

impl FromMembers<'_> for CompleteRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            nonce: members.required("nonce")?,
            approver_id: members.required("approverId")?,
            public_key: members.required("publicKey")?,
            device_label: members.optional(DEVICE_LABEL)?,
            lock: members.optional(LOCK)?,
        })
    }
}

/// The response to [`CompleteRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResponse {
    /// Routes the enforcer's requests to this approver.
    pub routing_token: RoutingToken,
    /// The enforcer's name for people; empty if it has none.
    #[serde(serialize_with = "label_or_empty")]
    pub enforcer_label: Option<Label>,
    /// The enforcer's workspace; empty if it reported none.
    #[serde(serialize_with = "label_or_empty")]
    pub workspace_name: Option<Label>,
}

impl FromMembers<'_> for CompleteResponse {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            routing_token: members.required("routingToken")?,
            enforcer_label: members.optional("enforcerLabel")?,
            workspace_name: members.optional("workspaceName")?,
        })
    }
}

/// The status of a pairing, for its enforcer and its approver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingStatus {
    /// The time from which it can't be completed any more.
    pub expires_at: Timestamp,
    /// The step that the pairing has reached.
    pub progress: Progress,
}

/// The step that a pairing has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// No approver has resolved the code.
    Pending,
    /// An approver has resolved the code; the pairing is bound to them.
    Resolved,
    /// An approver has completed the pairing; final.
    Completed {
        /// The approver that completed the pairing.
        approver_id: ApproverId,
        /// The approver's keys, as the gateway relays them: compare them over another channel.
        public_key: PublicKey,
        /// Routes requests of the enforcer to that approver.
        routing_token: RoutingToken,
        /// What the approver's device calls itself; nobody has proven it.
        device_label: Option<Label>,
        /// The lock of the approver's device; what the pairing proves, it proves of this too.
        lock: Option<RelayedLock>,
    },
    /// The time passed without a completion; final.
    Expired,
}

impl Serialize for PairingStatus {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = writer.serialize_map(None)?;
        let status = match &self.progress {
            Progress::Pending => "pending",
            Progress::Resolved => "resolved",
            Progress::Completed { .. } => "completed",
            Progress::Expired => "expired",
        };
        map.serialize_entry("status", status)?;
        map.serialize_entry("expiresAt", &self.expires_at)?;
        if let Progress::Completed { approver_id, public_key, routing_token, device_label, lock } =
            &self.progress
        {
            map.serialize_entry("approverId", approver_id)?;
            map.serialize_entry("publicKey", public_key)?;
            map.serialize_entry("routingToken", routing_token)?;
            if let Some(label) = device_label {
                map.serialize_entry(DEVICE_LABEL, label)?;
            }
            if let Some(lock) = lock {
                map.serialize_entry(LOCK, lock)?;
            }
        }
        map.end()
    }
}

impl FromMembers<'_> for PairingStatus {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let progress = match members.required::<String>("status")?.as_str() {
            "pending" => Progress::Pending,
            "resolved" => Progress::Resolved,
            "expired" => Progress::Expired,
            "completed" => Progress::Completed {
                approver_id: members.required("approverId")?,
                public_key: members.required("publicKey")?,
                routing_token: members.required("routingToken")?,
                device_label: members.optional(DEVICE_LABEL)?,
                lock: members.optional(LOCK)?,
            },
            _ => {
                let rule = Rule("is none of pending resolved completed expired");
                return Err(MemberFault::at("status", Problem::Breaks(rule)).into());
            }
        };
        Ok(Self { expires_at: members.required("expiresAt")?, progress })
    }
}

/// The specification lists both labels in every response, so a missing one is written as an empty text.
#[expect(clippy::ref_option, reason = "serde's signature")]
fn label_or_empty<S: Serializer>(label: &Option<Label>, writer: S) -> Result<S::Ok, S::Error> {
    writer.serialize_str(label.as_ref().map_or("", Label::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_without_case_or_dash() {
        let code: PairingCode = "BCDF-GHJK".parse().unwrap();
        for typed in ["bcdf-ghjk", "BCDFGHJK", "bcDFghJK"] {
            assert_eq!(typed.parse(), Ok(code), "{typed}");
        }
        for other in
            ["", "BCDF", "BCDFG-HJK", "BCDF--GHJK", "ACDF-GHJK", "BCDF GHJK", "BCDF-GHJKL", "ÄCDFGHJ"]
        {
            assert!(other.parse::<PairingCode>().is_err(), "{other}");
        }
    }

    #[test]
    fn bytes_that_would_favour_a_letter_are_drawn_again() {
        let mut bytes = [255, 240, 239, 0, 20, 40, 60, 80, 100, 120].into_iter();
        let code = PairingCode::draw(|| bytes.next().unwrap());
        assert_eq!(code.to_string(), "ZBBB-BBBB");
    }

    #[test]
    fn code_is_not_printed_by_accident() {
        let code: PairingCode = "BCDF-GHJK".parse().unwrap();
        assert!(!format!("{code:?}").contains("BCDF"));
    }
}
