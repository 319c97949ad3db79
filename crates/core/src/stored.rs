//! Records with a meaning: how each is named, written and read.

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    channels::Channels,
    exchange::Exchange,
    pairing::{PairedApprover, PairedEnforcer, Pairing, Route},
    policy::Policy,
    presence::Presence,
    prompt::Prompt,
    session::Session,
    store::{Guard, Key, Kind, Put, Record, StoreError},
    use_cases::{
        channels::Lease, credentials::Credential, idempotency::Remembered, pairing::WrongCodes,
        session::TakenEvent, tickets::Ticket,
    },
};

/// A type that is kept as a record.
pub(crate) trait Stored: Serialize + DeserializeOwned {
    const KIND: Kind;

    fn key(id: impl std::fmt::Display) -> Key {
        Key::new(Self::KIND, id)
    }

    /// Reads a record, if there is one.
    fn read(record: Option<&Record>) -> Result<Option<Versioned<Self>>, StoreError> {
        let Some(record) = record else { return Ok(None) };
        let value = serde_json::from_slice(&record.content)
            .map_err(|error| StoreError::Corrupt(format!("{:?}: {error}", Self::KIND)))?;
        Ok(Some(Versioned { value, version: record.version }))
    }

    /// What to write under `key`.
    fn put(&self, key: Key) -> Result<Put, StoreError> {
        let content = serde_json::to_vec(self).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Put { key, content: Bytes::from(content) })
    }
}

/// A value and the version it was read at.
#[derive(Debug, Clone)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: u64,
}

/// Holds as long as nobody else has written since `known` was read.
pub(crate) fn unchanged<T>(key: Key, known: Option<&Versioned<T>>) -> Guard {
    match known {
        Some(known) => Guard::Version(key, known.version),
        None => Guard::Absent(key),
    }
}

macro_rules! stored {
    ($($type:ty => $kind:ident,)+) => {$(
        impl Stored for $type {
            const KIND: Kind = Kind::$kind;
        }
    )+};
}

stored! {
    Exchange => Exchange,
    Prompt => Prompt,
    Session => Session,
    TakenEvent => SessionEvent,
    Pairing => Pairing,
    PairedEnforcer => Enforcer,
    PairedApprover => Approver,
    Route => Route,
    Remembered => Idempotency,
    Presence => Presence,
    Policy => Policy,
    Credential => Credential,
    WrongCodes => WrongCodes,
    Channels => Channels,
    Lease => Lease,
    Ticket => Ticket,
}
