//! Clients that hold an event stream each, and come back when it ends as the client library does.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt as _,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    Failure,
    clients::{
        arrivals::Arrivals,
        messages,
        stream::{Endpoint, Stream},
        subscribers::{Answer, ask, source},
    },
    stopwatch::Stopwatch,
    workload::scattered,
};

/// Clients that connect first, a second.
const FIRST_PER_SECOND: u64 = 1_000;

/// The pauses before a client comes back: this, and up to half more; twice as long after each failure, up to the second.
const RECONNECT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The time for a connection with its handshake, and then for the answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// All clients. They are gone when it is dropped.
pub(super) struct Crowd {
    pub(super) seen: Arc<Seen>,
    _clients: JoinSet<()>,
}

/// What the clients have seen.
pub(super) struct Seen {
    watch: Stopwatch,
    held: AtomicU64,
    /// Streams that have ended.
    pub(super) ended: AtomicU64,
    /// Attempts to connect that failed.
    pub(super) failed: AtomicU64,
    /// The last of those failures.
    pub(super) failure: Mutex<String>,
    /// When each stream was opened.
    opened: Mutex<Vec<Duration>>,
    pub(super) arrivals: Arrivals,
}

#[derive(Clone)]
struct Client {
    at: Endpoint,
    request: String,
    number: u64,
    seen: Arc<Seen>,
}

impl Crowd {
    /// Starts the clients, which connect one after the other. Needs a runtime.
    pub(super) fn start(at: &Endpoint, count: u64, key: &str) -> Result<Self, Failure> {
        let seen = Arc::new(Seen {
            watch: Stopwatch::start(),
            held: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failure: Mutex::default(),
            opened: Mutex::default(),
            arrivals: Arrivals::new(usize::try_from(count)?),
        });
        let mut clients = JoinSet::new();
        for number in 0..count {
            let request = format!(
                "GET /v1/sse/enforcers/{} HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer {key}\r\n\r\n",
                messages::enforcer(number)
            );
            clients.spawn(Client { at: at.clone(), request, number, seen: Arc::clone(&seen) }.run());
        }
        Ok(Self { seen, _clients: clients })
    }
}

impl Seen {
    pub(super) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Waits until so many streams are held.
    pub(super) async fn wait_for(&self, count: u64, limit: Duration) -> Result<(), Failure> {
        let watch = Stopwatch::start();
        while self.held.load(Ordering::Acquire) < count {
            if watch.elapsed() > limit {
                let held = self.held.load(Ordering::Acquire);
                let failure = self.failure.lock();
                return Err(format!("{held} of {count} channels are held after {limit:?}: {failure}").into());
            }
            sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }

    /// How long after this moment each stream was opened that was opened later.
    pub(super) fn opened_since(&self, moment: Duration) -> Vec<Duration> {
        self.opened.lock().iter().filter_map(|opened| opened.checked_sub(moment)).collect()
    }
}

impl Client {
    async fn run(self) {
        sleep(Duration::from_nanos(self.number * 1_000_000_000 / FIRST_PER_SECOND)).await;
        let (mut delay, mut attempt) = (RECONNECT.0, 0);
        loop {
            attempt += 1;
            match self.open().await {
                Ok(stream) => {
                    self.seen.opened.lock().push(self.seen.now());
                    self.seen.held.fetch_add(1, Ordering::AcqRel);
                    self.read(stream).await;
                    self.seen.held.fetch_sub(1, Ordering::AcqRel);
                    self.seen.ended.fetch_add(1, Ordering::AcqRel);
                    delay = RECONNECT.0;
                    sleep(self.spread(delay, attempt)).await;
                }
                Err(error) => {
                    self.seen.failed.fetch_add(1, Ordering::AcqRel);
                    *self.seen.failure.lock() = error.to_string();
                    sleep(self.spread(delay, attempt)).await;
                    delay = RECONNECT.1.min(delay * 2);
                }
            }
        }
    }

    async fn open(&self) -> io::Result<Stream> {
        let stream = timeout(CONNECT_TIMEOUT, self.at.connect(source(self.number))).await??;
        timeout(ANSWER_TIMEOUT, ask(stream, Answer::Head(200), &self.request)).await?
    }

    /// Reads messages until the stream ends.
    async fn read(&self, mut stream: Stream) {
        let mut read = Vec::new();
        while let Ok(1..) = stream.read_buf(&mut read).await {
            let done = self.seen.arrivals.record(&read, self.seen.now());
            read.drain(..done);
        }
    }

    /// The whole delay, and up to half more.
    fn spread(&self, delay: Duration, attempt: u64) -> Duration {
        let random = u32::try_from(scattered(self.number ^ (attempt << 32)) % 256).unwrap_or_default();
        delay + delay / 2 * random / 256
    }
}
