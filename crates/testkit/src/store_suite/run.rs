//! Runs the table as a test binary that `cargo test` and `cargo nextest` understand.

use std::{process::ExitCode, time::Duration};

use countersign_store_sharded::Options;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{runtime, time::timeout};

use super::{
    Case, MakeHarness, MakeHarnesses, batching, clock, due, exactness, guards, handles, marks, noted,
    numbering, paging, payloads, records, removals, reopening, scan, seen, tenants, whole_tenants,
};
use crate::{
    gateway_suite,
    sharded::{self, ShardedHarness},
};

/// Every case on a bare store, by subject.
const SUBJECTS: &[(&str, &[Case])] = &[
    ("records", records::CASES),
    ("guards", guards::CASES),
    ("seen", seen::CASES),
    ("payloads", payloads::CASES),
    ("numbering", numbering::CASES),
    ("paging", paging::CASES),
    ("removals", removals::CASES),
    ("marks", marks::CASES),
    ("due", due::CASES),
    ("scan", scan::CASES),
    ("clock", clock::CASES),
    ("handles", handles::CASES),
    ("batching", batching::CASES),
    ("reopening", reopening::CASES),
    ("tenants", tenants::CASES),
    ("whole_tenants", whole_tenants::CASES),
    ("noted", noted::CASES),
    ("exactness", exactness::CASES),
];

/// The timeout of a case. `SUITE_PATIENCE` overrides it, in seconds, for long runs by hand.
fn case_timeout() -> Duration {
    let seconds = std::env::var("SUITE_PATIENCE").ok();
    seconds.map_or(Duration::from_mins(4), |seconds| {
        Duration::from_secs(seconds.parse().expect("SUITE_PATIENCE is a number of seconds"))
    })
}

/// Runs every case, each on its own empty database. This is the `main` of a store's conformance test:
/// in its manifest the test has `harness = false`.
#[must_use]
pub fn run(make: MakeHarness) -> ExitCode {
    conclude(on_one(make))
}

/// As [`run`]; once more on two databases behind one store, and then with one of them failing.
#[must_use]
pub fn run_also_sharded(make: MakeHarness, make_two: MakeHarnesses) -> ExitCode {
    conclude(trials_also_sharded(make, make_two))
}

fn trials_also_sharded(make: MakeHarness, make_two: MakeHarnesses) -> impl Iterator<Item = Trial> {
    let on_two = all_cases().map(move |(name, case)| {
        trial(format!("sharded::{name}"), move || async move {
            (case.run)(Box::new(ShardedHarness::new(make_two().await, Options::default()).await)).await;
        })
    });
    let partial = sharded::CASES.iter().map(move |case| {
        trial(format!("shards::{}", case.name), move || async move {
            (case.run)(ShardedHarness::new(make_two().await, Options::default()).await).await;
        })
    });
    on_one(make).chain(on_two).chain(partial)
}

/// As [`run_also_sharded`]; and then tenants are moved between the two databases.
#[must_use]
pub fn run_also_relocating(make: MakeHarness, make_two: MakeHarnesses) -> ExitCode {
    let relocating = sharded::MOVES.iter().map(move |case| {
        trial(format!("moves::{}", case.name), move || async move {
            (case.run)(ShardedHarness::new(make_two().await, sharded::OPTIONS).await).await;
        })
    });
    conclude(trials_also_sharded(make, make_two).chain(relocating))
}

fn conclude(trials: impl Iterator<Item = Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn on_one(make: MakeHarness) -> impl Iterator<Item = Trial> {
    all_cases().map(move |(name, case)| trial(name, move || async move { (case.run)(make().await).await }))
}

fn all_cases() -> impl Iterator<Item = (String, &'static Case)> {
    let subjects = SUBJECTS.iter().chain(gateway_suite::SUBJECTS);
    subjects.flat_map(|(subject, cases)| {
        cases.iter().map(move |case| (format!("{subject}::{}", case.name), case))
    })
}

fn trial<F: Future<Output = ()>>(name: String, case: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let finished = runtime.block_on(async { timeout(case_timeout(), case()).await });
        // Otherwise a thread that hangs with the case would block the report of the timeout.
        runtime.shutdown_background();
        finished.map_err(|_| Failed::from(format!("timed out after {} s", case_timeout().as_secs())))
    })
}
