//! The error type of this crate: why an input was rejected.

use std::fmt;

/// Why a text, a member, a hash, a key or a signature was rejected.
///
/// No variant repeats any of the rejected input, so an `Error` can be logged and shown to the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not strict JSON.
    #[error("not strict JSON: {0}")]
    Json(#[from] JsonFault),
    /// The JSON does not have the format that the specification defines.
    #[error(transparent)]
    Member(#[from] MemberFault),
    /// Something that is hashed or signed contains an integer that parsers round differently.
    #[error("an integer is outside ±(2^53−1), where readers disagree about its value")]
    UnsafeInteger,
    /// The hash that was sent is not the hash of what was sent.
    #[error("the hash is not that of the object")]
    HashMismatch,
    /// The signature is malformed or does not verify.
    #[error("signature refused: {0}")]
    Signature(#[from] SignatureFault),
}

impl Error {
    /// An error for a member that is required in this context, although its type makes it optional.
    pub fn missing(member: &'static str) -> Self {
        MemberFault::at(member, Problem::Missing).into()
    }

    /// An error for a member or parameter whose value violates a rule of its context.
    pub fn breaks(member: &'static str, rule: &'static str) -> Self {
        MemberFault::at(member, Problem::Breaks(Rule(rule))).into()
    }
}

impl From<Rule> for Error {
    fn from(rule: Rule) -> Self {
        MemberFault::here(Problem::Breaks(rule)).into()
    }
}

/// Why a text is not strict JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The bytes are not UTF-8.
    #[error("the bytes are not UTF-8")]
    NotUtf8,
    /// The text starts with a byte order mark.
    #[error("the text starts with a byte order mark")]
    ByteOrderMark,
    /// Invalid grammar, a lone surrogate, or a number outside the range of a double.
    #[error("broken at line {line}, column {column}")]
    Syntax {
        /// The line of the error, counted from one.
        line: usize,
        /// The column in bytes, counted from one; zero at the start of a line.
        column: usize,
    },
    /// An object, at any depth, names a member twice.
    #[error("an object names a member twice")]
    DuplicateMember,
    /// More than [`crate::limits::MAX_NESTING`] levels.
    #[error("nested too deeply")]
    TooDeep,
}

/// A member that is missing, unknown, of the wrong type or invalid, with its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFault {
    path: String,
    problem: Problem,
}

impl MemberFault {
    pub(crate) fn here(problem: Problem) -> Self {
        Self { path: String::new(), problem }
    }

    pub(crate) fn at(name: &str, problem: Problem) -> Self {
        Self { path: name.to_owned(), problem }
    }

    pub(crate) fn inside(mut self, parent: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{separator}{}", self.path);
        self
    }

    /// The member's path, as in `sender.enforcerId` or `actions[2].id`; empty for the value itself.
    /// It consists only of names from the specification, never of input.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The problem with the member at this path.
    pub fn problem(&self) -> Problem {
        self.problem
    }
}

impl fmt::Display for MemberFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "the value" } else { &self.path };
        write!(f, "{place} {}", self.problem)
    }
}

impl std::error::Error for MemberFault {}

/// The problem with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The member is required and was not sent.
    #[error("is missing")]
    Missing,
    /// The object has a member that the specification does not allow.
    #[error("has a member that the specification does not allow")]
    Unknown,
    /// The value has another JSON type than this one.
    #[error("is not {0}")]
    NotA(&'static str),
    /// The type is correct, but the value violates this rule.
    #[error("{0}")]
    Breaks(Rule),
}

/// The rule that a value violates, as a phrase that follows the value's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rule(pub(crate) &'static str);

/// Why a signature was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// It is not 64 bytes in base64url without padding.
    #[error("it is not 64 bytes in base64url without padding")]
    Malformed,
    /// Strict Ed25519 verification failed.
    #[error("it does not verify under this key")]
    DoesNotVerify,
}
