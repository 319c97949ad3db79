//! A WebSocket client on a bare socket that costs little: frames are read in place, and sent with a mask of zeros.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::stream::{Endpoint, Stream};

/// A message that takes longer is an error.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(20);

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The bit of the second byte that announces a mask.
const MASKED: u8 = 0x80;
/// Values of the second byte after which the length follows, in 16 or in 64 bits.
const LENGTH_16: u8 = 0x7e;
const LENGTH_64: u8 = 0x7f;

#[derive(Debug)]
pub(crate) struct WebSocket {
    stream: Stream,
    read: Vec<u8>,
    /// Bytes at the beginning of `read` that the caller has seen.
    seen: usize,
}

/// A frame in a buffer: where its content is, and where the next one begins.
struct Frame {
    opcode: u8,
    start: usize,
    end: usize,
}

impl WebSocket {
    /// Sends the request of a handshake, which must be accepted.
    pub(crate) async fn open(at: impl Into<Endpoint>, request: &str) -> io::Result<Self> {
        let mut stream = at.into().connect(Ipv4Addr::UNSPECIFIED).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut socket = Self { stream, read: Vec::with_capacity(8_192), seen: 0 };
        let end = loop {
            socket.read_more().await?;
            if let Some(end) = socket.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        if !socket.read.starts_with(b"HTTP/1.1 101") {
            return Err(io::Error::other(format!("not opened: {}", String::from_utf8_lossy(&socket.read))));
        }
        socket.seen = end;
        Ok(socket)
    }

    /// Waits for the next message; answers pings on the way.
    pub(crate) async fn next(&mut self) -> io::Result<&[u8]> {
        let (start, end) = timeout(MESSAGE_TIMEOUT, self.next_message()).await??;
        Ok(&self.read[start..end])
    }

    /// Waits for the first message with all of these texts; others are passed over.
    pub(crate) async fn next_with(&mut self, texts: [&str; 2]) -> io::Result<&[u8]> {
        let (start, end) = loop {
            let (start, end) = timeout(MESSAGE_TIMEOUT, self.next_message()).await??;
            if texts.iter().all(|text| contains(&self.read[start..end], text)) {
                break (start, end);
            }
        };
        Ok(&self.read[start..end])
    }

    async fn next_message(&mut self) -> io::Result<(usize, usize)> {
        loop {
            self.read.drain(..self.seen);
            self.seen = 0;
            let Some(frame) = parse(&self.read) else {
                self.read_more().await?;
                continue;
            };
            self.seen = frame.end;
            match frame.opcode {
                CLOSE => return Err(closed(&self.read[frame.start..frame.end])),
                PING => {
                    let pong = masked(PONG, &self.read[frame.start..frame.end]);
                    self.send_all(&pong).await?;
                }
                _ => return Ok((frame.start, frame.end)),
            }
        }
    }

    pub(crate) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.send_all(&masked(TEXT, text.as_bytes())).await
    }

    async fn send_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The error of a WebSocket that the gateway has closed, with the code that it gave.
fn closed(content: &[u8]) -> io::Error {
    let code = content.first_chunk().map_or(0, |code| u16::from_be_bytes(*code));
    let reason = String::from_utf8_lossy(content.get(2..).unwrap_or_default());
    io::Error::other(format!("closed with {code} {reason}"))
}

fn contains(message: &[u8], text: &str) -> bool {
    message.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

/// The first frame of `read`, unless it is incomplete. The gateway's frames have no mask and are not fragmented.
fn parse(read: &[u8]) -> Option<Frame> {
    let [first, second, rest @ ..] = read else { return None };
    let (length, start) = match (second & !MASKED, rest) {
        (LENGTH_16, [a, b, ..]) => (usize::from(u16::from_be_bytes([*a, *b])), 4),
        (LENGTH_64, rest) => (usize::try_from(u64::from_be_bytes(rest.first_chunk().copied()?)).ok()?, 10),
        (LENGTH_16, _) => return None,
        (short, _) => (usize::from(short), 2),
    };
    let end = start + length;
    (read.len() >= end).then_some(Frame { opcode: first & 0x0f, start, end })
}

/// A frame of a client. A mask of zeros leaves the content as it is.
fn masked(opcode: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match u16::try_from(content.len()) {
        Ok(length @ ..126) => frame.push(MASKED | length.to_be_bytes()[1]),
        Ok(length) => {
            frame.push(MASKED | LENGTH_16);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(MASKED | LENGTH_64);
            frame.extend((content.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(content);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_any_length_is_read_once_it_is_complete() {
        for length in [0_usize, 125, 126, 65_535, 65_536] {
            let mut frame = masked(TEXT, &vec![b'x'; length]);
            // As a server sends it: without the bit of the mask and the mask.
            frame[1] &= 0x7f;
            let mask = frame.len() - length - 4;
            frame.drain(mask..mask + 4);
            let parsed = parse(&frame).unwrap();
            assert_eq!((parsed.opcode, parsed.start, parsed.end), (TEXT, mask, frame.len()), "{length}");
            assert!((0..frame.len()).all(|cut| parse(&frame[..cut]).is_none()), "{length}");
        }
    }
}
