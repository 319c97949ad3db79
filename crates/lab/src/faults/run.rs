//! One run: the cluster is started, clients work, faults happen, all is healed, and what clients saw is checked.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;

use super::{
    args::FaultsArgs,
    checker,
    history::{Counts, History, Recorder},
    inject,
    moves::Moves,
    programs::Programs,
    recovery,
    report::{Report, Rolling},
    rig::{self, Arrangement, Keys, NODES, Rig, Trust},
    rolling,
    schedule::{self, Fault, Plan, Planned},
    timeline,
    workload::{Setup, TenantKeys, Workload},
};
use crate::{Failure, report_progress};

/// The last one is of people who are notified outside of the protocol.
const TENANTS: usize = 6;

/// Disks have room for their servers' files, and for what the clients write.
const DISK_MEBIBYTES: u64 = 512;
const DISK_MEBIBYTES_PER_SECOND: u64 = 1;

/// How long a failover is expected to take. Patroni notices after 20 s.
const FAILOVER_LENGTH: Duration = Duration::from_secs(6);
const PATRONI_FAILOVER_LENGTH: Duration = Duration::from_secs(35);

/// Without `--failovers`, one for each of so many seconds.
const SECONDS_PER_FAILOVER: u64 = 90;

const NO_CLOCK: &str = "moving the clock of a node: install Debian's package faketime";
const NO_DISK: &str = "a full disk: only root can mount a disk that can be filled";

/// What happened during a run, apart from the history.
struct Ran {
    schedule: Vec<Planned>,
    rolling: Option<Rolling>,
    counts: Counts,
    nodes: Vec<String>,
    node_starts: u64,
    resyncs: BTreeMap<&'static str, u64>,
    left_out: Vec<&'static str>,
}

pub(crate) fn run(args: &FaultsArgs) -> Result<Report, Failure> {
    rig::in_own_mounts()?;
    let trust = args.tls.then(Trust::in_own_authority).transpose()?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => draw_seed()?,
    };
    report_progress(&format!("seed {seed}"));
    let folder = Folder::new(args.keep.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let ran = match runtime.block_on(run_cluster(args, seed, trust, folder.path())) {
        Ok(ran) => ran,
        Err(error) => return Err(format!("{error}; logs are in {}", folder.keep().display()).into()),
    };
    let history = History::read(&folder.path().join("history.jsonl"))?;
    let violations = checker::check(&history);
    timeline::write(&history, &violations, &folder.path().join("timeline.html"))?;
    let Ran { schedule, mut rolling, counts, nodes, node_starts, resyncs, left_out } = ran;
    if let Some(rolling) = &mut rolling {
        rolling::count(rolling, &history);
    }
    let failovers = schedule.iter().filter(|planned| planned.fault == Fault::Failover).count();
    let mut report = Report {
        seed,
        seconds: args.seconds,
        arrangement: if args.patroni { "patroni" } else { "pair" },
        tls: args.tls,
        faults: history.faults.len(),
        failovers,
        acknowledged: counts.acknowledged(),
        counts,
        recovery: recovery::of(&history, &nodes),
        notified: checker::notified::count(&history),
        violations,
        node_starts,
        moves: args.moves,
        resyncs,
        rolling,
        left_out,
        folder: None,
    };
    report.folder = if report.is_bad() { Some(folder.keep()) } else { folder.kept() };
    Ok(report)
}

async fn run_cluster(
    args: &FaultsArgs,
    seed: u64,
    trust: Option<Trust>,
    folder: &Path,
) -> Result<Ran, Failure> {
    let programs = Programs::find(args)?;
    let disk_mebibytes = DISK_MEBIBYTES + args.seconds * DISK_MEBIBYTES_PER_SECOND;
    let balances = args.rolling.is_some();
    let with_shards = args.moves > 0;
    let arrangement = Arrangement { with_patroni: args.patroni, disk_mebibytes, balances, with_shards };
    let rig = Arc::new(Rig::start(&programs.first, arrangement, trust, folder).await?);
    let recorder = Recorder::create(&folder.join("history.jsonl"))?;
    let mut workload = Workload::start(setup(args, seed, &rig, &programs)?, recorder.clone());
    workload.ready().await?;
    let left_out = left_out(&rig);
    for left_out in &left_out {
        report_progress(&format!("LEFT OUT: {left_out}"));
    }
    let (mut schedule, mut rolled) = (Vec::new(), None);
    if let Some(rounds) = args.rolling {
        rolled = Some(rolling::restart(&rig, rounds, &programs.node).await?);
    } else {
        schedule = schedule::make(&plan(args, seed, &rig));
        for Planned { at, length, fault } in &schedule {
            let (at, length) = (at.as_secs_f64(), length.as_secs_f64());
            report_progress(&format!("planned: {at:6.1} s for {length:4.1} s  {fault}"));
        }
        let moves = tokio::spawn(moves(args, &rig, &programs).run());
        inject::run(&rig, &schedule, Duration::from_secs(args.seconds), &recorder).await?;
        moves.await??;
    }
    report_progress("all is healed; the quiet phase begins");
    workload.settle().await?;
    recorder.finish()?;
    let node_starts = (0..NODES).map(|node| rig.node(node).starts()).sum();
    let resyncs = rig.database.lock().await.resyncs();
    let (counts, nodes) = (recorder.counts(), rig.urls());
    Ok(Ran { schedule, rolling: rolled, counts, nodes, node_starts, resyncs, left_out })
}

fn moves(args: &FaultsArgs, rig: &Rig, programs: &Programs) -> Moves {
    let tenants = (0..TENANTS).map(tenant).collect();
    let (commands, config) = (programs.commands.clone(), rig.config().to_owned());
    Moves { commands, config, tenants, count: args.moves }
}

fn tenant(number: usize) -> String {
    format!("tenant-{number}")
}

fn plan(args: &FaultsArgs, seed: u64, rig: &Rig) -> Plan {
    Plan {
        seed,
        length: Duration::from_secs(args.seconds),
        failovers: args.failovers.unwrap_or((args.seconds / SECONDS_PER_FAILOVER).max(1)),
        failover_length: if args.patroni { PATRONI_FAILOVER_LENGTH } else { FAILOVER_LENGTH },
        with_clock: rig.can_move_clock(),
        with_disk: rig.can_fill_disk(),
    }
}

fn left_out(rig: &Rig) -> Vec<&'static str> {
    let possible = [(rig.can_move_clock(), NO_CLOCK), (rig.can_fill_disk(), NO_DISK)];
    possible.into_iter().filter(|(possible, _)| !possible).map(|(_, text)| text).collect()
}

fn setup(args: &FaultsArgs, seed: u64, rig: &Rig, programs: &Programs) -> Result<Setup, Failure> {
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        let tenant = tenant(number);
        let Keys { operator, enforcer, approver } = Keys::create(&programs.commands, rig.config(), &tenant)?;
        tenants.push(TenantKeys {
            tenant,
            operator_key: operator,
            enforcer_key: enforcer,
            approver_key: approver,
        });
    }
    let (enforcers, approvers) = (usize::try_from(args.enforcers)?, usize::try_from(args.approvers)?);
    let is_steady = args.rolling.is_some();
    let tls = rig.tls_client()?;
    Ok(Setup { nodes: rig.urls(), tls, tenants, enforcers, approvers, seed, is_steady })
}

fn draw_seed() -> Result<u64, Failure> {
    let mut bytes = [0; 4];
    #[expect(clippy::disallowed_methods, reason = "a run without a seed draws one and prints it")]
    getrandom::fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

/// Where a run writes.
enum Folder {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    fn new(given: Option<&Path>) -> Result<Self, Failure> {
        let Some(given) = given else {
            return Ok(Self::Temporary(TempDir::with_prefix("countersign-faults-history-")?));
        };
        fs::create_dir_all(given)?;
        if fs::read_dir(given)?.next().is_some() {
            return Err(format!("{} is not empty", given.display()).into());
        }
        Ok(Self::Given(given.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    /// Where it is if it stays.
    fn kept(self) -> Option<PathBuf> {
        match self {
            Self::Given(path) => Some(path),
            Self::Temporary(_) => None,
        }
    }

    fn keep(self) -> PathBuf {
        match self {
            Self::Given(path) => path,
            Self::Temporary(folder) => folder.keep(),
        }
    }
}
