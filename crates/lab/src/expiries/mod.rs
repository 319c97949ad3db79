//! Expiries on one node and on two, compared with decisions on the same PostgreSQL with a synchronous standby.

mod cluster;
mod report;

use std::{sync::Arc, time::Duration};

use countersign_testkit::postgres::Postgres;
use serde::Serialize;

use crate::{
    Failure,
    args::ExpiriesArgs,
    cpu::{CpuUsage, Ticks, to_f64},
    load::{self, Until},
    report_progress,
    stopwatch::Stopwatch,
    workload::{Requests, Workload},
};

use cluster::{Cluster, Lapsed};
pub(crate) use report::Report;

/// Records that another tenant has to delete while one tenant has a backlog.
const QUIET_RECORDS: u64 = 200;

/// Mailboxes of the decisions, as in `bench commits`.
const DECISION_MAILBOXES: (u64, u64) = (50, 20);

/// What is measured in a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    Decisions,
    ExpiriesOnOneNode,
    ExpiriesOnTwoNodes,
}

/// The measurement of one stretch.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) work: Work,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    pub(crate) cpu: CpuUsage,
}

/// A tenant with a backlog, and another one whose records are due after all of that.
#[derive(Debug, Serialize)]
pub(crate) struct Fairness {
    pub(crate) backlog: u64,
    pub(crate) quiet_records: u64,
    /// From the start of the sweep until the other tenant's records were deleted.
    pub(crate) quiet_ms: f64,
    /// Until the backlog was processed too.
    pub(crate) backlog_ms: f64,
}

pub(crate) fn run(args: &ExpiriesArgs) -> Result<Report, Failure> {
    report_progress("starting a private PostgreSQL and its standby");
    // They outlive the runtime and its connections.
    let primary = Postgres::start();
    let standby = primary.start_standby();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = Cluster::open(&primary, args).await?;
        let mut bench = Bench::new(args, cluster, [primary.pid(), standby.pid()]).await?;
        for round in 1..=args.rounds {
            bench.round(round).await?;
        }
        let fairness = bench.fairness().await?;
        Ok(Report::new(args, bench.stretches, fairness))
    })
}

struct Bench<'a> {
    args: &'a ExpiriesArgs,
    cluster: Cluster,
    decisions: Arc<Requests>,
    servers: [u32; 2],
    stretches: Vec<Stretch>,
}

impl<'a> Bench<'a> {
    async fn new(args: &'a ExpiriesArgs, cluster: Cluster, servers: [u32; 2]) -> Result<Self, Failure> {
        let (approvers, enforcers) = DECISION_MAILBOXES;
        let decisions = Arc::new(Requests::new(approvers, enforcers, cluster.now().await?)?);
        let mut bench = Self { args, cluster, decisions, servers, stretches: Vec::new() };
        // The first changes open connections and prepare statements, which must not be timed.
        bench.expire(0, Work::ExpiriesOnTwoNodes, 500).await?;
        bench.decide(0).await?;
        bench.stretches.clear();
        Ok(bench)
    }

    async fn round(&mut self, round: u64) -> Result<(), Failure> {
        self.decide(round).await?;
        self.expire(round, Work::ExpiriesOnOneNode, self.args.exchanges).await?;
        self.decide(round).await?;
        self.expire(round, Work::ExpiriesOnTwoNodes, self.args.exchanges).await
    }

    async fn decide(&mut self, round: u64) -> Result<(), Failure> {
        let ExpiriesArgs { seconds, in_flight, .. } = *self.args;
        let (store, decisions) = (self.cluster.store(), &self.decisions);
        // More than any machine decides in that time.
        let enough = Until::Undecided(seconds * self.prepared_per_second());
        load::stretch(&store, decisions, Workload::Submit, in_flight, enough).await?;
        let before = Ticks::read(&self.servers)?;
        let length = Until::Elapsed(Duration::from_secs(seconds));
        let done = load::stretch(&store, decisions, Workload::Decide, in_flight, length).await?;
        self.add(round, Work::Decisions, done.latencies.len() as u64, done.elapsed, before)
    }

    /// Twice the fastest so far.
    fn prepared_per_second(&self) -> u64 {
        let fastest = self.stretches.iter().map(|stretch| stretch.count / self.args.seconds).max();
        fastest.map_or(10_000, |fastest| fastest.saturating_mul(2).clamp(2_000, 30_000))
    }

    async fn expire(&mut self, round: u64, work: Work, count: u64) -> Result<(), Failure> {
        let nodes = if work == Work::ExpiriesOnTwoNodes { 2 } else { 1 };
        self.cluster.lapse(&Lapsed::in_all_tenants(self.args, count)).await?;
        let before = Ticks::read(&self.servers)?;
        let watch = Stopwatch::start();
        let processed = self.cluster.sweep(nodes).await?;
        let elapsed = watch.elapsed();
        if processed != count {
            return Err(format!("{processed} of {count} lapsed exchanges were processed").into());
        }
        self.cluster.check_each_expired_once().await?;
        self.add(round, work, count, elapsed, before)
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
        let ms = |took: Duration| took.as_secs_f64() * 1_000.0;
        Ok(Fairness {
            backlog,
            quiet_records: QUIET_RECORDS,
            quiet_ms: ms(quiet_took),
            backlog_ms: ms(backlog_took),
        })
    }

    fn add(
        &mut self,
        round: u64,
        work: Work,
        count: u64,
        elapsed: Duration,
        before: Ticks,
    ) -> Result<(), Failure> {
        let cpu = Ticks::read(&self.servers)?.since(before);
        let per_second = to_f64(count) / elapsed.as_secs_f64();
        report_progress(&format!(
            "round {round} of {}: {work:?} {per_second:.0}/s, foreign CPU {:.0} %",
            self.args.rounds,
            cpu.foreign * 100.0
        ));
        let seconds = elapsed.as_secs_f64();
        self.stretches.push(Stretch { round, work, count, seconds, per_second, cpu });
        Ok(())
    }
}
