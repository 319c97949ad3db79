//! A TLS connection that owns buffers only while something is on its way: rustls keeps the keys, and records are in memory
//! for as long as it takes to decrypt them or to hand them to the system.

use std::{
    io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustls::{
    ServerConfig,
    pki_types::CertificateDer,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
};

/// Bytes that are read from the system at once. A record has at most 16 KiB and its frame; most have a few hundred bytes.
const READ_BYTES: usize = 4 << 10;

/// Plain text that goes into one record.
const RECORD_BYTES: usize = 16 << 10;

/// Room for the frame of a record: head, explicit nonce, content type and tag.
const FRAME_BYTES: usize = 64;

/// A handshake, with a chain of certificates of the client, is not larger.
const MAX_HANDSHAKE_BYTES: usize = 64 << 10;

/// A TLS connection of a client.
pub(crate) struct TlsStream {
    tcp: TcpStream,
    tls: UnbufferedServerConnection,
    /// What was received of a record that is not complete.
    incoming: Vec<u8>,
    /// What was decrypted and not read.
    plain: Vec<u8>,
    /// Records that are not sent.
    outgoing: Vec<u8>,
    /// The client sends nothing more.
    has_ended: bool,
    /// We have said that we send nothing more.
    is_closed: bool,
    /// What it sent is not TLS. rustls must not be asked again: it panics.
    has_failed: bool,
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStream").field("tcp", &self.tcp).finish_non_exhaustive()
    }
}

/// What is to be done in the state in which application data can be sent.
enum Write<'a> {
    Nothing,
    Data(&'a [u8]),
    Goodbye,
}

impl TlsStream {
    /// Does the handshake. `received` was read from the client before.
    pub(super) async fn accept(
        tcp: TcpStream,
        received: Vec<u8>,
        config: Arc<ServerConfig>,
    ) -> io::Result<Self> {
        let tls = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        let (plain, outgoing) = (Vec::new(), Vec::new());
        let mut stream = Self {
            tcp,
            tls,
            incoming: received,
            plain,
            outgoing,
            has_ended: false,
            is_closed: false,
            has_failed: false,
        };
        loop {
            let advanced = stream.advance(Write::Nothing);
            // An alert, too, if it failed.
            let outgoing = mem::take(&mut stream.outgoing);
            stream.tcp.write_all(&outgoing).await?;
            advanced?;
            if !stream.tls.is_handshaking() {
                return Ok(stream);
            }
            if stream.has_ended || stream.incoming.len() > MAX_HANDSHAKE_BYTES {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            stream.tcp.readable().await?;
            stream.receive()?;
        }
    }

    /// The certificate that the client has shown, if it has one.
    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// What the client sends next; `None` at the end.
    pub(crate) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        loop {
            if !self.plain.is_empty() {
                return Poll::Ready(Ok(Some(mem::take(&mut self.plain))));
            }
            if self.has_ended {
                return Poll::Ready(Ok(None));
            }
            ready!(self.tcp.poll_read_ready(context))?;
            self.receive()?;
            let advanced = self.advance(Write::Nothing);
            // What rustls answers by itself: an alert, or new keys. It goes out with the next write if not now.
            if !self.outgoing.is_empty() {
                let _sent_or_pending = self.poll_sent(context)?;
            }
            advanced?;
        }
    }

    /// Reads what the system has. Nothing is allocated for a connection on which nothing has come.
    fn receive(&mut self) -> io::Result<()> {
        self.incoming.reserve(READ_BYTES);
        match self.tcp.try_read_buf(&mut self.incoming) {
            // Without a goodbye. What was cut off is noticed by HTTP, whose messages say how long they are.
            Ok(0) => self.has_ended = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        self.release();
        Ok(())
    }

    /// Gives back what is empty.
    fn release(&mut self) {
        if self.incoming.is_empty() {
            self.incoming = Vec::new();
        }
        if self.outgoing.is_empty() {
            self.outgoing = Vec::new();
        }
    }

    /// Handles everything that was received, and writes what rustls has to say, and `write`, to `outgoing`.
    fn advance(&mut self, mut write: Write<'_>) -> io::Result<()> {
        if self.has_failed {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let Self { tls, incoming, plain, outgoing, has_ended, .. } = self;
        let mut failed = None;
        loop {
            let UnbufferedStatus { discard, state } = tls.process_tls_records(incoming);
            let mut is_done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        plain.extend_from_slice(record.map_err(io::Error::other)?.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    append(outgoing, 0, |room| data.encode(room).map_err(missing_room_to_encode))?;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => *has_ended = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    match mem::replace(&mut write, Write::Nothing) {
                        Write::Nothing => {}
                        Write::Data(data) => append(outgoing, data.len() + FRAME_BYTES, |room| {
                            traffic.encrypt(data, room).map_err(missing_room_to_encrypt)
                        })?,
                        Write::Goodbye => append(outgoing, FRAME_BYTES, |room| {
                            traffic.queue_close_notify(room).map_err(missing_room_to_encrypt)
                        })?,
                    }
                    is_done = true;
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => is_done = true,
                // Early data is not accepted, and there are no other states.
                Ok(_) => return Err(io::ErrorKind::Unsupported.into()),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            incoming.drain(..discard);
            if is_done {
                break;
            }
        }
        // The alert that says what failed. Only while there is one: rustls panics if what failed is handled again.
        while failed.is_some() && tls.wants_write() {
            let UnbufferedStatus { state: Ok(ConnectionState::EncodeTlsData(mut data)), .. } =
                tls.process_tls_records(incoming)
            else {
                break;
            };
            append(outgoing, 0, |room| data.encode(room).map_err(missing_room_to_encode))?;
        }
        self.release();
        match failed {
            Some(error) => {
                self.has_failed = true;
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
            // Both sides have said goodbye.
            None if matches!(write, Write::Data(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(()),
        }
    }

    /// Sends what is to be sent.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let count = ready!(Pin::new(&mut self.tcp).poll_write(context, &self.outgoing))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.drain(..count);
        }
        self.release();
        Poll::Ready(Ok(()))
    }
}

/// How many bytes more are needed.
type MissingRoom = Result<usize, io::Error>;

fn missing_room_to_encode(error: EncodeError) -> MissingRoom {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => Ok(required_size),
        other @ EncodeError::AlreadyEncoded => Err(io::Error::other(other)),
    }
}

fn missing_room_to_encrypt(error: EncryptError) -> MissingRoom {
    match error {
        EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => Ok(required_size),
        other @ EncryptError::EncryptExhausted => Err(io::Error::other(other)),
    }
}

/// Appends what `write` writes, with as much room as it asks for.
fn append(
    to: &mut Vec<u8>,
    expected: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, MissingRoom>,
) -> io::Result<()> {
    let (start, mut room) = (to.len(), expected);
    loop {
        to.resize(start + room, 0);
        let missing = match write(&mut to[start..]) {
            Ok(written) => {
                to.truncate(start + written);
                return Ok(());
            }
            Err(missing) => {
                to.truncate(start);
                missing?
            }
        };
        if missing <= room {
            return Err(io::ErrorKind::InvalidData.into());
        }
        room = missing;
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(mut plain) = ready!(this.poll_chunk(context))? else { return Poll::Ready(Ok(())) };
        let count = plain.len().min(into.remaining());
        into.put_slice(&plain[..count]);
        if count < plain.len() {
            plain.drain(..count);
            this.plain = plain;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // At most one record is in memory.
        ready!(this.poll_sent(context))?;
        let piece = &bytes[..bytes.len().min(RECORD_BYTES)];
        this.advance(Write::Data(piece))?;
        // The rest goes out with the next write, or when it is flushed.
        if let Poll::Ready(Err(error)) = this.poll_sent(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_sent(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_closed && !this.has_failed {
            this.is_closed = true;
            this.advance(Write::Goodbye)?;
        }
        ready!(this.poll_sent(context))?;
        Pin::new(&mut this.tcp).poll_shutdown(context)
    }
}
