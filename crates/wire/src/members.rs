//! Reads an object member by member, with errors that name the member and the rule.

use std::{borrow::Cow, fmt};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    error::{Error, MemberFault, Problem},
    strict::Name,
};

/// A type that can be read from a JSON value which is already known to be strict.
pub trait FromJson<'a>: Sized {
    /// Reads the value; the error names what is wrong with it.
    fn from_json(value: &'a RawValue) -> Result<Self, Error>;
}

/// A type that is read from the members of an object.
pub trait FromMembers<'a>: Sized {
    /// Takes the members that it knows out of `members`; the error names what is wrong.
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error>;
}

impl<'a, T: FromMembers<'a>> FromJson<'a> for T {
    fn from_json(value: &'a RawValue) -> Result<Self, Error> {
        T::from_members(&mut Members::of(value)?)
    }
}

/// The members of an object that have not been taken yet, each with its text.
#[derive(Debug)]
pub struct Members<'a> {
    left: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Members<'a> {
    /// Lists the members of `value`, which must be an object.
    pub fn of(value: &'a RawValue) -> Result<Self, Error> {
        if !value.get().starts_with('{') {
            return Err(MemberFault::here(Problem::NotA("an object")).into());
        }
        // The text was strict when `value` was made, so there is nothing left to fail here but memory.
        serde_json::Deserializer::from_str(value.get())
            .deserialize_map(ListMembers)
            .map(|left| Self { left })
            .map_err(|_| MemberFault::here(Problem::NotA("an object")).into())
    }

    /// Takes a member that must be there.
    pub fn required<T: FromJson<'a>>(&mut self, name: &'static str) -> Result<T, Error> {
        self.optional(name)?.ok_or_else(|| MemberFault::at(name, Problem::Missing).into())
    }

    /// Takes a member that may be absent; `null` is not absence.
    pub fn optional<T: FromJson<'a>>(&mut self, name: &'static str) -> Result<Option<T>, Error> {
        let Some(place) = self.left.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        let (_, value) = self.left.swap_remove(place);
        T::from_json(value).map(Some).map_err(|error| inside(error, name))
    }

    /// Whether the member is there and has not been taken.
    pub fn contains(&self, name: &str) -> bool {
        self.left.iter().any(|(known, _)| known == name)
    }

    /// Ends an object that the specification closes: a member that is left is an error.
    pub fn close(&self) -> Result<(), Error> {
        if self.left.is_empty() { Ok(()) } else { Err(MemberFault::here(Problem::Unknown).into()) }
    }

    /// The names and values that have not been taken.
    pub fn rest(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.left.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// Puts the name of the enclosing member before the place of a fault.
pub(crate) fn inside(error: Error, parent: &str) -> Error {
    match error {
        Error::Member(fault) => Error::Member(fault.inside(parent)),
        other => other,
    }
}

struct ListMembers;

impl<'de> Visitor<'de> for ListMembers {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some((Name(name), value)) = members.next_entry()? {
            list.push((name, value));
        }
        Ok(list)
    }
}

fn read<'a, T: serde::Deserialize<'a>>(value: &'a RawValue, kind: &'static str) -> Result<T, Error> {
    serde_json::from_str(value.get()).map_err(|_| MemberFault::here(Problem::NotA(kind)).into())
}

impl<'a> FromJson<'a> for &'a RawValue {
    fn from_json(value: &'a RawValue) -> Result<Self, Error> {
        Ok(value)
    }
}

impl FromJson<'_> for String {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        read(value, "a string")
    }
}

impl FromJson<'_> for bool {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        read(value, "true or false")
    }
}

impl FromJson<'_> for f64 {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        read(value, "a number")
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn from_json(value: &'a RawValue) -> Result<Self, Error> {
        let items: Vec<&'a RawValue> = read(value, "an array")?;
        items
            .into_iter()
            .enumerate()
            .map(|(index, item)| T::from_json(item).map_err(|error| inside(error, &format!("[{index}]"))))
            .collect()
    }
}
