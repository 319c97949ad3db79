//! Long-lived connections: opened from several source addresses, because ports are limited, and read for messages.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::{JoinSet, coop::unconstrained},
    time::{Instant, sleep_until, timeout},
};

use futures_util::FutureExt as _;

use super::{
    arrivals::Arrivals,
    stream::{Endpoint, Stream},
};
use crate::{Failure, stopwatch::Stopwatch};

/// How many tasks open connections concurrently.
const OPENERS: u64 = 64;
/// The limit of new connections a second, and where nothing says that one is open: a server that falls behind would be measured
/// with its backlog.
const MAX_OPENED_PER_SECOND: u64 = 4_000;
const MAX_OPENED_UNANSWERED_PER_SECOND: u64 = 1_000;
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
    at: impl Into<Endpoint>,
    count: u64,
    answer: Answer,
    request: R,
) -> Result<Vec<Stream>, Failure>
where
    R: Fn(u64) -> String + Send + Sync + 'static,
{
    let (at, next, request) = (at.into(), Arc::new(AtomicU64::new(0)), Arc::new(request));
    let per_second = match answer {
        Answer::Head(_) => MAX_OPENED_PER_SECOND,
        Answer::Nothing => MAX_OPENED_UNANSWERED_PER_SECOND,
    };
    let began = Instant::now();
    let mut openers = JoinSet::new();
    for _ in 0..OPENERS {
        let (at, next, request) = (at.clone(), Arc::clone(&next), Arc::clone(&request));
        openers.spawn(async move {
            let mut opened = Vec::new();
            loop {
                let channel = next.fetch_add(1, Ordering::Relaxed);
                if channel >= count {
                    return Ok::<_, io::Error>(opened);
                }
                // Connecting all at once would measure the server's peak, not the memory of open connections.
                sleep_until(began + Duration::from_nanos(channel * 1_000_000_000 / per_second)).await;
                let request = request(channel);
                let opening = open_one(&at, channel, answer, &request);
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
pub(crate) fn source(channel: u64) -> Ipv4Addr {
    let [.., last] = (channel % 8 + 2).to_be_bytes();
    Ipv4Addr::new(127, 0, 0, last)
}

async fn open_one(at: &Endpoint, channel: u64, answer: Answer, request: &str) -> io::Result<Stream> {
    ask(at.connect(source(channel)).await?, answer, request).await
}

/// Sends an opening request, which must be answered as expected.
pub(crate) async fn ask(mut stream: Stream, answer: Answer, request: &str) -> io::Result<Stream> {
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
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
pub(crate) fn answered(streams: &mut [Stream]) -> usize {
    let is_answered = |stream: &mut Stream| unconstrained(stream.read_u8()).now_or_never().is_some();
    streams.iter_mut().map(is_answered).filter(|answered| *answered).count()
}

/// Reads all streams until the tasks are dropped.
pub(crate) fn listen(streams: Vec<Stream>, arrivals: &Arc<Arrivals>, watch: Stopwatch) -> JoinSet<()> {
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
