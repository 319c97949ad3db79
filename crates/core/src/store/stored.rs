//! Records with a type: how each is named, written and read.

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    change::{Guard, Put},
    error::StoreError,
    key::{Key, Kind},
    port::Record,
};

/// A type that is stored as a record, as JSON.
pub(crate) trait Stored: Serialize + DeserializeOwned + Send {
    const KIND: Kind;

    fn key(id: impl std::fmt::Display) -> Key {
        Key::new(Self::KIND, id)
    }

    /// Decodes a record, if there is one.
    fn read(record: Option<&Record>) -> Result<Option<Versioned<Self>>, StoreError> {
        let Some(record) = record else { return Ok(None) };
        let value = serde_json::from_slice(&record.content).map_err(StoreError::corrupt)?;
        Ok(Some(Versioned { value, version: record.version }))
    }

    /// What to write under `key`.
    fn put(&self, key: Key) -> Result<Put, StoreError> {
        let content = serde_json::to_vec(self).map_err(StoreError::corrupt)?;
        Ok(Put { key, content: Bytes::from(content) })
    }
}

/// A value and the version it was read at.
#[derive(Debug, Clone)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: u64,
}

impl Guard {
    /// Holds as long as nobody else has written since `known` was read.
    pub(crate) fn unchanged<T>(key: Key, known: Option<&Versioned<T>>) -> Self {
        match known {
            Some(known) => Self::Version(key, known.version),
            None => Self::Absent(key),
        }
    }
}
