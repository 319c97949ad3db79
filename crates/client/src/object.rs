//! Reads an object as an object: serde's derived readers take an array of the values for a struct too, which no other
//! language would.

use serde::{Deserialize as _, Deserializer};

/// Gives types that derive both traits with `#[serde(remote = "Self")]` the traits themselves, without the arrays.
macro_rules! objects {
    ($($name:ident),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, writer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $name::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                reader.deserialize_map(Object)
            }
        }
    )+};
}
pub(crate) use objects;

/// Reads a member that may be absent; `null` is not absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    String::deserialize(reader).map(Some)
}
