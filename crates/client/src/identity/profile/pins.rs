//! The public keys of others that a person has confirmed: what is sealed to, and whose signatures count.
//!
//! A pin is one device, identified by the fingerprint of its keys. A party has one pin or several. They come from a
//! pairing, which a person has confirmed on both sides, or from a paired device that vouches for them: for further devices
//! of the same person, for the first device of a teammate, or for a recovery code, with which a lost device is replaced.
//! Keys never change silently: another bundle is another pin, and the way to it is [`Pins::insert`], [`Pins::apply`] or
//! [`Pins::replace`], each with rules. `docs/pairing.md` has the rules and their reasons.

pub(super) mod apply;
mod insert;
pub(super) mod text;

use std::time::Duration;

use countersign_wire::{hash::Sha256Hex, keys::KeyBundle, lock::LockKey, timestamp::Timestamp};
use serde::Serialize;

use super::{
    error::PinError,
    party::{Party, Role},
};
use crate::{identity::keys::Fingerprint, json::vocabulary};

/// For so long a recovery code must have been known before it is used, and before the device that vouched for it is
/// revoked. So whoever steals a device has to keep it for a day without anybody revoking it before it can be replaced.
pub const RECOVERY_WAIT: Duration = Duration::from_hours(24);

/// Devices that one device can vouch for: what a pinned device sends must not fill this machine's memory.
pub const MAX_VOUCHED: usize = 64;

vocabulary! {
    /// The word for a [`PinSource`] in JSON.
    pub enum SourceKind {
        /// A person has confirmed it on both sides.
        Paired = "paired",
        /// A paired device has signed for it.
        Vouched = "vouched",
        /// It is a recovery code and no device.
        Recovery = "recovery",
        /// A recovery code has signed for it.
        Recovered = "recovered",
    }
}

/// Why the keys of a device are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinSource {
    /// A person has confirmed the keys on both sides.
    Paired,
    /// A paired device has signed for it: one of the same party, or for its first device a teammate's.
    Vouched {
        /// That device. When it is revoked, what it vouched for does not count either: a thief could have vouched for
        /// a device of his own.
        by: Fingerprint,
        /// The time from which the pin does not count any more.
        until: Timestamp,
    },
    /// These are the keys of a recovery code. Nothing is sealed to them, and they do not decide: they vouch once, for a
    /// device of the same party.
    Recovery {
        /// The paired device of the same party that signed for the code.
        by: Fingerprint,
        /// The time from which the code is good for nothing.
        until: Timestamp,
        /// The device that the code was used for; `None` while it was not.
        spent_on: Option<Fingerprint>,
    },
    /// A recovery code has signed for it. It stands in for a lost device, which is revoked by that, so it counts as a paired
    /// one until its time is over.
    Recovered {
        /// The keys of the code.
        by: Fingerprint,
        /// The time from which the pin does not count any more.
        until: Timestamp,
    },
}

impl PinSource {
    /// The device or code that signed for it; `None` if it was paired.
    pub fn by(self) -> Option<Fingerprint> {
        match self {
            Self::Paired => None,
            Self::Vouched { by, .. } | Self::Recovery { by, .. } | Self::Recovered { by, .. } => Some(by),
        }
    }

    /// The time from which it does not count any more; `None` if it was paired.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Paired => None,
            Self::Vouched { until, .. } | Self::Recovery { until, .. } | Self::Recovered { until, .. } => {
                Some(until)
            }
        }
    }

    fn is_recovery(self) -> bool {
        matches!(self, Self::Recovery { .. })
    }
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
    lock: Option<LockKey>,
}

impl Pin {
    /// A new pin. The proof of a pairing has been checked when there is a pin, and is not kept.
    pub fn new(party: Party, bundle: &KeyBundle, source: PinSource, since: Timestamp) -> Self {
        let bundle = KeyBundle { proof: None, ..bundle.clone() };
        let fingerprint = Fingerprint::of(&bundle);
        Self { party, bundle, fingerprint, source, since, revoked_at: None, lock: None }
    }

    /// The same with the lock of the device, which a pairing or another device has vouched for.
    #[must_use]
    pub fn with_lock(self, lock: Option<LockKey>) -> Self {
        Self { lock, ..self }
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

    /// By which the device says that it has verified its person; `None` if none was pinned.
    pub fn lock(&self) -> Option<&LockKey> {
        self.lock.as_ref()
    }

    /// When it was revoked; `None` while it is not.
    pub fn revoked_at(&self) -> Option<Timestamp> {
        self.revoked_at
    }
}

/// A statement that was taken: the same again changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Taken {
    statement: Sha256Hex,
    /// From then on it would be refused anyway.
    until: Timestamp,
}

/// The pins of one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    list: Vec<Pin>,
    /// The statements that were taken and have not ended, the newest last; a limited number.
    taken: Vec<Taken>,
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

    /// Whether the keys of this device count at this time: to seal to them, and to accept what they sign. Those of a
    /// recovery code never do.
    pub fn is_active(&self, fingerprint: Fingerprint, now: Timestamp) -> bool {
        let Some(pin) = self.get(fingerprint).filter(|pin| pin.revoked_at.is_none()) else { return false };
        match pin.source {
            PinSource::Paired => true,
            PinSource::Vouched { by, until } => now < until && self.counts_as_paired(by, now),
            PinSource::Recovered { until, .. } => now < until,
            PinSource::Recovery { .. } => false,
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

    /// Whether this device counts and was paired, or stands in for one that was: only such a device vouches for others.
    fn counts_as_paired(&self, fingerprint: Fingerprint, now: Timestamp) -> bool {
        self.get(fingerprint).is_some_and(|pin| !matches!(pin.source, PinSource::Vouched { .. }))
            && self.is_active(fingerprint, now)
    }

    /// Takes the trust from a device, for good. Those that it vouched for do not count any more either. The first time
    /// stays.
    pub fn revoke(&mut self, fingerprint: Fingerprint, at: Timestamp) -> Result<(), PinError> {
        let pin = self.find_mut(fingerprint)?;
        pin.revoked_at.get_or_insert(at);
        Ok(())
    }

    /// Gives a device new keys, which its old ones have signed for or a person has confirmed. The new ones take over the
    /// source of the old ones and what those vouched for; the old ones are revoked. A recovery code keeps its keys.
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
        if known.source.is_recovery() {
            return Err(PinError::RecoveryKeys);
        }
        // The lock is that of the person's device and not of the keys: new keys don't change it.
        let new = Pin::new(known.party.clone(), bundle, known.source, at).with_lock(known.lock.clone());
        if self.get(new.fingerprint).is_some() {
            return Err(PinError::SharesAKey);
        }
        self.check_keys(&new.party, bundle)?;
        let fingerprint = new.fingerprint;
        for pin in &mut self.list {
            if let PinSource::Vouched { by, .. } | PinSource::Recovery { by, .. } = &mut pin.source
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
}

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
