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
    time::Instant,
};

use crate::{
    limits::{FailureBudget, QuotaPermit},
    net::stream::Stream,
};

/// A message must be complete within this.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// Control frames that a client may send at once, and in which time one more. It has to answer a ping every half minute.
const CONTROL_BURST: u32 = 30;
const CONTROL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct MeteredStream {
    stream: Stream,
    /// A message with the heads of its frames is not larger.
    max_bytes: usize,
    control_frames: FailureBudget,
    /// Whether it has sent more of them than it may. Then nothing of it is read, not even its goodbye.
    is_flooding: bool,
    /// Bytes that were read of a message that is not complete.
    unfinished: usize,
    since: Instant,
    memory: QuotaPermit,
}

impl MeteredStream {
    pub(super) fn new(stream: Stream, max_message_bytes: usize, memory: QuotaPermit) -> Self {
        let max_bytes = max_message_bytes * 2 + (64 << 10);
        let control_frames = FailureBudget::new(CONTROL_BURST, CONTROL_INTERVAL);
        Self {
            stream,
            max_bytes,
            control_frames,
            is_flooding: false,
            unfinished: 0,
            since: Instant::now(),
            memory,
        }
    }

    /// A message was complete and has been handled.
    pub(super) fn message_finished(&mut self) {
        self.unfinished = 0;
        self.memory.release();
    }

    /// A control frame, which may come between the frames of a message: its payload, a head of two bytes and a mask of
    /// four. Returns whether the client may send one now.
    pub(super) fn control_frame_received(&mut self, payload: usize) -> bool {
        self.unfinished = self.unfinished.saturating_sub(payload + 6);
        if self.unfinished == 0 {
            self.message_finished();
        }
        self.is_flooding |= self.control_frames.take().is_err();
        !self.is_flooding
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
        if this.is_flooding {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        let read = into.filled().len() - before;
        if this.unfinished == 0 {
            this.since = Instant::now();
        }
        this.unfinished += read;
        // The library counts what a message contains, and not the frames that it comes in.
        if this.unfinished > this.max_bytes {
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
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
