//! What a gateway pushes, live: over a WebSocket, else over server-sent events, else by asking again and again.
//!
//! | to find | look in |
//! |---|---|
//! | what arrives, and the settings | `message.rs` |
//! | what was handed out already, and which requests have ended | `memory.rs`, `open_requests.rs` |
//! | acknowledgements | `acks.rs` |
//! | the three transports | `socket.rs`, `stream.rs`, `lister.rs` |
//! | which of them is next, and when | `ladder.rs` |
//! | everything together | `driver.rs`, `handle.rs` |
//! | for the two ends: opened, checked, acknowledged | `approver.rs`, `enforcer.rs` |
//! | waiting until an expired request is wanted again | `refresh.rs` |

mod message;

mod acks;
mod ladder;
mod lister;
mod memory;
mod open_requests;
mod socket;
mod stream;

mod driver;

mod handle;

mod approver;
mod enforcer;
mod refresh;

pub use approver::{ApproverEvent, ApproverListener};
pub use enforcer::{EnforcerEvent, EnforcerListener};
pub use handle::Channel;
pub use message::{Capabilities, ChannelError, Event, Pushed, Settings, Transport};
