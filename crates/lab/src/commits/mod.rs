//! Commits with and without batching: the variants, and the order in which they are measured.

mod report;

use std::{path::Path, sync::Arc};

use countersign_core::store::Store;
use countersign_store_postgres::PostgresStore;
use countersign_store_sqlite::SqliteStore;
use countersign_testkit::postgres::Postgres;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::{CommitsArgs, Engine},
    cpu::{Ticks, to_f64},
    figures::percent,
    load::{self, Until},
    report_progress,
    rounds::Completed,
    workload::{Requests, Workload},
};

use report::{Batching, Report, Stretch};

/// Without batching, more connections keep a server busier, so that is a second baseline.
const MANY_WRITERS: usize = 8;

/// How many requests to prepare for a stretch of decisions, as a multiple of those submitted in a stretch.
const DECISIONS_FOR_EACH_SUBMISSION: u64 = 2;

/// A store, opened with or without batching.
struct Variant {
    batching: Batching,
    writers: usize,
    store: Arc<dyn Store>,
}

/// The variants of one engine. All use the same database, so that their tables have the same size.
struct EngineVariants {
    engine: Engine,
    /// The first one has batching on.
    variants: Vec<Variant>,
    requests: Arc<Requests>,
}

/// Measures every variant in every round, on a new database.
pub(crate) fn run(args: &CommitsArgs) -> Result<Report, Failure> {
    report_progress("starting a private PostgreSQL");
    // Both outlive the runtime and its connections.
    let (folder, postgres) = (TempDir::new()?, Postgres::start());
    let stretches = Runtime::new()?.block_on(rounds(args, folder.path(), &postgres))?;
    Ok(Report::new(args, stretches))
}

async fn rounds(args: &CommitsArgs, folder: &Path, postgres: &Postgres) -> Result<Vec<Stretch>, Failure> {
    let engines = [
        EngineVariants::new(Engine::Sqlite, args, sqlite(&folder.join("bench.sqlite"))?).await?,
        EngineVariants::new(Engine::Postgres, args, postgres_stores(&postgres.url()).await?).await?,
    ];
    let mut stretches = Vec::new();
    for round in 1..=args.timing.rounds {
        for workload in [Workload::Submit, Workload::Decide] {
            for engine in &engines {
                for variant in &engine.variants {
                    let stretch = engine.measure(args, round, workload, variant, postgres.pid()).await?;
                    let Stretch { store, commits_per_second, cpu, .. } = &stretch;
                    report_progress(&format!(
                        "round {round} of {}: {store:8} {workload} batching {:14} {commits_per_second:7.0}/s, \
                         foreign CPU {}",
                        args.timing.rounds,
                        variant.name(),
                        percent(cpu.foreign)
                    ));
                    stretches.push(stretch);
                }
            }
        }
    }
    Ok(stretches)
}

impl Variant {
    fn name(&self) -> String {
        let batching = if self.batching == Batching::On { "on" } else { "off" };
        match self.writers {
            1 => format!("{batching}, 1 writer"),
            writers => format!("{batching}, {writers} writers"),
        }
    }
}

impl EngineVariants {
    async fn new(engine: Engine, args: &CommitsArgs, variants: Vec<Variant>) -> Result<Self, Failure> {
        let [first, ..] = &variants[..] else { return Err("an engine needs variants".into()) };
        let began = first.store.now().await?;
        let requests = Arc::new(Requests::new(args.approvers, args.enforcers, began)?);
        // The first changes open connections and prepare statements, which must not be timed.
        for variant in &variants {
            let enough = Until::Undecided(requests.undecided_count() + args.in_flight.max(256));
            load::stretch(&variant.store, &requests, Workload::Submit, args.in_flight, enough).await?;
        }
        Ok(Self { engine, variants, requests })
    }

    async fn measure(
        &self,
        args: &CommitsArgs,
        round: u64,
        workload: Workload,
        variant: &Variant,
        postmaster: u32,
    ) -> Result<Stretch, Failure> {
        let before = Ticks::read(&[postmaster])?;
        let length = Until::Elapsed(args.timing.length());
        let Completed { count: commits, elapsed, latencies } =
            load::stretch(&variant.store, &self.requests, workload, args.in_flight, length).await?;
        let cpu = Ticks::read(&[postmaster])?.since(before);
        if workload == Workload::Submit && variant.batching == Batching::On {
            self.prepare_decisions(args, commits * DECISIONS_FOR_EACH_SUBMISSION).await?;
        }
        Ok(Stretch {
            round,
            store: self.engine,
            workload,
            batching: variant.batching,
            writers: variant.writers,
            seconds: elapsed.as_secs_f64(),
            commits,
            commits_per_second: to_f64(commits) / elapsed.as_secs_f64(),
            cpu,
            latencies,
        })
    }

    /// Submits, untimed, until `enough` requests can be decided.
    async fn prepare_decisions(&self, args: &CommitsArgs, enough: u64) -> Result<(), Failure> {
        let store = &self.variants[0].store;
        load::stretch(store, &self.requests, Workload::Submit, args.in_flight, Until::Undecided(enough))
            .await?;
        Ok(())
    }
}

fn sqlite(path: &Path) -> Result<Vec<Variant>, Failure> {
    let open = |batching| {
        let options =
            countersign_store_sqlite::Options { batching: batching == Batching::On, ..Default::default() };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, options)?);
        Ok(Variant { batching, writers: 1, store })
    };
    [Batching::On, Batching::Off].into_iter().map(open).collect()
}

async fn postgres_stores(url: &str) -> Result<Vec<Variant>, Failure> {
    let mut variants = Vec::new();
    for batching in [Batching::On, Batching::Off, Batching::OffManyWriters] {
        let mut options = countersign_store_postgres::Options::new(url);
        options.batching = batching == Batching::On;
        if batching == Batching::OffManyWriters {
            options.writers = MANY_WRITERS;
        }
        let writers = options.writers;
        variants.push(Variant { batching, writers, store: Arc::new(PostgresStore::open(options).await?) });
    }
    Ok(variants)
}
