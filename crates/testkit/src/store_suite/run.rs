//! Runs the table as a test binary that `cargo test` and `cargo nextest` understand.

use std::{process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{runtime, time::timeout};

use super::{Case, MakeHarness, SUBJECTS};
use crate::gateway_suite;

/// A case that takes this long waits for something that never comes. Long runs by hand set
/// `SUITE_PATIENCE`, in seconds.
fn patience() -> Duration {
    let seconds = std::env::var("SUITE_PATIENCE").ok();
    seconds.map_or(Duration::from_mins(4), |seconds| {
        Duration::from_secs(seconds.parse().expect("SUITE_PATIENCE is a number of seconds"))
    })
}

/// Runs every case, each on an empty database of its own. This is the `main` of a store's conformance test:
/// in its manifest the test has `harness = false`.
#[must_use]
pub fn run(make: MakeHarness) -> ExitCode {
    let subjects = SUBJECTS.iter().chain(gateway_suite::SUBJECTS);
    let trials = subjects.flat_map(|(subject, cases)| {
        cases
            .iter()
            .map(move |case| Trial::test(format!("{subject}::{}", case.name), move || run_case(make, case)))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn run_case(make: MakeHarness, case: &Case) -> Result<(), Failed> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let finished = runtime.block_on(async {
        timeout(patience(), async {
            let harness = make().await;
            (case.run)(harness).await;
        })
        .await
    });
    // A thread that hangs with the case would otherwise keep the verdict from being told.
    runtime.shutdown_background();
    finished.map_err(|_| Failed::from(format!("no end after {} s", patience().as_secs())))
}
