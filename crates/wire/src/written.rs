//! Types that are a string in JSON, for our reader and for serde.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::de::Visitor;

use crate::Rule;

/// Lets types with `FromStr<Err = Rule>` be read as a JSON string, by our own reader and by serde.
macro_rules! written_as_string {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::FromJson<'_> for $type {
            fn from_json(value: &serde_json::value::RawValue) -> Result<Self, $crate::Error> {
                Ok(<String as $crate::FromJson>::from_json(value)?.parse::<Self>()?)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                reader.deserialize_str($crate::written::Parsed(std::marker::PhantomData))
            }
        }
    )+};
}

pub(crate) use written_as_string;

/// Parses a string without copying it.
pub(crate) struct Parsed<T>(pub(crate) PhantomData<T>);

impl<T: FromStr<Err = Rule>> Visitor<'_> for Parsed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
