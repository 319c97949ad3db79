//! What our own readers of objects are made of.

pub(crate) use countersign_wire::objects;
use serde::{Deserialize as _, Deserializer};

/// Reads a member that may be absent; `null` is not absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    String::deserialize(reader).map(Some)
}
