//! Parts that several payloads have.

use countersign_wire::{Error, FromJson, Members};
use serde_json::value::RawValue;

use crate::json::Count;

/// A string of at least one character.
pub(super) struct Text(pub(super) String);

impl FromJson<'_> for Text {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        match String::from_json(value)? {
            text if text.is_empty() => Err(Error::breaks("", "must not be empty")),
            text => Ok(Self(text)),
        }
    }
}

/// A required string of at least one character.
pub(super) fn text(members: &mut Members<'_>, name: &'static str) -> Result<String, Error> {
    members.required::<Text>(name).map(|text| text.0)
}

/// A required number of things or bytes.
pub(super) fn count(members: &mut Members<'_>, name: &'static str) -> Result<u64, Error> {
    members.required::<Count>(name).map(|count| count.0)
}

/// A list that is empty if it is absent.
pub(super) fn list<'a, T: FromJson<'a>>(
    members: &mut Members<'a>,
    name: &'static str,
) -> Result<Vec<T>, Error> {
    Ok(members.optional(name)?.unwrap_or_default())
}

/// A list of strings of at least one character, empty if it is absent.
pub(super) fn texts(members: &mut Members<'_>, name: &'static str) -> Result<Vec<String>, Error> {
    Ok(list::<Text>(members, name)?.into_iter().map(|text| text.0).collect())
}
