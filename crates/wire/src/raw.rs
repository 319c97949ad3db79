//! JSON together with its text: bodies are relayed, hashed and signed as they were written.

use std::ops::Deref;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    error::{Error, MemberFault, Problem},
    members::{FromJson, Members},
    strict,
};

/// Parses a text, which must be strict JSON and contain one `T`.
pub fn parse<'a, T: FromJson<'a>>(text: &'a [u8]) -> Result<Verbatim<'a, T>, Error> {
    RawObject::parse(text)?.view()
}

/// An object as it was written: spacing, member order, escapes and numbers untouched.
///
/// It borrows the text, so it is cheap to copy. Serializing an [`crate::envelope::Envelope`] writes it unchanged.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct RawObject<'a>(&'a RawValue);

impl<'a> RawObject<'a> {
    /// Checks an untrusted text: strict JSON, one object.
    pub fn parse(text: &'a [u8]) -> Result<Self, Error> {
        Self::from_json(strict::check(text)?)
    }

    /// Reads a text that [`RawObject::parse`] has accepted before, for example from a store. It checks the grammar
    /// only, which is enough to relay the text safely.
    pub fn reread(text: &'a [u8]) -> Result<Self, Error> {
        let value =
            serde_json::from_slice(text).map_err(|error| Error::Json(strict::syntax_fault(&error)))?;
        Self::from_json(value)
    }

    /// The text from `{` to `}`, without surrounding white space.
    pub fn as_str(self) -> &'a str {
        self.0.get()
    }

    /// Reads the object as a `T` and keeps its text.
    pub fn view<T: FromJson<'a>>(self) -> Result<Verbatim<'a, T>, Error> {
        Ok(Verbatim { view: T::from_json(self.0)?, raw: self })
    }

    /// The members, to be taken one by one.
    pub fn members(self) -> Result<Members<'a>, Error> {
        Members::of(self.0)
    }

    /// The text without the named members; the rest is unchanged byte for byte.
    pub fn text_without(self, names: &[&str]) -> Result<String, Error> {
        let text = self.as_str();
        let mut kept = String::with_capacity(text.len());
        kept.push('{');
        // A member's span runs from the end of the previous one to the end of its own value, so each but the first
        // begins with the separating comma.
        let mut span_start = 1;
        let mut nothing_kept = true;
        for (name, value) in self.members()?.rest() {
            let span_end = offset_in(text, value.get()) + value.get().len();
            if !names.contains(&name) {
                let span = &text[span_start..span_end];
                match span.trim_ascii_start().strip_prefix(',') {
                    Some(without_comma) if nothing_kept => kept.push_str(without_comma),
                    _ => kept.push_str(span),
                }
                nothing_kept = false;
            }
            span_start = span_end;
        }
        kept.push_str(&text[span_start..]);
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

/// The offset of `part` in `text`; `part` must be a slice of it.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// The member that contains the encrypted form of an object.
pub(crate) const CIPHERTEXT: &str = "ciphertext";

/// A string or an object whose contents the gateway never reads.
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

/// A typed, read-only view together with the text that it was read from.
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

    /// Drops the text and returns the view, which is then serialized from its fields.
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
