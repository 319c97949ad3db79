//! Expiries on one node and on two, compared with decisions on the same PostgreSQL with a synchronous standby.

mod cluster;
mod report;

use std::{collections::BTreeMap, sync::Arc};

use countersign_testkit::postgres::Postgres;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::ExpiriesArgs,
    cpu::Meter,
    figures::milliseconds,
    load::{self, Until},
    report_progress,
    rounds::{Completed, Sample, Stretch},
    stopwatch::Stopwatch,
    workload::{Requests, Workload},
};

use cluster::{Cluster, Lapsed};
use report::{DECISIONS, Fairness, ON_ONE_NODE, ON_TWO_NODES, Report};

/// Records that another tenant has to delete while one tenant has a backlog.
const QUIET_RECORDS: u64 = 200;

/// Mailboxes of the decisions, as in `bench commits`.
const DECISION_MAILBOXES: (u64, u64) = (50, 20);

pub(crate) fn run(args: &ExpiriesArgs) -> Result<Report, Failure> {
    report_progress("starting a private PostgreSQL and its standby");
    // They outlive the runtime and its connections.
    let primary = Postgres::start();
    let standby = primary.start_standby();
    Runtime::new()?.block_on(async {
        let cluster = Cluster::open(&primary, args).await?;
        let mut bench =
            Bench::new(args, cluster, [("primary", primary.pid()), ("standby", standby.pid())]).await?;
        for round in 1..=args.timing.rounds {
            bench.round(round).await?;
        }
        let fairness = bench.fairness().await?;
        Ok(Report::new(args, bench.stretches, fairness))
    })
}

/// The processes to meter, by name.
type Servers = [(&'static str, u32); 2];

struct Bench<'a> {
    args: &'a ExpiriesArgs,
    cluster: Cluster,
    decisions: Arc<Requests>,
    servers: Servers,
    stretches: Vec<Stretch>,
}

impl<'a> Bench<'a> {
    async fn new(args: &'a ExpiriesArgs, cluster: Cluster, servers: Servers) -> Result<Self, Failure> {
        let (approvers, enforcers) = DECISION_MAILBOXES;
        let decisions = Arc::new(Requests::new(approvers, enforcers, cluster.now().await?)?);
        let mut bench = Self { args, cluster, decisions, servers, stretches: Vec::new() };
        // The first changes open connections and prepare statements, which must not be timed.
        bench.expire(0, ON_TWO_NODES, 500).await?;
        bench.decide(0).await?;
        bench.stretches.clear();
        Ok(bench)
    }

    async fn round(&mut self, round: u64) -> Result<(), Failure> {
        self.decide(round).await?;
        self.expire(round, ON_ONE_NODE, self.args.exchanges).await?;
        self.decide(round).await?;
        self.expire(round, ON_TWO_NODES, self.args.exchanges).await
    }

    async fn decide(&mut self, round: u64) -> Result<(), Failure> {
        let ExpiriesArgs { timing, in_flight, .. } = *self.args;
        let (store, decisions) = (self.cluster.store(), &self.decisions);
        // More than any machine decides in that time.
        let enough = Until::Undecided(timing.seconds * self.prepared_per_second());
        load::stretch(&store, decisions, Workload::Submit, in_flight, enough).await?;
        let meter = Meter::start(&self.servers)?;
        let length = Until::Elapsed(timing.length());
        let done = load::stretch(&store, decisions, Workload::Decide, in_flight, length).await?;
        self.add(round, DECISIONS, done, meter)
    }

    /// Twice the fastest so far.
    fn prepared_per_second(&self) -> u64 {
        let fastest = self.stretches.iter().map(|stretch| stretch.count / self.args.timing.seconds).max();
        fastest.map_or(10_000, |fastest| fastest.saturating_mul(2).clamp(2_000, 30_000))
    }

    async fn expire(&mut self, round: u64, arm: &'static str, count: u64) -> Result<(), Failure> {
        let nodes = if arm == ON_TWO_NODES { 2 } else { 1 };
        self.cluster.lapse(&Lapsed::in_all_tenants(self.args, count)).await?;
        let (meter, watch) = (Meter::start(&self.servers)?, Stopwatch::start());
        let processed = self.cluster.sweep(nodes).await?;
        let elapsed = watch.elapsed();
        if processed != count {
            return Err(format!("{processed} of {count} lapsed exchanges were processed").into());
        }
        self.cluster.check_each_expired_once().await?;
        self.add(round, arm, Completed { count, elapsed, latencies: Vec::new() }, meter)
    }

    async fn fairness(&mut self) -> Result<Fairness, Failure> {
        let backlog = self.args.exchanges;
        let lapsed = Lapsed::in_one_tenant(self.args, backlog);
        self.cluster.make_due_last(QUIET_RECORDS, &lapsed).await?;
        self.cluster.lapse(&lapsed).await?;
        let watch = Stopwatch::start();
        let (swept, quiet) = tokio::join!(
            async { Ok::<_, Failure>((self.cluster.sweep(2).await?, watch.elapsed())) },
            async {
                self.cluster.wait_until_deleted(QUIET_RECORDS).await?;
                Ok::<_, Failure>(watch.elapsed())
            },
        );
        let ((processed, backlog_took), quiet_took) = (swept?, quiet?);
        if processed != backlog + QUIET_RECORDS {
            return Err(format!("{processed} were processed of {backlog} and {QUIET_RECORDS}").into());
        }
        self.cluster.check_each_expired_once().await?;
        Ok(Fairness {
            backlog,
            quiet_records: QUIET_RECORDS,
            quiet_ms: milliseconds(quiet_took),
            backlog_ms: milliseconds(backlog_took),
        })
    }

    fn add(
        &mut self,
        round: u64,
        arm: &'static str,
        completed: Completed,
        meter: Meter,
    ) -> Result<(), Failure> {
        let sample = Sample { completed, metered: meter.stop()?, figures: BTreeMap::new() };
        self.stretches.push(Stretch::new([round, self.args.timing.rounds], arm, sample));
        Ok(())
    }
}
