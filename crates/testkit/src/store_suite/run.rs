//! Runs the table as a test binary that `cargo test` and `cargo nextest` understand.

use std::{process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{runtime, time::timeout};

use super::{Case, MakeHarness, SUBJECTS};
use crate::gateway_suite;

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
        timeout(case_timeout(), async {
            let harness = make().await;
            (case.run)(harness).await;
        })
        .await
    });
    // Otherwise a thread that hangs with the case would block the report of the timeout.
    runtime.shutdown_background();
    finished.map_err(|_| Failed::from(format!("timed out after {} s", case_timeout().as_secs())))
}
