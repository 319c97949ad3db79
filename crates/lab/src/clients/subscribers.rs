//! Long-lived connections: opened from several source addresses, because ports are limited, and read for messages.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::arrivals::Arrivals;
use crate::{Failure, stopwatch::Stopwatch};

/// How many tasks open connections concurrently.
const OPENERS: u64 = 64;
/// The limit of new connections a second.
const MAX_OPENED_PER_SECOND: u64 = 4_000;
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The immediate response to an opening request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A response head with this status, followed by messages.
    Head(u16),
    /// No response until there is a message.
    Nothing,
}

/// Opens `count` connections and sends `request(number)` on each.
pub(crate) async fn open<R>(
    address: SocketAddr,
    count: u64,
    answer: Answer,
    request: R,
) -> Result<Vec<TcpStream>, Failure>
where
    R: Fn(u64) -> String + Send + Sync + 'static,
{
    let (next, request) = (Arc::new(AtomicU64::new(0)), Arc::new(request));
    let began = Instant::now();
    let mut openers = JoinSet::new();
    for _ in 0..OPENERS {
        let (next, request) = (Arc::clone(&next), Arc::clone(&request));
        openers.spawn(async move {
            let mut opened = Vec::new();
            loop {
                let channel = next.fetch_add(1, Ordering::Relaxed);
                if channel >= count {
                    return Ok::<_, io::Error>(opened);
                }
                // Connecting all at once would measure the server's peak, not the memory of open connections.
                sleep_until(began + Duration::from_nanos(channel * 1_000_000_000 / MAX_OPENED_PER_SECOND))
                    .await;
                let opening = open_one(address, source(channel), answer, request(channel));
                opened.push(timeout(OPEN_TIMEOUT, opening).await??);
            }
        });
    }
    let mut streams = Vec::new();
    while let Some(opened) = openers.join_next().await {
        streams.extend(opened??);
    }
    Ok(streams)
}

/// A source address from 127.0.0.2 to 127.0.0.9.
fn source(channel: u64) -> Ipv4Addr {
    let [.., last] = (channel % 8 + 2).to_be_bytes();
    Ipv4Addr::new(127, 0, 0, last)
}

async fn open_one(
    address: SocketAddr,
    source: Ipv4Addr,
    answer: Answer,
    request: String,
) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let Answer::Head(expected) = answer else { return Ok(stream) };
    let mut read = Vec::new();
    while !read.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status: Option<u16> =
        read.get(9..12).and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
    match status {
        Some(status) if expected == status => Ok(stream),
        _ => Err(io::Error::other(format!("not opened: {}", String::from_utf8_lossy(&read)))),
    }
}

/// How many of the streams have data to read or are closed.
pub(crate) fn answered(streams: &[TcpStream]) -> usize {
    let is_answered = |stream: &&TcpStream| !matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    streams.iter().filter(is_answered).count()
}

/// Reads all streams until the tasks are dropped.
pub(crate) fn listen(streams: Vec<TcpStream>, arrivals: &Arc<Arrivals>, watch: Stopwatch) -> JoinSet<()> {
    let mut listeners = JoinSet::new();
    for mut stream in streams {
        let arrivals = Arc::clone(arrivals);
        listeners.spawn(async move {
            let mut read = Vec::with_capacity(4_096);
            while let Ok(1..) = stream.read_buf(&mut read).await {
                let done = arrivals.record(&read, watch.elapsed());
                read.drain(..done);
            }
        });
    }
    listeners
}
