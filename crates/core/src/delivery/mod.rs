//! What is sent to clients: the feed of a reader's mailboxes, the messages, and the poller that finds lost rings.

pub mod change_poller;
pub mod feed;
pub mod message;
