//! A tenant that submits at its share of what the gateway carries, alone and beside one at ten times that through one
//! mailbox.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde::Serialize;

use crate::{
    Failure,
    args::NeighboursArgs,
    clients::{
        callers::{keep_in_flight, keep_pace},
        keep_alive::KeepAlive,
        messages,
        template::{Submission, submitter},
    },
    cpu::to_f64,
    figures::Ratio,
    report, report_progress,
    rounds::{self, Rounds, Sample},
    servers::{
        gateway::{self, Gateway},
        on_postgres::OnPostgres,
    },
};

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

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The quiet tenant's submissions a second, beside the loud one divided by alone.
    #[serde(flatten)]
    ratio: Ratio,
    /// The quiet tenant's p99, beside the loud one divided by alone.
    ratio_of_p99: f64,
    ratio_of_p99_of_each_round: Vec<f64>,
    /// Submissions a second that the gateway carried before the first round.
    capacity: u64,
    /// Submissions a second that the quiet tenant sends.
    rate: u64,
    #[serde(flatten)]
    args: NeighboursArgs,
    #[serde(flatten)]
    rounds: Rounds,
}

pub(crate) fn run(args: &NeighboursArgs) -> Result<Report, Failure> {
    let on = OnPostgres::start(&args.gateway)?;
    let gateway = on.gateway()?;
    let [quiet_key, _] = gateway::keys(&on.program, on.folder.path(), QUIET_TENANT)?;
    let servers = on.servers(std::slice::from_ref(&gateway));
    let bench = Bench { args, gateway: &gateway, quiet_key, servers, next: Arc::default() };
    let capacity = bench.capacity()?;
    let rate = (capacity / SHARES).max(1);
    report_progress(&format!("the gateway carries {capacity} submissions a second; a share is {rate}"));
    let rounds = rounds::measure(args.timing.rounds, &[ALONE, BESIDE], |arm| bench.measure(arm, rate))?;
    let of_p99 = rounds.ratio(BESIDE, ALONE, |stretch| stretch.latency.p99_ms);
    Ok(Report {
        ratio: rounds.ratio(BESIDE, ALONE, |stretch| stretch.per_second),
        ratio_of_p99: of_p99.median,
        ratio_of_p99_of_each_round: of_p99.of_each_round,
        capacity,
        rate,
        args: args.clone(),
        rounds,
    })
}

struct Bench<'a> {
    args: &'a NeighboursArgs,
    gateway: &'a Gateway,
    quiet_key: String,
    servers: Vec<(&'static str, u32)>,
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    /// Submissions a second that the gateway carries for one tenant with many mailboxes, after a warm-up of the same length.
    fn capacity(&self) -> Result<u64, Failure> {
        let key = &self.gateway.enforcer_key;
        let carry = || keep_in_flight(TRIAL_IN_FLIGHT, TRIAL, async |caller| self.caller(key, caller).await);
        carry()?;
        Ok(carry()?.count / TRIAL.as_secs())
    }

    fn measure(&self, arm: &'static str, rate: u64) -> Result<Sample, Failure> {
        let length = self.args.timing.length();
        let key = &self.quiet_key;
        let quiet = || keep_pace(QUIET_CALLERS, rate, length, async |caller| self.caller(key, caller).await);
        let mut loud = [0, 0];
        let mut sample = Sample::measure(&self.servers, || match arm {
            ALONE => quiet(),
            _ => thread::scope(|scope| {
                let beside = scope.spawn(|| self.loud(length));
                let quiet = quiet()?;
                loud = beside.join().map_err(|_| "the loud tenant panicked")??;
                Ok(quiet)
            }),
        })?;
        let [accepted, refused] = loud.map(|count| to_f64(count) / sample.completed.elapsed.as_secs_f64());
        sample.figures.extend([
            ("offered/s", to_f64(rate)),
            ("loud/s", accepted),
            ("loud refused/s", refused),
        ]);
        Ok(sample)
    }

    /// All submissions of the loud tenant are to one approver. Returns how many were accepted, and how many refused.
    fn loud(&self, length: Duration) -> Result<[u64; 2], Failure> {
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
        Ok([accepted, refused].map(|count| count.load(Ordering::Relaxed)))
    }

    async fn caller(
        &self,
        key: &str,
        caller: u64,
    ) -> Result<impl AsyncFnMut() -> Result<(), Failure> + use<>, Failure> {
        let approver = messages::approver(caller);
        let submission = Submission::new(key, &messages::enforcer(0), &approver, self.args.bytes);
        submitter(self.gateway.address, submission, &self.next).await
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

impl report::Report for Report {
    fn table(&self) -> String {
        let mut lines = self.rounds.table("quiet/s");
        lines.extend(self.rounds.plot("p99 of the quiet tenant in ms", |stretch| stretch.latency.p99_ms));
        let loud = |figure| self.rounds.median(BESIDE, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "\nratio of throughput {:.2} (goal: at least 0.8), of p99 {:.2} (goal: at most 2)\n\
             the gateway carries {} submissions a second; the quiet tenant sends {} a second, the loud one has {} in flight \
             to one approver, of which {:.0} a second are accepted and {:.0} answered with 503; {} rounds of {} s that count",
            self.ratio.median,
            self.ratio_of_p99,
            self.capacity,
            self.rate,
            self.args.loud_in_flight,
            loud("loud/s"),
            loud("loud refused/s"),
            self.rounds.counted,
            self.args.timing.seconds
        ));
        lines.join("\n")
    }
}
