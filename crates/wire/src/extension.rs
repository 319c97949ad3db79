//! Our own keys in `extensions`, `metadata` and `trace` (docs/protocol.md#our-own-extensions). They are in our namespace:
//! `org.proto.` belongs to the protocol, which may define a key there that means something else.

use crate::{Error, FromJson, Members};

/// A key of ours. It is written as [`Extension::key`], and read under the name that it had before too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    key: &'static str,
    /// The name that it had before, if it had one.
    formerly: Option<&'static str>,
}

/// 128 random bits, without which the hash of a sealed content could be guessed: a text.
pub const SALT: Extension = Extension { key: "org.countersign.salt", formerly: Some("org.proto.salt") };

/// The name behind an artifact's `repoRef`, which the gateway must not learn: a text.
pub const REPO_NAME: Extension =
    Extension { key: "org.countersign.repoName", formerly: Some("org.proto.repoName") };

/// In an artifact: who must have been verified for an approval of it. Always `person`.
pub const VERIFY: Extension = Extension { key: "org.countersign.verify", formerly: None };

/// In an artifact: which texts of the call its approver may change, as JSON pointers into the message.
pub const EDITS: Extension = Extension { key: "org.countersign.edits", formerly: None };

/// In an artifact: it is what an edit of its only approver has made of the one whose place it takes. Always `true`.
pub const EDITED: Extension = Extension { key: "org.countersign.edited", formerly: None };

/// The time from which a prompt must not be used. The gateway does not see it.
pub const EXPIRES_AT: Extension =
    Extension { key: "org.countersign.expiresAt", formerly: Some("org.proto.expiresAt") };

/// The statement about a device that a prompt carries: an object.
pub const STATEMENT: Extension =
    Extension { key: "org.countersign.statement", formerly: Some("org.proto.statement") };

/// In a prompt: end what the agent does in this session. Always `true`.
pub const STOP: Extension = Extension { key: "org.countersign.stop", formerly: None };

/// In the trace of an exchange's status: who has acknowledged the request.
pub const SEEN: Extension = Extension { key: "org.countersign.seen", formerly: Some("org.proto.seen") };

impl Extension {
    /// The key that is written.
    pub const fn key(self) -> &'static str {
        self.key
    }

    /// Takes the value out of `members`: under the key, or else under its former name. `null` is not absence, and a broken
    /// value is an error and not a reason to look under the former name.
    pub fn read<'a, T: FromJson<'a>>(self, members: &mut Members<'a>) -> Result<Option<T>, Error> {
        match (members.optional(self.key)?, self.formerly) {
            (None, Some(formerly)) => members.optional(formerly),
            (value, _) => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawObject;

    fn salt(text: &str) -> Result<Option<String>, Error> {
        SALT.read(&mut RawObject::parse(text.as_bytes())?.members()?)
    }

    #[test]
    fn the_new_name_comes_first_and_the_former_one_is_read_too() {
        assert_eq!(salt(r#"{"org.countersign.salt":"new"}"#).unwrap().as_deref(), Some("new"));
        assert_eq!(salt(r#"{"org.proto.salt":"old"}"#).unwrap().as_deref(), Some("old"));
        let both = r#"{"org.proto.salt":"old","org.countersign.salt":"new"}"#;
        assert_eq!(salt(both).unwrap().as_deref(), Some("new"));
        assert_eq!(salt("{}").unwrap(), None);
        assert!(salt(r#"{"org.countersign.salt":1,"org.proto.salt":"old"}"#).is_err());
    }

    #[test]
    fn nothing_of_ours_is_written_into_the_namespace_of_the_protocol() {
        for extension in [SALT, REPO_NAME, VERIFY, EXPIRES_AT, STATEMENT, STOP, SEEN] {
            assert!(extension.key().starts_with("org.countersign."), "{extension:?}");
        }
    }
}
