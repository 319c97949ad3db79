//! Check values of the secrets that all nodes share, by which a node that has others is recognised when it starts.

use countersign_wire::hash::Sha256Hex;
use serde::{Deserialize, Serialize};

use crate::store::{Kind, Record, StoreError, Stored};

/// One record for all nodes. Each value is a keyed hash, from which its secret can't be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretChecks {
    /// Of the secret of cursors, event ids and pairing codes.
    pub shared: Sha256Hex,
    /// Of the secret of the MAC in credentials.
    pub credentials: Sha256Hex,
}

impl Stored for SecretChecks {
    const KIND: Kind = Kind::SecretChecks;
}

impl SecretChecks {
    /// Decodes a record that was read without a gateway.
    pub fn from_record(record: &Record) -> Result<Self, StoreError> {
        let known = Self::read(Some(record))?;
        known.map(|known| known.value).ok_or_else(|| StoreError::corrupt("no check values"))
    }
}
