//! A WebSocket's stream that counts the memory of an unfinished message: the library collects a message until it is
//! complete, and reports nothing of it before.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

use crate::limits::QuotaPermit;

/// A message must be complete within this.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct MeteredStream {
    stream: TcpStream,
    /// Bytes that were read of a message that is not complete.
    unfinished: usize,
    since: Instant,
    memory: QuotaPermit,
}

impl MeteredStream {
    pub(super) fn new(stream: TcpStream, memory: QuotaPermit) -> Self {
        Self { stream, unfinished: 0, since: Instant::now(), memory }
    }

    /// A message was complete and has been handled.
    pub(super) fn message_finished(&mut self) {
        self.unfinished = 0;
        self.memory.release();
    }

    /// A control frame, which may come between the frames of a message: its payload, a head of two bytes and a mask of
    /// four.
    pub(super) fn control_frame_received(&mut self, payload: usize) {
        self.unfinished = self.unfinished.saturating_sub(payload + 6);
        if self.unfinished == 0 {
            self.message_finished();
        }
    }

    /// Whether a message takes too long to arrive.
    pub(super) fn is_overdue(&self) -> bool {
        self.unfinished > 0 && self.since.elapsed() > MESSAGE_TIMEOUT
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        let read = into.filled().len() - before;
        if this.unfinished == 0 {
            this.since = Instant::now();
        }
        this.unfinished += read;
        Poll::Ready(if this.memory.try_reserve(read) {
            Ok(())
        } else {
            Err(io::ErrorKind::OutOfMemory.into())
        })
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
