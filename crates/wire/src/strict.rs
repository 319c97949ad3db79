//! Strict JSON: one pass that rejects what two parsers could read differently.

use std::{borrow::Cow, cell::Cell, fmt};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{error::JsonFault, limits::MAX_NESTING};

/// Checks the whole text and returns its one value, without the white space around it.
pub(crate) fn check(bytes: &[u8]) -> Result<&RawValue, JsonFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonFault::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(JsonFault::ByteOrderMark);
    }
    let fault = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    // Our own limit is one level higher than the parser's; `Value` below enforces it.
    reader.disable_recursion_limit();
    Value { depth: 0, fault: &fault }
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .and_then(|()| serde_json::from_str(text))
        .map_err(|syntax| fault.get().unwrap_or_else(|| syntax_fault(&syntax)))
}

/// The end of a text that was checked before; never seen unless a reader of ours is wrong.
pub(crate) fn unfinished() -> JsonFault {
    JsonFault::Syntax { line: 0, column: 0 }
}

pub(crate) fn syntax_fault(error: &serde_json::Error) -> JsonFault {
    JsonFault::Syntax { line: error.line(), column: error.column() }
}

/// A value `depth` levels down. Strings are decoded, so that lone surrogates show, and dropped.
#[derive(Clone, Copy)]
struct Value<'f> {
    depth: usize,
    fault: &'f Cell<Option<JsonFault>>,
}

impl Value<'_> {
    fn one_level_down<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_NESTING {
            return Err(self.refuse(JsonFault::TooDeep));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Stores the reason separately, because the parser's own error can only carry text.
    fn refuse<E: serde::de::Error>(self, fault: JsonFault) -> E {
        self.fault.set(Some(fault));
        E::custom(fault)
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let item = self.one_level_down()?;
        while items.next_element_seed(item)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let value = self.one_level_down()?;
        let mut names = Vec::new();
        while let Some(Name(name)) = members.next_key()? {
            names.push(name);
            members.next_value_seed(value)?;
        }
        // Sorted rather than hashed: no randomness needed against chosen names.
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.refuse(JsonFault::DuplicateMember));
        }
        Ok(())
    }
}

/// A decoded member name, borrowed from the text where it has no escapes.
pub(crate) struct Name<'de>(pub(crate) Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        reader.deserialize_str(NameVisitor)
    }
}
