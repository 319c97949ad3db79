//! A socket outside of HTTP.

use std::{io, time::Duration};

use axum::{
    body::Bytes,
    http::{Response, StatusCode, header},
};
use bytes::BytesMut;
use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::stream::Stream;
use crate::{clock, limits::QuotaPermit};

/// A client that reads nothing of what it is sent for this long is disconnected.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that the system may buffer for a slow reader.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Bytes that a client may send while it is held, which belong to the next request if there is one.
const MAX_SENT_BYTES: usize = 64 << 10;

/// A socket, with what was read from it and belongs to the next request.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: Stream,
    pub(crate) read: Bytes,
}

impl Socket {
    /// Returns when the client has disconnected, or has sent too much. What it sends meanwhile is kept for the next request,
    /// and counts against `memory`.
    pub(crate) async fn disconnected(&mut self, memory: &mut QuotaPermit) {
        while let Some(sent) = self.sent().await {
            if self.read.len() + sent.len() > MAX_SENT_BYTES || !memory.try_reserve(sent.len()) {
                return;
            }
            let mut read = BytesMut::from(self.read.as_ref());
            read.extend_from_slice(&sent);
            self.read = read.freeze();
        }
    }

    /// As [`Socket::disconnected`], where no other request comes: what the client sends is dropped.
    pub(crate) async fn disconnected_for_good(&mut self) {
        self.read = Bytes::new();
        let mut dropped = 0;
        while let Some(sent) = self.sent().await {
            dropped += sent.len();
            if dropped > MAX_SENT_BYTES {
                return;
            }
        }
    }

    /// What the client sends next; `None` when it has disconnected. Cancel-safe.
    async fn sent(&mut self) -> Option<Vec<u8>> {
        self.stream.next_chunk().await.ok().flatten()
    }

    /// For a client that is sent messages one by one: limits what the system buffers, which would be megabytes for
    /// each.
    pub(crate) fn limit_send_buffer(&self) {
        if let Err(error) =
            rustix::net::sockopt::set_socket_send_buffer_size(self.stream.tcp(), SEND_BUFFER_BYTES)
        {
            tracing::debug!(%error, "the send buffer keeps the system's size");
        }
    }

    /// Writes all of it, within [`WRITE_TIMEOUT`].
    pub(crate) async fn write(&mut self, text: &[u8]) -> io::Result<()> {
        timeout(WRITE_TIMEOUT, async {
            self.stream.write_all(text).await?;
            self.stream.flush().await
        })
        .await?
    }

    /// Writes a whole answer.
    pub(crate) async fn answer(&mut self, mut response: Response<Bytes>) -> io::Result<()> {
        let length = response.body().len();
        if response.status() != StatusCode::NO_CONTENT {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        let mut text = response_head(&response);
        text.extend_from_slice(response.body());
        self.write(&text).await
    }
}

/// The head of an answer as it is written.
pub(crate) fn response_head<B>(response: &Response<B>) -> Vec<u8> {
    let status = response.status();
    let mut text =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default())
            .into_bytes();
    for (name, value) in response.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"date: ");
    text.extend_from_slice(clock::http_date().as_bytes());
    text.extend_from_slice(b"\r\n\r\n");
    text
}
