//! What the server counts, beside what core counts. No label has a value that a client chooses.

mod http;
mod push;
mod server;

pub(crate) use http::{Answered, HttpMetrics};
pub(crate) use push::PushMeter;
pub(crate) use server::{DROPPED_LOG_LINES, HeldTransport, NotificationOutcome, Rejection, ServerMetrics};
