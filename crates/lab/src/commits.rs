//! Commits with batching and without it: who takes part, and in which order they take turns.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use countersign_core::store::Store;
use countersign_store_postgres::PostgresStore;
use countersign_store_sqlite::SqliteStore;
use countersign_testkit::postgres::Postgres;
use serde::Serialize;
use tempfile::TempDir;

use crate::{
    CommitsArgs, Failure,
    cpu::{Shares, Ticks, to_f64},
    load::{self, Committed, Until},
    tell,
    workload::{Requests, Workload},
};

/// Without batching a server is kept busy by more connections, so that is a baseline too.
const MANY_WRITERS: usize = 8;

/// How many times the requests that were submitted in a stretch can be decided in one of the same length.
const DECISIONS_FOR_EACH_SUBMISSION: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Batching {
    On,
    /// With as many writers as with batching.
    Off,
    /// With [`MANY_WRITERS`].
    OffManyWriters,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Submit => "submit",
            Self::Decide => "decide",
        })
    }
}

/// One variant's turn in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) store: Kept,
    pub(crate) workload: Workload,
    pub(crate) batching: Batching,
    pub(crate) writers: usize,
    pub(crate) seconds: f64,
    pub(crate) commits: u64,
    pub(crate) commits_per_second: f64,
    pub(crate) cpu: Shares,
    /// How long each commit took, ascending.
    #[serde(skip)]
    pub(crate) latencies: Vec<Duration>,
}

/// A store that is opened in one way.
struct Variant {
    batching: Batching,
    writers: usize,
    store: Arc<dyn Store>,
}

/// One set of data, opened in several ways: so all variants meet tables of the same size.
struct Contest {
    kept: Kept,
    /// The first has batching on.
    variants: Vec<Variant>,
    requests: Arc<Requests>,
}

/// Runs every round on new data.
pub(crate) fn run(args: &CommitsArgs) -> Result<Vec<Stretch>, Failure> {
    tell("starting a private PostgreSQL");
    // Both outlive the runtime, and so all connections.
    let (folder, postgres) = (TempDir::new()?, Postgres::start());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(rounds(args, folder.path(), &postgres))
}

async fn rounds(args: &CommitsArgs, folder: &Path, postgres: &Postgres) -> Result<Vec<Stretch>, Failure> {
    let contests = [
        Contest::new(Kept::Sqlite, args, sqlite(&folder.join("bench.sqlite"))?).await?,
        Contest::new(Kept::Postgres, args, postgres_stores(&postgres.url()).await?).await?,
    ];
    let mut stretches = Vec::new();
    for round in 1..=args.rounds {
        for workload in [Workload::Submit, Workload::Decide] {
            for contest in &contests {
                for variant in &contest.variants {
                    let stretch = contest.turn(args, round, workload, variant, postgres.pid()).await?;
                    let Stretch { store, commits_per_second, cpu, .. } = &stretch;
                    tell(&format!(
                        "round {round} of {}: {store:8} {workload} batching {:14} {commits_per_second:7.0}/s, \
                         foreign CPU {:2.0} %",
                        args.rounds,
                        variant.name(),
                        cpu.foreign * 100.0
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

impl Contest {
    async fn new(kept: Kept, args: &CommitsArgs, variants: Vec<Variant>) -> Result<Self, Failure> {
        let [first, ..] = &variants[..] else { return Err("a contest without variants".into()) };
        let began = first.store.now().await?;
        let requests = Arc::new(Requests::new(args.approvers, args.enforcers, began)?);
        // Connections and statements are made by the first changes; nobody wants to time that.
        for variant in &variants {
            let enough = Until::Undecided(requests.undecided_count() + args.in_flight.max(256));
            load::stretch(&variant.store, &requests, Workload::Submit, args.in_flight, enough).await?;
        }
        Ok(Self { kept, variants, requests })
    }

    async fn turn(
        &self,
        args: &CommitsArgs,
        round: u64,
        workload: Workload,
        variant: &Variant,
        postmaster: u32,
    ) -> Result<Stretch, Failure> {
        let before = Ticks::read(&[postmaster])?;
        let length = Until::Elapsed(Duration::from_secs(args.seconds));
        let Committed { elapsed, latencies } =
            load::stretch(&variant.store, &self.requests, workload, args.in_flight, length).await?;
        let cpu = Ticks::read(&[postmaster])?.since(before);
        let commits = latencies.len() as u64;
        if workload == Workload::Submit && variant.batching == Batching::On {
            self.prepare_decisions(args, commits * DECISIONS_FOR_EACH_SUBMISSION).await?;
        }
        Ok(Stretch {
            round,
            store: self.kept,
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

    /// Submits, untimed, until there is enough to decide.
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
