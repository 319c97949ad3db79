//! JSON that keeps its text: bodies are relayed, hashed and signed as they were written.

use std::ops::Deref;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    error::{Error, MemberFault, Problem},
    members::{FromJson, Members},
    strict,
};

/// Reads a whole text as one `T`, strictly.
pub fn parse<'a, T: FromJson<'a>>(text: &'a [u8]) -> Result<Verbatim<'a, T>, Error> {
    RawObject::parse(text)?.view()
}

/// An object as it was written: spacing, member order, escapes and numbers untouched.
///
/// It borrows the text, so it is free to copy. [`crate::envelope::Envelope`] writes it back byte for
/// byte.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct RawObject<'a>(&'a RawValue);

impl<'a> RawObject<'a> {
    /// Checks a text that came from outside: strict JSON, one object.
    pub fn parse(text: &'a [u8]) -> Result<Self, Error> {
        Self::from_json(strict::check(text)?)
    }

    /// Takes up a text again that [`RawObject::parse`] has let in before, for example from a store.
    /// Only its grammar is looked at, which is what relaying it safely takes.
    pub fn reread(text: &'a [u8]) -> Result<Self, Error> {
        let value =
            serde_json::from_slice(text).map_err(|error| Error::Json(strict::syntax_fault(&error)))?;
        Self::from_json(value)
    }

    /// The text, from `{` to `}`.
    pub fn as_str(self) -> &'a str {
        self.0.get()
    }

    /// Reads the object as a `T` and keeps the text beside it.
    pub fn view<T: FromJson<'a>>(self) -> Result<Verbatim<'a, T>, Error> {
        Ok(Verbatim { view: T::from_json(self.0)?, raw: self })
    }

    /// The members, to be taken one by one.
    pub fn members(self) -> Result<Members<'a>, Error> {
        Members::of(self.0)
    }

    /// The text without the named members; everything that stays, stays byte for byte.
    pub fn text_without(self, names: &[&str]) -> Result<String, Error> {
        let text = self.as_str();
        let mut kept = String::with_capacity(text.len());
        kept.push('{');
        // A member's stretch runs from the end of the one before to the end of its own value, so each
        // but the first begins with the comma that divides the two.
        let mut stretch_start = 1;
        let mut nothing_kept = true;
        for (name, value) in self.members()?.rest() {
            let stretch_end = offset_in(text, value.get()) + value.get().len();
            if !names.contains(&name) {
                let stretch = &text[stretch_start..stretch_end];
                match stretch.trim_ascii_start().strip_prefix(',') {
                    Some(without_comma) if nothing_kept => kept.push_str(without_comma),
                    _ => kept.push_str(stretch),
                }
                nothing_kept = false;
            }
            stretch_start = stretch_end;
        }
        kept.push_str(&text[stretch_start..]);
        Ok(kept)
    }

    /// The text with the object `part`, which must be one of its values, replaced by `replacement`.
    pub fn text_with(self, part: RawObject<'_>, replacement: &str) -> String {
        let text = self.as_str();
        let start = offset_in(text, part.as_str());
        [&text[..start], replacement, &text[start + part.as_str().len()..]].concat()
    }
}

impl<'a> FromJson<'a> for RawObject<'a> {
    fn from_json(value: &'a RawValue) -> Result<Self, Error> {
        if value.get().starts_with('{') {
            Ok(Self(value))
        } else {
            Err(MemberFault::here(Problem::NotA("an object")).into())
        }
    }
}

/// Where `part` begins in `text`, of which it is a slice.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// Where an object carries, sealed, what it would otherwise say in the clear.
pub(crate) const CIPHERTEXT: &str = "ciphertext";

/// A string or an object that the gateway never looks into.
pub(crate) struct Ciphertext<'a>(pub(crate) &'a RawValue);

impl<'a> FromJson<'a> for Ciphertext<'a> {
    fn from_json(value: &'a RawValue) -> Result<Self, Error> {
        if value.get().starts_with(['"', '{']) {
            Ok(Self(value))
        } else {
            Err(MemberFault::here(Problem::NotA("a string or an object")).into())
        }
    }
}

/// A typed, read-only view beside the text that it was read from.
///
/// It dereferences to the view; serializing it writes the text.
#[derive(Debug, Clone)]
pub struct Verbatim<'a, T> {
    raw: RawObject<'a>,
    view: T,
}

impl<'a, T> Verbatim<'a, T> {
    /// The object as it was written.
    pub fn raw(&self) -> RawObject<'a> {
        self.raw
    }

    /// Gives up the text.
    pub fn into_view(self) -> T {
        self.view
    }
}

impl<T> Deref for Verbatim<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

impl<T> Serialize for Verbatim<'_, T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(writer)
    }
}
