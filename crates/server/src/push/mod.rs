//! What is pushed to clients that hold a connection: SSE streams and WebSockets, thin readers of one feed.

pub(crate) mod sse;
pub(crate) mod tellings;
pub(crate) mod ws;

mod ws_session;

use std::time::Duration;

/// A client that does not take what it is sent within this is let go.
const WRITE_TIME: Duration = Duration::from_secs(10);
