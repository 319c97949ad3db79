//! What a push to a phone costs a gateway: requests to people who have a subscription of Web Push, beside requests to people who have none.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::JoinHandle,
    time::sleep,
};

use crate::{
    Failure,
    args::PushesArgs,
    clients::{keep_alive::KeepAlive, messages, template::Submission},
    cpu::to_f64,
    report, report_progress,
    servers::counted::{Cost, Counted},
    stopwatch::Stopwatch,
};

/// Bytes of a submission's ciphertext.
const BYTES: usize = 600;

/// The subscription of the example in RFC 8291: a key of a device, and its secret.
const DEVICE_KEY: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const DEVICE_SECRET: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// By then every push must have arrived.
const PUSHED_WITHIN: Duration = Duration::from_mins(2);

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Processor time of gateway and PostgreSQL for a request with a push, divided by that of one without.
    ratio: f64,
    #[serde(flatten)]
    args: PushesArgs,
    pushed: u64,
    /// What the push adds to the request.
    gateway_ms: f64,
    postgres_ms: f64,
    commits: f64,
    log_bytes: f64,
}

pub(crate) fn run(args: &PushesArgs) -> Result<Report, Failure> {
    Runtime::new()?.block_on(measure(args))
}

async fn measure(args: &PushesArgs) -> Result<Report, Failure> {
    let counted = Counted::start(&args.counting).await?;
    let vendor = Vendor::start().await?;
    for number in 0..args.requests {
        subscribe(&counted, number, vendor.address).await?;
    }
    let idle = counted.idle().await?;
    let count = to_f64(args.requests);
    let counting = counted.count().await?;
    submit(&counted, args.requests..args.requests * 2).await?;
    let without = counting.end().await?.of_each(idle, count);
    let counting = counted.count().await?;
    submit(&counted, 0..args.requests).await?;
    let watch = Stopwatch::start();
    while vendor.pushed() < args.requests {
        if watch.elapsed() > PUSHED_WITHIN {
            return Err(format!("{} of {} pushes arrived", vendor.pushed(), args.requests).into());
        }
        sleep(Duration::from_millis(50)).await;
    }
    let with = counting.end().await?.of_each(idle, count);
    let more = |figure: fn(&Cost) -> f64| figure(&with) - figure(&without);
    let processors = |cost: &Cost| cost.gateway + cost.postgres;
    let report = Report {
        ratio: processors(&with) / processors(&without),
        args: args.clone(),
        pushed: vendor.pushed(),
        gateway_ms: more(|it| it.gateway) * 1e3,
        postgres_ms: more(|it| it.postgres) * 1e3,
        commits: more(|it| it.commits),
        log_bytes: more(|it| it.log_bytes),
    };
    report_progress(&report::Report::table(&report));
    Ok(report)
}

/// Gives one more person a subscription.
async fn subscribe(counted: &Counted, number: u64, vendor: SocketAddr) -> Result<(), Failure> {
    let body = json!({
        "kind": "webPush", "label": "phone", "page": "https://page.example/",
        "endpoint": format!("http://{vendor}/{number}"), "keys": { "p256dh": DEVICE_KEY, "auth": DEVICE_SECRET },
    });
    let path = format!("/platform/v1/approvers/{}/notifications/channels/phone", messages::approver(number));
    let mut connection = KeepAlive::open(counted.gateway.address).await?;
    connection
        .call_successfully(&messages::put(&path, &counted.gateway.approver_key, &body.to_string()))
        .await?;
    Ok(())
}

/// One request to each of these people.
async fn submit(counted: &Counted, people: std::ops::Range<u64>) -> Result<(), Failure> {
    let mut connection = KeepAlive::open(counted.gateway.address).await?;
    for number in people {
        let key = &counted.gateway.enforcer_key;
        let mut submission = Submission::new(key, &messages::enforcer(0), &messages::approver(number), BYTES);
        connection.call_successfully(submission.with_number(number)).await?;
    }
    Ok(())
}

/// A vendor's push service, which takes everything.
struct Vendor {
    address: SocketAddr,
    pushed: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Vendor {
    async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, pushed) = (listener.local_addr()?, Arc::<AtomicU64>::default());
        let count = Arc::clone(&pushed);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, Arc::clone(&count)));
            }
        });
        Ok(Self { address, pushed, accepting })
    }

    fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Takes every request of a connection.
async fn take(mut stream: TcpStream, pushed: Arc<AtomicU64>) -> io::Result<()> {
    let mut read = Vec::new();
    loop {
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let whole = end + 4 + length.unwrap_or_default();
        while read.len() < whole {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        read.drain(..whole);
        pushed.fetch_add(1, Ordering::Relaxed);
        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let Self { ratio, pushed, gateway_ms, postgres_ms, commits, log_bytes, .. } = self;
        format!(
            "of each of {pushed} pushes, beside the same request without: gateway {gateway_ms:.3} ms, postgres {postgres_ms:.3} ms, \
             commits {commits:.2}, log {log_bytes:.0} B; processors, with beside without: {ratio:.2}"
        )
    }
}
