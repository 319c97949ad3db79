//! The body of `inbox.page`: one page of an approver's inbox.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Error, FromJson, FromMembers, Members, envelope::Envelope};

/// The body of `inbox.page`. The gateway fills it with envelopes of its own type; a client reads [`Envelope`]s.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InboxPage<E> {
    /// `approval.request` envelopes, oldest first, each as it was pushed.
    pub items: Vec<E>,
    /// The opaque cursor of the next page; `None` is written as `null` and marks the last page.
    pub next_cursor: Option<String>,
}

impl<'a> FromMembers<'a> for InboxPage<Envelope<'a>> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            items: members.required("items")?,
            next_cursor: members.required::<CursorOrNull>("nextCursor")?.0,
        })
    }
}

struct CursorOrNull(Option<String>);

impl FromJson<'_> for CursorOrNull {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        match value.get() {
            "null" => Ok(Self(None)),
            _ => String::from_json(value).map(|cursor| Self(Some(cursor))),
        }
    }
}
