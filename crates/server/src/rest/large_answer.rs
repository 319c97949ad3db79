//! Large answers: counted against a quota until they are written, and written within a bounded time.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use countersign_wire::{failure::Failure, id::TenantId};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::{error::ApiError, limits::QuotaPermit, state::AppState};

/// Up to this size an answer is not counted.
const SMALL: usize = 64 << 10;

/// A large answer must be read within this time, however steadily its reader reads.
const WRITE_DEADLINE: Duration = Duration::from_mins(1);

/// Handed to the connection at once.
const CHUNK: usize = 64 << 10;

/// Counts the body of an answer against the quota of its tenant until it is written. 503 if there is no room.
pub(crate) fn metered(
    app: &AppState,
    tenant: &TenantId,
    response: Response<Bytes>,
) -> Result<Response, ApiError> {
    let (parts, body) = response.into_parts();
    if body.len() <= SMALL {
        return Ok(Response::from_parts(parts, Body::from(body)));
    }
    let mut permit = app.response_memory.permit(tenant);
    if !permit.try_reserve(body.len()) {
        return Err(Failure::Unavailable.into());
    }
    let deadline = Instant::now() + WRITE_DEADLINE;
    let metered = MeteredBody { rest: body, deadline, _permit: permit };
    Ok(Response::from_parts(parts, Body::new(metered)))
}

struct MeteredBody {
    rest: Bytes,
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
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        // Polled when the connection has taken the chunk before: a reader that trickles is noticed here, one that reads
        // nothing by the connection itself.
        if Instant::now() >= self.deadline {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        let length = CHUNK.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
