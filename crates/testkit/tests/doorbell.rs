//! The suite of all doorbells, within one process.

use std::{process::ExitCode, sync::Arc};

use countersign_core::notify::{Doorbell, LocalDoorbell};
use countersign_testkit::doorbell_suite::{self, DoorbellHarness};

struct LocalHarness(LocalDoorbell);

impl DoorbellHarness for LocalHarness {
    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(self.0.clone())
    }

    fn is_between_processes(&self) -> bool {
        false
    }
}

fn main() -> ExitCode {
    doorbell_suite::run(|| Box::new(LocalHarness(LocalDoorbell::default())))
}
