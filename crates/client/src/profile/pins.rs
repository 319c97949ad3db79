//! The public keys of others that a person has confirmed: what is sealed to, and whose signatures count.
//!
//! A pin is one device, identified by the fingerprint of its keys. A party has one pin or several. The first one comes
//! from a pairing, which a person has confirmed on both sides; further ones from a pairing too, or from a device of the
//! same party that vouches for them. Keys never change silently: another bundle is another pin, and the way to it is
//! [`Pins::insert`] or [`Pins::replace`], each with rules.

use countersign_wire::{
    Error as WireError, FromJson, FromMembers, Members, keys::KeyBundle, timestamp::Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    error::PinError,
    party::{Party, Role},
};
use crate::{
    json::{Count, vocabulary},
    keys::Fingerprint,
};

/// The version of the file.
const VERSION: u64 = 1;

vocabulary! {
    /// The word for a [`PinSource`] in JSON.
    pub enum SourceKind {
        /// A person has confirmed it on both sides.
        Paired = "paired",
        /// Another device of the same party has.
        Vouched = "vouched",
    }
}

/// Why the keys of a device are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinSource {
    /// A person has confirmed the keys on both sides.
    Paired,
    /// A paired device of the same party has signed for it.
    Vouched {
        /// That device. When it is revoked, what it vouched for does not count either: a thief could have vouched for
        /// a device of his own.
        by: Fingerprint,
        /// The time from which the pin does not count any more.
        until: Timestamp,
    },
}

/// The keys of one device of somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    party: Party,
    bundle: KeyBundle,
    fingerprint: Fingerprint,
    source: PinSource,
    since: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl Pin {
    /// A new pin. The proof of a pairing has been checked when there is a pin, and is not kept.
    pub fn new(party: Party, bundle: &KeyBundle, source: PinSource, since: Timestamp) -> Self {
        let bundle = KeyBundle { proof: None, ..bundle.clone() };
        let fingerprint = Fingerprint::of(&bundle);
        Self { party, bundle, fingerprint, source, since, revoked_at: None }
    }

    /// Whose device it is.
    pub fn party(&self) -> &Party {
        &self.party
    }

    /// The public keys, to seal to and to verify with.
    pub fn bundle(&self) -> &KeyBundle {
        &self.bundle
    }

    /// Identifies the device among all pins.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Why the keys are trusted.
    pub fn source(&self) -> PinSource {
        self.source
    }

    /// When it was pinned.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// When it was revoked; `None` while it is not.
    pub fn revoked_at(&self) -> Option<Timestamp> {
        self.revoked_at
    }
}

/// The pins of one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    list: Vec<Pin>,
}

impl Pins {
    /// The pin of one device, revoked or not.
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&Pin> {
        self.list.iter().find(|pin| pin.fingerprint == fingerprint)
    }

    /// Every pin, revoked or not, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.list.iter()
    }

    /// Whether the keys of this device count at this time: to seal to them, and to accept what they sign.
    pub fn is_active(&self, fingerprint: Fingerprint, now: Timestamp) -> bool {
        let Some(pin) = self.get(fingerprint) else { return false };
        if pin.revoked_at.is_some() {
            return false;
        }
        match pin.source {
            PinSource::Paired => true,
            PinSource::Vouched { by, until } => now < until && self.is_paired_device_of(by, &pin.party),
        }
    }

    /// The devices of a party that count at this time.
    pub fn active<'a>(&'a self, party: &'a Party, now: Timestamp) -> impl Iterator<Item = &'a Pin> {
        self.list.iter().filter(move |pin| pin.party == *party && self.is_active(pin.fingerprint, now))
    }

    /// The devices of every party of a role that count at this time: whom a request can be sealed to.
    pub fn active_in_role(&self, role: Role, now: Timestamp) -> impl Iterator<Item = &Pin> {
        self.list.iter().filter(move |pin| pin.party.role() == role && self.is_active(pin.fingerprint, now))
    }

    fn is_paired_device_of(&self, fingerprint: Fingerprint, party: &Party) -> bool {
        self.get(fingerprint).is_some_and(|pin| {
            pin.party == *party && pin.source == PinSource::Paired && pin.revoked_at.is_none()
        })
    }

    /// Adds a device. A pin that is there already stays, and gets the stronger of both sources.
    pub fn insert(&mut self, pin: Pin) -> Result<(), PinError> {
        self.check_keys(&pin.party, &pin.bundle)?;
        self.check_source(&pin)?;
        match self.list.iter_mut().find(|known| known.fingerprint == pin.fingerprint) {
            Some(known) => known.source = stronger(known.source, pin.source),
            None => self.list.push(pin),
        }
        Ok(())
    }

    fn check_keys(&self, party: &Party, bundle: &KeyBundle) -> Result<(), PinError> {
        let fingerprint = Fingerprint::of(bundle);
        for known in &self.list {
            if known.fingerprint == fingerprint {
                if known.revoked_at.is_some() {
                    return Err(PinError::Revoked);
                }
                if known.party != *party {
                    return Err(PinError::OtherParty);
                }
            } else if known.bundle.signing == bundle.signing || known.bundle.agreement == bundle.agreement {
                return Err(PinError::SharesAKey);
            }
        }
        Ok(())
    }

    fn check_source(&self, pin: &Pin) -> Result<(), PinError> {
        let PinSource::Vouched { by, until } = pin.source else { return Ok(()) };
        if !self.list.iter().any(|known| known.party == pin.party) {
            return Err(PinError::NotPaired);
        }
        if until <= pin.since {
            return Err(PinError::VouchEnded);
        }
        // Only for one's own devices: else somebody could add a device to the name of somebody else.
        if by == pin.fingerprint || !self.is_paired_device_of(by, &pin.party) {
            return Err(PinError::VoucherNotPaired);
        }
        Ok(())
    }

    /// Takes the trust from a device, for good. Those that it vouched for do not count any more either. The first time
    /// stays.
    pub fn revoke(&mut self, fingerprint: Fingerprint, at: Timestamp) -> Result<(), PinError> {
        let pin = self.find_mut(fingerprint)?;
        pin.revoked_at.get_or_insert(at);
        Ok(())
    }

    /// Gives a device new keys, which its old ones have signed for or a person has confirmed. The new ones take over the
    /// source of the old ones and what those vouched for; the old ones are revoked.
    pub fn replace(
        &mut self,
        old: Fingerprint,
        bundle: &KeyBundle,
        at: Timestamp,
    ) -> Result<Fingerprint, PinError> {
        let known = self.get(old).ok_or(PinError::Unknown)?;
        if known.revoked_at.is_some() {
            return Err(PinError::Revoked);
        }
        let new = Pin::new(known.party.clone(), bundle, known.source, at);
        if self.get(new.fingerprint).is_some() {
            return Err(PinError::SharesAKey);
        }
        self.check_keys(&new.party, bundle)?;
        let fingerprint = new.fingerprint;
        for pin in &mut self.list {
            if let PinSource::Vouched { by, .. } = &mut pin.source
                && *by == old
            {
                *by = fingerprint;
            }
        }
        self.revoke(old, at)?;
        self.list.push(new);
        Ok(fingerprint)
    }

    fn find_mut(&mut self, fingerprint: Fingerprint) -> Result<&mut Pin, PinError> {
        self.list.iter_mut().find(|pin| pin.fingerprint == fingerprint).ok_or(PinError::Unknown)
    }

    /// The content of `pins.json`.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct File {
            version: u64,
            pins: Vec<PinText>,
        }
        serde_json::to_string(&File { version: VERSION, pins: self.texts() })
    }

    /// The pins as they are written.
    pub(super) fn texts(&self) -> Vec<PinText> {
        self.list.iter().map(PinText::of).collect()
    }
}

/// The stronger of two reasons: a pairing, or the longer time.
fn stronger(one: PinSource, other: PinSource) -> PinSource {
    match (one, other) {
        (PinSource::Vouched { until: first, .. }, PinSource::Vouched { until: second, .. }) => {
            if second > first { other } else { one }
        }
        (PinSource::Paired, _) | (_, PinSource::Paired) => PinSource::Paired,
    }
}

/// A pin as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PinText {
    role: Role,
    id: String,
    fingerprint: Fingerprint,
    bundle: String,
    source: SourceText,
    since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct SourceText {
    kind: SourceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Fingerprint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

impl PinText {
    fn of(pin: &Pin) -> Self {
        let source = match pin.source {
            PinSource::Paired => SourceText { kind: SourceKind::Paired, by: None, until: None },
            PinSource::Vouched { by, until } => {
                SourceText { kind: SourceKind::Vouched, by: Some(by), until: Some(until) }
            }
        };
        Self {
            role: pin.party.role(),
            id: pin.party.id().to_owned(),
            fingerprint: pin.fingerprint,
            bundle: pin.bundle.to_string(),
            source,
            since: pin.since,
            revoked_at: pin.revoked_at,
        }
    }
}

impl FromMembers<'_> for Pins {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        members.required::<Count>("version")?;
        let pins = Self::from_list(members.required("pins")?)?;
        members.close()?;
        Ok(pins)
    }
}

impl Pins {
    /// Pins that were written before. Two of the same device would leave open which one counts.
    pub(super) fn from_list(list: Vec<Pin>) -> Result<Self, WireError> {
        let mut seen = std::collections::BTreeSet::new();
        if list.iter().all(|pin| seen.insert(pin.fingerprint)) {
            Ok(Self { list })
        } else {
            Err(WireError::breaks("pins", "has a fingerprint twice"))
        }
    }
}

impl FromMembers<'_> for Pin {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        let party = Party::from_members(members)?;
        let bundle: Bundle = members.required("bundle")?;
        let mut pin = Self::new(party, &bundle.0, members.required("source")?, members.required("since")?);
        pin.revoked_at = members.optional("revokedAt")?;
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
        let source = match members.required("kind")? {
            SourceKind::Paired => Self::Paired,
            SourceKind::Vouched => {
                Self::Vouched { by: members.required("by")?, until: members.required("until")? }
            }
        };
        members.close()?;
        Ok(source)
    }
}

#[cfg(test)]
mod tests;
