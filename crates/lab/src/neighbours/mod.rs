//! A tenant that submits at its share of what the gateway carries, alone and beside one at ten times that through one
//! mailbox.

mod report;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use countersign_testkit::postgres::Postgres;
use serde::Serialize;
use tempfile::TempDir;

use crate::{
    Failure,
    args::NeighboursArgs,
    clients::{
        callers::{Completed, keep_in_flight, keep_pace},
        keep_alive::KeepAlive,
        messages,
        template::Submission,
    },
    cpu::{Meter, to_f64},
    report_progress, rounds,
    rounds::Sample,
    servers::{
        bare::DEFAULTS,
        gateway::{self, Gateway},
    },
};

pub(crate) use report::Report;

const ALONE: &str = "alone";
const BESIDE: &str = "beside the loud one";

const QUIET_TENANT: &str = "quiet";

/// Tenants that would share what the gateway carries: a share is a tenth of that.
const SHARES: u64 = 10;

/// Enough that the quiet tenant's rate does not depend on how long one submission takes.
const QUIET_CALLERS: u64 = 64;

/// How long to find out what the gateway carries.
const TRIAL: Duration = Duration::from_secs(2);

/// Concurrent submissions of that trial, to as many mailboxes.
const TRIAL_IN_FLIGHT: u64 = 64;

/// How long the loud tenant waits after a 503, which says a second or more.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the loud tenant achieved.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Loud {
    accepted: u64,
    refused: u64,
}

pub(crate) fn run(args: &NeighboursArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    report_progress("starting a private PostgreSQL");
    let postgres = Postgres::start_with(DEFAULTS);
    let folder = TempDir::new()?;
    let gateway = Gateway::on_postgres(&program, folder.path(), &postgres)?;
    let [quiet_key, _] = gateway::keys(&program, folder.path(), QUIET_TENANT)?;
    let servers = [("gateway", gateway.pid()), ("postgres", postgres.pid())];
    let bench = Bench { args, gateway, quiet_key, servers, next: Arc::default() };
    let capacity = bench.capacity()?;
    let rate = (capacity / SHARES).max(1);
    report_progress(&format!("the gateway carries {capacity} submissions a second; a share is {rate}"));
    let rounds = rounds::measure(args.rounds, &[ALONE, BESIDE], |arm| bench.measure(arm, rate))?;
    Ok(Report::new(args, capacity, rate, rounds))
}

struct Bench<'a> {
    args: &'a NeighboursArgs,
    gateway: Gateway,
    quiet_key: String,
    servers: [(&'static str, u32); 2],
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    /// Submissions a second that the gateway carries for one tenant with many mailboxes, after a warm-up of the same length.
    fn capacity(&self) -> Result<u64, Failure> {
        let carry = || {
            keep_in_flight(TRIAL_IN_FLIGHT, TRIAL, async |caller| {
                self.caller(&self.gateway.enforcer_key, &messages::approver(caller)).await
            })
        };
        carry()?;
        Ok(carry()?.latencies.len() as u64 / TRIAL.as_secs())
    }

    fn measure(&self, arm: &'static str, rate: u64) -> Result<Sample, Failure> {
        let length = Duration::from_secs(self.args.seconds);
        let meter = Meter::start(&self.servers)?;
        let quiet = || {
            keep_pace(QUIET_CALLERS, rate, length, async |caller| {
                self.caller(&self.quiet_key, &messages::approver(caller)).await
            })
        };
        let (Completed { latencies, elapsed }, loud) = match arm {
            ALONE => (quiet()?, Loud::default()),
            _ => thread::scope(|scope| {
                let loud = scope.spawn(|| self.loud(length));
                let quiet = quiet()?;
                Ok::<_, Failure>((quiet, loud.join().map_err(|_| "the loud tenant panicked")??))
            })?,
        };
        let metered = meter.stop()?;
        let per_second = |count| to_f64(count) / elapsed.as_secs_f64();
        let figures = BTreeMap::from([
            ("offered/s", to_f64(rate)),
            ("loud/s", per_second(loud.accepted)),
            ("loud refused/s", per_second(loud.refused)),
        ]);
        Ok(Sample { count: latencies.len() as u64, elapsed, latencies, metered, figures })
    }

    /// All submissions of the loud tenant are to one approver.
    fn loud(&self, length: Duration) -> Result<Loud, Failure> {
        let (accepted, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        keep_in_flight(self.args.loud_in_flight, length, async |_| {
            let (key, approver) = (&self.gateway.enforcer_key, messages::approver(0));
            let mut submission = Submission::new(key, &messages::enforcer(0), &approver, self.args.bytes);
            let mut connection = KeepAlive::open(self.gateway.address).await?;
            let (next, address) = (Arc::clone(&self.next), self.gateway.address);
            let (accepted, refused) = (Arc::clone(&accepted), Arc::clone(&refused));
            Ok(async move || {
                let request = submission.with_number(next.fetch_add(1, Ordering::Relaxed));
                if submit(&mut connection, address, request).await? {
                    accepted.fetch_add(1, Ordering::Relaxed);
                } else {
                    refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Ok(())
            })
        })?;
        Ok(Loud { accepted: accepted.load(Ordering::Relaxed), refused: refused.load(Ordering::Relaxed) })
    }

    async fn caller(
        &self,
        key: &str,
        approver: &str,
    ) -> Result<impl AsyncFnMut() -> Result<(), Failure> + use<>, Failure> {
        let mut submission = Submission::new(key, &messages::enforcer(0), approver, self.args.bytes);
        let mut connection = KeepAlive::open(self.gateway.address).await?;
        let next = Arc::clone(&self.next);
        Ok(async move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            connection.call_successfully(submission.with_number(number)).await?;
            Ok(())
        })
    }
}

/// Whether a submission of the loud tenant was accepted: 503 is what it may get instead, and nothing else.
async fn submit(connection: &mut KeepAlive, address: SocketAddr, request: &[u8]) -> Result<bool, Failure> {
    let response = connection.call(request).await?;
    match response.status {
        200..=299 => Ok(true),
        503 => {
            *connection = KeepAlive::open(address).await?;
            Ok(false)
        }
        status => Err(format!("{status}: {}", String::from_utf8_lossy(response.body)).into()),
    }
}
