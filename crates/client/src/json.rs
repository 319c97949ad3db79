//! What our own JSON texts are made of: objects without unknown members, closed lists of words, and counts.

pub(crate) use countersign_wire::objects;
use countersign_wire::{Error, FromJson};
use serde::{Deserialize as _, Deserializer};
use serde_json::value::RawValue;

/// Reads a member that may be absent; `null` is not absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    String::deserialize(reader).map(Some)
}

/// Declares an enum whose variants are words of our own formats.
macro_rules! vocabulary {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant,)+ }

        impl $name {
            /// Every variant, in the order of its declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text of the variant in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.serialize_str(self.as_str())
            }
        }

        impl countersign_wire::FromJson<'_> for $name {
            fn from_json(value: &serde_json::value::RawValue) -> Result<Self, countersign_wire::Error> {
                let text = <String as countersign_wire::FromJson>::from_json(value)?;
                let known = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                known.ok_or_else(|| countersign_wire::Error::breaks("", concat!("is none of", $(" ", $word),+)))
            }
        }
    )+};
}

pub(crate) use vocabulary;

/// A number of things or bytes: an integer from 0 to 2^53−1, which every reader of JSON understands the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl Count {
    pub(crate) const MAX: u64 = (1 << 53) - 1;
}

impl FromJson<'_> for Count {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        // Rust writes a double that is an integer with its digits only; `1.0` and `1e3` are integers in JSON Schema too.
        let digits = f64::from_json(value)?.to_string();
        let count: Option<u64> = digits.parse().ok().filter(|count| *count <= Self::MAX);
        count.map(Self).ok_or_else(|| Error::breaks("", "is not an integer from 0 to 9007199254740991"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_an_integer_that_every_reader_understands() {
        let read =
            |text: &str| Count::from_json(serde_json::from_str(text).unwrap()).map(|count| count.0).ok();
        assert_eq!((read("0"), read("7.0"), read("1e3")), (Some(0), Some(7), Some(1_000)));
        assert_eq!(read("9007199254740991"), Some(Count::MAX));
        for other in ["-1", "0.5", "9007199254740992", "1e300", "\"1\"", "null", "[1]"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
