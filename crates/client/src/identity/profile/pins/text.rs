//! Pins as they are written in `pins.json`.

use countersign_wire::{
    Error as WireError, FromJson, FromMembers, Members, hash::Sha256Hex, keys::KeyBundle, lock::LockKey,
    timestamp::Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Pin, PinSource, Pins, SourceKind, Taken};
use crate::{
    identity::{
        keys::Fingerprint,
        profile::party::{Party, Role},
    },
    json::Count,
};

/// The version of the file that is written. Versions 1 and 2 are read too: the first has neither recovery codes nor
/// statements, the second no locks.
pub(in crate::identity::profile) const VERSION: u64 = 3;

impl Pins {
    /// The content of `pins.json`.
    pub(in crate::identity::profile) fn to_json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct File<'a> {
            version: u64,
            pins: Vec<PinText>,
            taken: &'a [Taken],
        }
        serde_json::to_string(&File { version: VERSION, pins: self.texts(), taken: &self.taken })
    }

    /// The pins as they are written.
    pub(in crate::identity::profile) fn texts(&self) -> Vec<PinText> {
        self.list.iter().map(PinText::of).collect()
    }

    /// Pins that were written before. Two of the same device would leave open which one counts.
    pub(in crate::identity::profile) fn from_list(list: Vec<Pin>) -> Result<Self, WireError> {
        let mut seen = std::collections::BTreeSet::new();
        if list.iter().all(|pin| seen.insert(pin.fingerprint)) {
            Ok(Self { list, taken: Vec::new() })
        } else {
            Err(WireError::breaks("pins", "has a fingerprint twice"))
        }
    }
}

/// A pin as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::identity::profile) struct PinText {
    role: Role,
    id: String,
    fingerprint: Fingerprint,
    bundle: String,
    source: SourceText,
    since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<LockKey>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceText {
    kind: SourceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Fingerprint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent_on: Option<Fingerprint>,
}

impl SourceText {
    fn of(source: PinSource) -> Self {
        let text = |kind, by, until| Self { kind, by, until, spent_on: None };
        match source {
            PinSource::Paired => text(SourceKind::Paired, None, None),
            PinSource::Vouched { by, until } => text(SourceKind::Vouched, Some(by), Some(until)),
            PinSource::Recovery { by, until, spent_on } => {
                Self { spent_on, ..text(SourceKind::Recovery, Some(by), Some(until)) }
            }
            PinSource::Recovered { by, until } => text(SourceKind::Recovered, Some(by), Some(until)),
        }
    }
}

impl PinText {
    pub(super) fn of(pin: &Pin) -> Self {
        Self {
            role: pin.party.role(),
            id: pin.party.id().to_owned(),
            fingerprint: pin.fingerprint,
            bundle: pin.bundle.to_string(),
            source: SourceText::of(pin.source),
            since: pin.since,
            revoked_at: pin.revoked_at,
            lock: pin.lock.clone(),
        }
    }
}

impl FromMembers<'_> for Pins {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        members.required::<Count>("version")?;
        let pins = Self::from_list(members.required("pins")?)?;
        let taken = members.optional("taken")?.unwrap_or_default();
        members.close()?;
        Ok(Self { taken, ..pins })
    }
}

impl FromMembers<'_> for Taken {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let statement: Sha256Hex = members.required("statement")?;
        let taken = Self { statement, until: members.required("until")? };
        members.close()?;
        Ok(taken)
    }
}

impl FromMembers<'_> for Pin {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let party = Party::from_members(members)?;
        let bundle: Bundle = members.required("bundle")?;
        let mut pin = Self::new(party, &bundle.0, members.required("source")?, members.required("since")?);
        pin.revoked_at = members.optional("revokedAt")?;
        pin.lock = members.optional("lock")?;
        if members.required::<Fingerprint>("fingerprint")? != pin.fingerprint {
            return Err(WireError::breaks("fingerprint", "is not that of the bundle"));
        }
        members.close()?;
        Ok(pin)
    }
}

struct Bundle(KeyBundle);

impl FromJson<'_> for Bundle {
    fn from_json(value: &RawValue) -> Result<Self, WireError> {
        Ok(Self(String::from_json(value)?.parse()?))
    }
}

impl FromMembers<'_> for PinSource {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let kind = members.required("kind")?;
        if kind == SourceKind::Paired {
            members.close()?;
            return Ok(Self::Paired);
        }
        let (by, until) = (members.required("by")?, members.required("until")?);
        let source = match kind {
            SourceKind::Paired => Self::Paired,
            SourceKind::Vouched => Self::Vouched { by, until },
            SourceKind::Recovery => Self::Recovery { by, until, spent_on: members.optional("spentOn")? },
            SourceKind::Recovered => Self::Recovered { by, until },
        };
        members.close()?;
        Ok(source)
    }
}
