//! What every answer may cost: its bytes count against a quota of its tenant until they are written, and it is written
//! within a bounded time. Applied to all routes where they are built, so that none can forget it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use countersign_wire::id::TenantId;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::{error::ApiError, limits::QuotaPermit, metrics::Rejection, state::AppState};

/// An answer up to this size fits into the system's buffer of a connection, and is not counted.
const SMALL: usize = 16 << 10;

/// What an answer counts that is made while it is written. No part of it may be larger.
pub(crate) const STREAMED: usize = 128 << 10;

/// An answer must be read within this time, however steadily its reader reads.
const WRITE_DEADLINE: Duration = Duration::from_mins(1);

/// Handed to the connection at once.
const CHUNK: usize = 64 << 10;

/// The answer with its limits; 503 if there is no room for it. Without a tenant it is made of what is in memory anyway, and
/// only its time is limited.
pub(crate) fn limited(
    app: &AppState,
    tenant: Option<&TenantId>,
    answer: Response,
) -> Result<Response, ApiError> {
    let size = answer.body().size_hint().exact();
    let size = size.map_or(STREAMED, |size| usize::try_from(size).unwrap_or(usize::MAX));
    if size <= SMALL {
        return Ok(answer);
    }
    let mut permit = tenant.map(|tenant| app.response_memory.permit(tenant));
    if permit.as_mut().is_some_and(|permit| !permit.try_reserve(size)) {
        return Err(ApiError::unavailable(Rejection::ResponseMemory));
    }
    let deadline = Instant::now() + WRITE_DEADLINE;
    Ok(answer.map(|body| Body::new(LimitedBody { body, chunk: Bytes::new(), deadline, _permit: permit })))
}

struct LimitedBody {
    body: Body,
    /// What is left of the part that the body gave last.
    chunk: Bytes,
    deadline: Instant,
    _permit: Option<QuotaPermit>,
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let is_streamed = self.body.size_hint().exact().is_none();
        while self.chunk.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                None => return Poll::Ready(None),
            }
            if is_streamed && self.chunk.len() > STREAMED {
                return Poll::Ready(Some(Err(io::ErrorKind::FileTooLarge.into())));
            }
        }
        // Polled when the connection has taken the chunk before: a reader that trickles is noticed here, one that reads
        // nothing by the connection itself.
        if Instant::now() >= self.deadline {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        let size = CHUNK.min(self.chunk.len());
        Poll::Ready(Some(Ok(Frame::data(self.chunk.split_to(size)))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunk.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(rest + self.chunk.len() as u64),
            None => SizeHint::default(),
        }
    }
}

/// A body of these segments, which are not copied into one.
pub(crate) struct Segments {
    segments: std::collections::VecDeque<Bytes>,
    /// The sum of their lengths.
    unwritten: usize,
}

impl Segments {
    pub(crate) fn new(segments: Vec<Bytes>) -> Self {
        Self { unwritten: segments.iter().map(Bytes::len).sum(), segments: segments.into() }
    }
}

impl HttpBody for Segments {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        let Some(segment) = self.segments.pop_front() else { return Poll::Ready(None) };
        self.unwritten -= segment.len();
        Poll::Ready(Some(Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        self.unwritten == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.unwritten as u64)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::test_node::TestNode;

    fn sized(size: usize) -> Response {
        Response::new(Body::from(vec![b'x'; size]))
    }

    fn streamed(parts: Vec<Bytes>) -> Response {
        let parts = parts.into_iter().map(Ok::<_, io::Error>);
        Response::new(Body::from_stream(stream::iter(parts)))
    }

    #[tokio::test]
    async fn an_answer_counts_until_it_is_written_and_comes_in_chunks() {
        let node = TestNode::new();
        let answer = limited(&node.app, Some(&node.tenant), sized(1 << 20)).unwrap();
        assert_eq!(node.app.response_memory.in_use(), 1 << 20);
        let mut body = answer.into_body();
        assert_eq!(body.size_hint().exact(), Some(1 << 20));
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((first.len(), body.size_hint().exact()), (CHUNK, Some((1 << 20) - CHUNK as u64)));
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), (1 << 20) - CHUNK);
        assert_eq!(node.app.response_memory.in_use(), 0);
        for uncounted in [Some(&node.tenant), None] {
            let size = if uncounted.is_some() { SMALL } else { 1 << 20 };
            drop(limited(&node.app, uncounted, sized(size)).unwrap());
        }
        assert_eq!(node.app.response_memory.in_use(), 0);
    }

    #[tokio::test]
    async fn one_tenant_does_not_take_the_room_of_others() {
        let node = TestNode::new();
        let mut held = Vec::new();
        while let Ok(answer) = limited(&node.app, Some(&node.tenant), streamed(Vec::new())) {
            held.push(answer);
        }
        assert!((100..1_000).contains(&held.len()), "{}", held.len());
        let refused = limited(&node.app, Some(&node.tenant), sized(1 << 20)).unwrap_err();
        assert_eq!(refused.failure(), countersign_wire::failure::Failure::Unavailable);
        limited(&node.app, Some(&"other".parse().unwrap()), sized(1 << 20)).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_too_slowly_is_broken_off() {
        let node = TestNode::new();
        let part = Bytes::from(vec![b'x'; CHUNK]);
        for answer in [sized(CHUNK * 3), streamed(vec![part.clone(), part.clone(), part])] {
            let mut body = limited(&node.app, None, answer).unwrap().into_body();
            body.frame().await.unwrap().unwrap();
            tokio::time::advance(WRITE_DEADLINE).await;
            assert!(body.frame().await.unwrap().is_err());
        }
    }

    #[tokio::test]
    async fn a_part_of_a_streamed_answer_is_not_larger_than_what_it_counts() {
        let node = TestNode::new();
        let answer = limited(&node.app, None, streamed(vec![Bytes::from(vec![b'x'; STREAMED + 1])])).unwrap();
        assert!(answer.into_body().frame().await.unwrap().is_err());
    }
}
