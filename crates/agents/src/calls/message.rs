//! What a host has sent, byte for byte, and as JSON.

use countersign_wire::{RawObject, hash::Sha256Hex};
use serde_json::Value;

/// A message of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Every member, as the host has written it.
    pub value: Value,
    /// SHA-256 of its bytes as they came.
    pub digest: Sha256Hex,
}

/// A member of a host's messages that is bound and shown, and not part of what a grant covers: it changes from call to call,
/// or says nothing about what is done.
#[derive(Debug, Clone, Copy)]
pub struct Aside {
    /// Where it is, as a JSON pointer.
    pub pointer: &'static str,
    /// The tools of which that is true; empty for all.
    pub tools: &'static [&'static str],
}

impl Message {
    /// Reads a message. Two members of one name, which hosts and hooks could read differently, are an error.
    pub fn read(text: &[u8]) -> Option<Self> {
        RawObject::parse(text).ok()?;
        Some(Self { value: serde_json::from_slice(text).ok()?, digest: Sha256Hex::digest(text) })
    }

    /// A message that was made here.
    pub fn of(value: Value) -> Self {
        let digest = Sha256Hex::digest(value.to_string().as_bytes());
        Self { value, digest }
    }
}

impl Aside {
    /// A member of every message.
    pub const fn everywhere(pointer: &'static str) -> Self {
        Self { pointer, tools: &[] }
    }

    /// A member of messages about these tools.
    pub const fn of(tools: &'static [&'static str], pointer: &'static str) -> Self {
        Self { pointer, tools }
    }

    /// Takes it out of a message about a tool.
    pub fn take(&self, tool: &str, message: &mut Value) -> Option<Value> {
        if !self.tools.is_empty() && !self.tools.contains(&tool) {
            return None;
        }
        let (parent, name) = self.pointer.rsplit_once('/')?;
        message.pointer_mut(parent)?.as_object_mut()?.remove(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_with_a_member_twice_is_not_read() {
        assert!(Message::read(br#"{"tool_input":{"command":"ls","command":"rm"}}"#).is_none());
        assert!(Message::read(b"[]").is_none());
        let message = Message::read(b" {\"a\": 1}\n").unwrap();
        assert_eq!(message.value, json!({ "a": 1 }));
        assert_ne!(message.digest, Message::read(br#"{"a":1}"#).unwrap().digest, "white space is part of it");
    }

    #[test]
    fn what_is_aside_is_taken_of_its_tools_only() {
        let mut message = json!({ "id": 1, "input": { "description": "x", "command": "ls" } });
        let description = Aside::of(&["Bash"], "/input/description");
        assert_eq!(description.take("Agent", &mut message), None);
        assert_eq!(description.take("Bash", &mut message), Some(json!("x")));
        assert_eq!(Aside::everywhere("/id").take("Agent", &mut message), Some(json!(1)));
        assert_eq!(message, json!({ "input": { "command": "ls" } }));
    }
}
