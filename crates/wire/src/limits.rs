//! Limits of sizes and counts, in bytes unless their name says otherwise.

/// Levels of nested arrays and objects that a text may have.
pub const MAX_NESTING: usize = 128;

/// Bytes of an id in UTF-8.
pub const MAX_ID: usize = 256;

/// Characters of a label that people read.
pub const MAX_LABEL_CHARS: usize = 128;

/// Characters of a `publicKey` that is not a key bundle.
pub const MAX_PUBLIC_KEY_CHARS: usize = 4_096;

/// The payload of an open artifact as JSON text in the body.
pub const MAX_ARTIFACT_PAYLOAD: usize = 2 << 20;

/// The ciphertext of a sealed artifact as JSON text in the body: a payload of
/// [`MAX_ARTIFACT_PAYLOAD`] in base64, with room for what encryption adds.
pub const MAX_ARTIFACT_CIPHERTEXT: usize = base64_length(MAX_ARTIFACT_PAYLOAD) + SEALING_ROOM;

/// The text of a prompt as JSON text in the body.
pub const MAX_PROMPT: usize = 256 << 10;

/// The ciphertext of a sealed prompt as JSON text in the body.
pub const MAX_PROMPT_CIPHERTEXT: usize = base64_length(MAX_PROMPT) + SEALING_ROOM;

/// The payload of a session snapshot as JSON text in the body.
pub const MAX_SNAPSHOT: usize = 5 << 20;

/// The payload of a session snapshot that is sealed.
pub const MAX_SNAPSHOT_CIPHERTEXT: usize = base64_length(MAX_SNAPSHOT) + SEALING_ROOM;

/// Any other body, and everything of a message around its payload.
pub const MAX_OTHER_BODY: usize = 64 << 10;

/// The body of a request to join, which anybody can send: an invitation and a nonce.
pub const MAX_JOIN_BODY: usize = 4 << 10;

/// An artifact as a message: its payload, and everything around it, inside and outside of its body.
pub const MAX_ARTIFACT_MESSAGE: usize = MAX_ARTIFACT_CIPHERTEXT + 2 * MAX_OTHER_BODY;

/// A prompt as a message: its text or ciphertext, and everything around it.
pub const MAX_PROMPT_MESSAGE: usize = MAX_PROMPT_CIPHERTEXT + 2 * MAX_OTHER_BODY;

/// A session event as a message: its payload, and everything around it.
pub const MAX_SESSION_MESSAGE: usize = MAX_SNAPSHOT_CIPHERTEXT + 2 * MAX_OTHER_BODY;

/// `metadata` and `trace` of one message together.
pub const MAX_METADATA_AND_TRACE: usize = 16 << 10;

/// The capabilities that a client reports, as JSON text.
pub const MAX_CAPABILITIES: usize = 1 << 10;

/// Requested actions (buttons) of one artifact.
pub const MAX_REQUESTED_ACTIONS: usize = 5;

/// Seconds that a wait can request; more is reduced to this.
pub const MAX_WAIT_SECONDS: u64 = 60;

/// Seconds of a wait that requests no timeout.
pub const DEFAULT_WAIT_SECONDS: u64 = 30;

/// Items of an inbox page; a higher limit is reduced to this.
pub const MAX_PAGE_ITEMS: u32 = 200;

/// Items of an inbox page if the request has no limit.
pub const DEFAULT_PAGE_ITEMS: u32 = 50;

/// An inbox page ends when the bodies of its items reach this size, even before its limit of items.
pub const MAX_PAGE: usize = 4 << 20;

/// Keys, nonces, tags and member names around a ciphertext.
const SEALING_ROOM: usize = 64 << 10;

const fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}
