//! Changing what is asked for before it is approved (docs/edits.md). No I/O.
//!
//! A change is no approval: it comes with a rejection, and what it makes of the call is asked for anew. So nothing runs that
//! the person has not seen as the enforcer has understood it.

use std::collections::BTreeMap;

use countersign_wire::{
    artifact::Artifact,
    extension::{EDITED, EDITS},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::content::{
    payload::{Payload, quoted},
    shell,
};

/// The longest change, in bytes of its JSON: sealed, it has to fit into a decision.
pub const MAX_EDIT: usize = 32 << 10;

/// The most places of a call that may be changed.
pub const MAX_PLACES: usize = 8;

/// New texts for a call, each by the JSON pointer of what it replaces in the message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Edit(pub BTreeMap<String, String>);

/// Something of a call that an approver may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where it is in the message, as a JSON pointer.
    pub pointer: String,
    /// What stands there, as people edit it.
    pub text: String,
    /// Whether these are the words of a command, which is run without a shell.
    pub is_argv: bool,
}

/// Why a change can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The call would be as it was.
    #[error("it changes nothing")]
    Nothing,
    /// It is too long to be sent.
    #[error("it is longer than {} KB", MAX_EDIT >> 10)]
    TooLong,
    /// The enforcer does not let this be changed.
    #[error("{0} can't be changed")]
    NotOffered(String),
    /// One program is run without a shell, and this is not one with plain words.
    #[error("it must be one program with its arguments, without pipes, variables or other syntax of a shell")]
    NotWords,
}

impl Edit {
    /// Whether it could be made of what is offered.
    pub fn check(&self, offered: &[Place]) -> Result<(), EditError> {
        self.check_length()?;
        let mut changes = false;
        for (pointer, text) in &self.0 {
            let place = offered.iter().find(|place| place.pointer == *pointer);
            let place = place.ok_or_else(|| EditError::NotOffered(pointer.clone()))?;
            if place.is_argv && shell::words(text).is_none() {
                return Err(EditError::NotWords);
            }
            changes |= *text != place.text;
        }
        if changes { Ok(()) } else { Err(EditError::Nothing) }
    }

    fn check_length(&self) -> Result<(), EditError> {
        let length = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if length > MAX_EDIT { Err(EditError::TooLong) } else { Ok(()) }
    }

    /// The message of a call with the new texts in their places. Everything else stays as it is.
    pub fn apply(&self, message: &Value, offered: &[String]) -> Result<Value, EditError> {
        self.check_length()?;
        let mut changed = message.clone();
        for (pointer, text) in &self.0 {
            let not_offered = || EditError::NotOffered(pointer.clone());
            let place = changed.pointer_mut(pointer).filter(|_| offered.contains(pointer));
            let place = place.ok_or_else(not_offered)?;
            *place = match place {
                Value::String(_) => json!(text),
                Value::Array(_) => json!(shell::words(text).ok_or(EditError::NotWords)?),
                _ => return Err(not_offered()),
            };
        }
        if changed == *message { Err(EditError::Nothing) } else { Ok(changed) }
    }
}

impl Place {
    /// A place of a message; `None` if nothing is there that can be changed.
    pub fn of(message: &Value, pointer: &str) -> Option<Self> {
        let (text, is_argv) = match message.pointer(pointer)? {
            Value::String(text) => (text.clone(), false),
            Value::Array(words) if !words.is_empty() => {
                let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
                (words?.join(" "), true)
            }
            _ => return None,
        };
        Some(Self { pointer: pointer.to_owned(), text, is_argv })
    }
}

/// The places that an artifact lets its approver change. A list that is broken offers none.
pub(crate) fn offered(artifact: &Artifact<'_>) -> Vec<Place> {
    let read = || -> Option<Vec<Place>> {
        let pointers: Vec<String> = EDITS.read(&mut artifact.extensions?.members().ok()?).ok()??;
        // Two changes of one text have no order.
        let is_around = |one: &String, other: &String| format!("{other}/").starts_with(&format!("{one}/"));
        let overlap = pointers.iter().enumerate().any(|(at, one)| {
            pointers.iter().enumerate().any(|(index, other)| index != at && is_around(one, other))
        });
        if pointers.len() > MAX_PLACES || overlap {
            return None;
        }
        let payload = Payload::read(artifact.artifact_type, &artifact.payload);
        let message = Value::Object(payload.call()?.message.clone());
        pointers.iter().map(|pointer| Place::of(&message, pointer)).collect()
    };
    read().unwrap_or_default()
}

/// Whether an artifact is what an edit of its only approver has made of another one.
pub(crate) fn is_edited(artifact: &Artifact<'_>) -> bool {
    let read = || EDITED.read::<bool>(&mut artifact.extensions?.members().ok()?).ok()?;
    read() == Some(true)
}

/// The extensions of an artifact that say this.
pub(crate) fn say(extensions: &mut Map<String, Value>, offered: &[String], is_edited: bool) {
    if !offered.is_empty() {
        extensions.insert(EDITS.key().to_owned(), json!(offered));
    }
    if is_edited {
        extensions.insert(EDITED.key().to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests;
