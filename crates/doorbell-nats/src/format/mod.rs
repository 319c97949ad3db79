//! What a message says, in bytes, inside of its seal. One value has one form: what is decoded and encoded again is the
//! same bytes.
//!
//! Numbers have seven bits a byte, the lowest first, and no more bytes than they need; texts and bytes have their length
//! before them. Lengths and counts are limited, and checked before anything is allocated.

mod field;
mod hand_over;
mod node_message;
mod ring_batch;
mod session;

pub use field::{MAX_TEXT, Malformed};
pub use hand_over::MAX_BODY;
pub use node_message::{MAX_HAND_OVERS, NodeMessage};
pub use ring_batch::{Answer, MAX_ANSWERS, MAX_RINGS, RingBatch};
pub use session::{Challenge, Session};

pub(crate) use hand_over::hand_over_size;
pub(crate) use ring_batch::ring_size;

/// Bytes of one message before it is sealed. NATS takes a megabyte by default.
pub const MAX_MESSAGE: usize = 256 << 10;
