//! What is sent to clients: what a channel has to send, when a WebSocket sends it again, the feed of a reader's mailboxes,
//! the messages, and the poller that finds lost rings.

pub mod change_poller;
pub mod channel_guard;
pub mod feed;
pub mod message;
pub mod subscriber;
pub mod subscription;
mod walk;
pub mod ws_channel;
pub mod ws_session;
