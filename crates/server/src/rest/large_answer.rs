//! Large answers: counted against a quota until they are written, and written within a bounded time.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, http::StatusCode, response::Response};
use bytes::Bytes;
use countersign_wire::id::TenantId;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::{error::ApiError, limits::QuotaPermit, metrics::Rejection, rest::response, state::AppState};

/// Up to this size an answer is not counted.
const SMALL: usize = 64 << 10;

/// A large answer must be read within this time, however steadily its reader reads.
const WRITE_DEADLINE: Duration = Duration::from_mins(1);

/// Handed to the connection at once.
const CHUNK: usize = 64 << 10;

/// An answer whose body is these segments, which are not copied into one. It counts against the quota of its tenant
/// until it is written. 503 if there is no room.
pub(crate) fn metered(
    app: &AppState,
    tenant: &TenantId,
    content_type: &'static str,
    segments: impl Into<VecDeque<Bytes>>,
) -> Result<Response, ApiError> {
    let segments = segments.into();
    let unwritten = segments.iter().map(Bytes::len).sum();
    let mut permit = app.response_memory.permit(tenant);
    if unwritten > SMALL && !permit.try_reserve(unwritten) {
        return Err(ApiError::unavailable(Rejection::ResponseMemory));
    }
    let deadline = Instant::now() + WRITE_DEADLINE;
    let body = MeteredBody { segments, unwritten, deadline, _permit: permit };
    Ok(response::with_type(StatusCode::OK, content_type, Body::new(body)))
}

struct MeteredBody {
    segments: VecDeque<Bytes>,
    /// The sum of their lengths.
    unwritten: usize,
    deadline: Instant,
    _permit: QuotaPermit,
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        while self.segments.front().is_some_and(Bytes::is_empty) {
            self.segments.pop_front();
        }
        let Self { segments, unwritten, deadline, .. } = &mut *self;
        let Some(segment) = segments.front_mut() else { return Poll::Ready(None) };
        // Polled when the connection has taken the chunk before: a reader that trickles is noticed here, one that reads
        // nothing by the connection itself.
        if Instant::now() >= *deadline {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        let chunk = segment.split_to(CHUNK.min(segment.len()));
        *unwritten -= chunk.len();
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.unwritten == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.unwritten as u64)
    }
}
