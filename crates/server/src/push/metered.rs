//! A WebSocket's stream, with what its unfinished message has cost so far: the library gathers a message in memory until
//! it is whole, and says nothing of it before.

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

use crate::http::shares::Share;

/// A message must be whole within this.
const MESSAGE_TIME: Duration = Duration::from_mins(1);

pub(crate) struct Metered {
    stream: TcpStream,
    /// What was read and is no whole message yet.
    unfinished: usize,
    since: Instant,
    room: Share,
}

impl Metered {
    pub(crate) fn new(stream: TcpStream, room: Share) -> Self {
        Self { stream, unfinished: 0, since: Instant::now(), room }
    }

    /// A message is whole, and done with.
    pub(crate) fn finished(&mut self) {
        self.unfinished = 0;
        self.room.give_back();
    }

    /// A frame that may come in the midst of a message: its payload, a head of two bytes and a mask of four.
    pub(crate) fn interrupted(&mut self, payload: usize) {
        self.unfinished = self.unfinished.saturating_sub(payload + 6);
        if self.unfinished == 0 {
            self.finished();
        }
    }

    /// Whether a message takes too long.
    pub(crate) fn is_overdue(&self) -> bool {
        self.unfinished > 0 && self.since.elapsed() > MESSAGE_TIME
    }
}

impl AsyncRead for Metered {
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
        Poll::Ready(if this.room.grow(read) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) })
    }
}

impl AsyncWrite for Metered {
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
