//! Discards the rest of a body that no handler read, so that the client can read the answer.
//!
//! A server that answers and closes while the client still sends makes the client's system discard the answer. A client
//! that waits for `100 Continue` sends nothing: reading its body would ask it to.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

/// The rest is discarded up to this size and time; beyond that the connection is closed.
const MAX_DISCARDED_BYTES: usize = 8 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// What a reader left of a body, and whether it had asked for any of it.
struct Rest {
    body: Body,
    is_begun: bool,
}

type Left = Arc<Mutex<Option<Rest>>>;

/// Discards what `handle` leaves of the body.
pub(crate) async fn discard_unread_body(
    request: Request,
    handle: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let expect = request.headers().get(header::EXPECT).map(HeaderValue::as_bytes);
    let waits_for_continue = expect.is_some_and(|expect| expect.eq_ignore_ascii_case(b"100-continue"));
    let left = Left::default();
    let to = Arc::clone(&left);
    let returned = request.map(|body| Body::new(Returned { body: Some(body), is_begun: false, to }));
    let mut response = handle(returned).await;
    let rest = left.lock().take();
    if let Some(Rest { mut body, is_begun }) = rest {
        if waits_for_continue && !is_begun {
            // Whether the body follows is not known, so the next request can't be found.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        let discard = async {
            let mut read = 0;
            while let Some(Ok(frame)) = body.frame().await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > MAX_DISCARDED_BYTES {
                    break;
                }
            }
        };
        // Whether it ended or not, there is an answer to send.
        drop(timeout(DISCARD_TIMEOUT, discard).await);
    }
    response
}

/// A body that is returned when its reader drops it before its end.
struct Returned {
    body: Option<Body>,
    is_begun: bool,
    to: Left,
}

impl HttpBody for Returned {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_begun = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            let rest = Rest { body, is_begun: self.is_begun };
            *self.to.lock() = Some(rest);
        }
    }
}
