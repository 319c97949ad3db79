//! What is pushed to clients that hold a connection: SSE streams and WebSockets, thin readers of one feed.

pub(crate) mod sse;
pub(crate) mod tellings;
pub(crate) mod ws;

mod metered;
mod ws_session;
