//! What a profile says of itself in public: `profile.json`.

use countersign_wire::{Error as WireError, FromMembers, Label, Members, id::TenantId};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::party::{GatewayUrl, Party};
use crate::{identity::keys::Fingerprint, json::Count};

/// The version of the file.
pub(super) const VERSION: u64 = 1;

/// Who a profile is, and which gateway it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The enforcer or approver that acts with this profile.
    pub party: Party,
    /// The tenant that the party belongs to.
    pub tenant: TenantId,
    /// The gateway that connects it with others.
    pub gateway: GatewayUrl,
    /// What people call this device; may be empty.
    pub label: Label,
}

impl Facts {
    /// Takes the members of the facts.
    pub(super) fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        Ok(Self {
            party: Party::from_members(members)?,
            tenant: members.required("tenant")?,
            gateway: members.required("gateway")?,
            label: members.required("label")?,
        })
    }

    /// Writes the members that [`Facts::from_members`] takes.
    pub(super) fn write_members<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("role", &self.party.role())?;
        map.serialize_entry("id", self.party.id())?;
        map.serialize_entry("tenant", &self.tenant)?;
        map.serialize_entry("gateway", &self.gateway)?;
        map.serialize_entry("label", &self.label)
    }
}

/// The content of `profile.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FactsFile {
    pub(super) facts: Facts,
    /// Which keys the profile has, readable without them.
    pub(super) fingerprint: Fingerprint,
}

impl Serialize for FactsFile {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let mut map = writer.serialize_map(None)?;
        map.serialize_entry("version", &VERSION)?;
        self.facts.write_members(&mut map)?;
        map.serialize_entry("fingerprint", &self.fingerprint)?;
        map.end()
    }
}

impl FromMembers<'_> for FactsFile {
    fn from_members(members: &mut Members<'_>) -> Result<Self, WireError> {
        members.required::<Count>("version")?;
        let facts = Facts::from_members(members)?;
        let file = Self { facts, fingerprint: members.required("fingerprint")? };
        members.close()?;
        Ok(file)
    }
}
