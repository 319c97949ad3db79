//! What a client costs that connects, is there, and leaves: processors, reads and commits, over plain HTTP, TLS and resumed TLS.

use std::{io, sync::atomic::Ordering, time::Duration};

use serde::Serialize;
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::{
    Failure,
    args::ConnectsArgs,
    clients::{
        messages::{self, Role},
        stream::Endpoint,
        websocket::WebSocket,
    },
    cpu::to_f64,
    report, report_progress,
    servers::counted::{Cost, Counted},
    stopwatch::Stopwatch,
    table::headed,
};

/// A gateway pings this often.
const PING_INTERVAL: Duration = Duration::from_secs(30);

const PLAIN: &str = "plain";
const TLS: &str = "TLS";
const RESUMED: &str = "TLS, resumed";

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Processor time of the gateway for a connect with TLS, divided by that without.
    ratio: f64,
    #[serde(flatten)]
    args: ConnectsArgs,
    /// Connects a second, with all clients on the same processors.
    connects_per_second: Vec<(&'static str, f64)>,
    /// Connections of the last kind that were resumed.
    resumed: u64,
    each: Vec<Row>,
}

/// The mean cost of one of something.
#[derive(Debug, Serialize)]
struct Row {
    of: String,
    gateway_ms: f64,
    postgres_ms: f64,
    reads: f64,
    commits: f64,
    transactions: f64,
    log_bytes: f64,
}

impl Row {
    fn new(of: String, each: Cost) -> Self {
        let row = Self {
            of,
            gateway_ms: each.gateway * 1e3,
            postgres_ms: each.postgres * 1e3,
            reads: each.reads,
            commits: each.commits,
            transactions: each.transactions,
            log_bytes: each.log_bytes,
        };
        report_progress(&row.cells().join("  "));
        row
    }

    fn cells(&self) -> [String; 7] {
        [
            self.of.clone(),
            format!("{:.3}", self.gateway_ms),
            format!("{:.3}", self.postgres_ms),
            format!("{:.2}", self.reads),
            format!("{:.2}", self.commits),
            format!("{:.3}", self.transactions),
            format!("{:.0}", self.log_bytes),
        ]
    }
}

pub(crate) fn run(args: &ConnectsArgs) -> Result<Report, Failure> {
    Runtime::new()?.block_on(measure(args))
}

async fn measure(args: &ConnectsArgs) -> Result<Report, Failure> {
    let counted = Counted::start(&args.counting).await?;
    // The first connections make connections to PostgreSQL and prepare statements.
    drop(open(&counted, &counted.tls, 50).await?);
    let idle = counted.idle().await?;
    let plain = Endpoint::from(counted.gateway.address);
    let resuming = counted.resuming()?;
    let (count, mut each, mut connects_per_second) = (to_f64(args.clients), Vec::new(), Vec::new());
    for (name, at) in [(PLAIN, &plain), (TLS, &counted.tls), (RESUMED, &resuming)] {
        let counting = counted.count().await?;
        let watch = Stopwatch::start();
        let held = open(&counted, at, args.clients).await?;
        connects_per_second.push((name, count / watch.elapsed().as_secs_f64()));
        each.push(Row::new(format!("connect, {name}"), counting.end().await?.of_each(idle, count)));
        let held = hold(held);
        if name == TLS {
            let counting = counted.count().await?;
            sleep(Duration::from_secs(args.seconds)).await;
            let cost = counting.end().await?;
            let pings = count * cost.seconds / PING_INTERVAL.as_secs_f64();
            each.push(Row::new("ping and its answer, TLS".to_owned(), cost.of_each(idle, pings)));
        }
        let counting = counted.count().await?;
        drop(held);
        each.push(Row::new(format!("disconnect, {name}"), counting.end().await?.of_each(idle, count)));
    }
    let gateway_ms = |of: &str| each.iter().find(|row| row.of == of).map_or(0.0, |row| row.gateway_ms);
    Ok(Report {
        ratio: gateway_ms("connect, TLS") / gateway_ms("connect, plain"),
        args: args.clone(),
        connects_per_second,
        resumed: resuming.tls.map_or(0, |tls| tls.resumed.load(Ordering::Relaxed)),
        each,
    })
}

/// Connects so many enforcers, some at the same time.
async fn open(counted: &Counted, at: &Endpoint, count: u64) -> Result<Vec<WebSocket>, Failure> {
    const OPENERS: u64 = 16;
    let mut openers = JoinSet::new();
    for opener in 0..OPENERS {
        let (at, key) = (at.clone(), counted.gateway.enforcer_key.clone());
        openers.spawn(async move {
            let mut opened = Vec::new();
            for number in (opener..count).step_by(usize::try_from(OPENERS).unwrap_or(1)) {
                let request = messages::open_websocket(&key, Role::Enforcer, &messages::enforcer(number));
                opened.push(WebSocket::open(at.clone(), &request).await?);
            }
            Ok::<_, io::Error>(opened)
        });
    }
    let mut all = Vec::new();
    while let Some(opened) = openers.join_next().await {
        all.extend(opened??);
    }
    Ok(all)
}

/// Answers pings until it is dropped.
fn hold(sockets: Vec<WebSocket>) -> JoinSet<()> {
    let mut held = JoinSet::new();
    for mut socket in sockets {
        held.spawn(async move {
            loop {
                match socket.next().await {
                    Ok(_) => {}
                    // Nothing is to be read for longer than a message may take.
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                    Err(_) => return,
                }
            }
        });
    }
    held
}

impl report::Report for Report {
    fn table(&self) -> String {
        let head = ["of each", "gateway ms", "postgres ms", "reads", "commits", "transactions", "log B"];
        let mut lines = headed(head, self.each.iter().map(Row::cells), 1);
        let rates = self.connects_per_second.iter().map(|(name, rate)| format!("{name} {rate:.0}"));
        lines.push(format!(
            "\nconnects a second: {}; {} of {} were resumed\ngateway, TLS beside plain: {:.2}",
            rates.collect::<Vec<_>>().join(", "),
            self.resumed,
            self.args.clients,
            self.ratio
        ));
        lines.join("\n")
    }
}
