//! The suite of all doorbells, over a private NATS server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{process::ExitCode, sync::Arc};

use countersign_core::notify::Doorbell;
use countersign_doorbell_nats::{NatsDoorbell, Options};
use countersign_testkit::{
    doorbell_suite::{self, DoorbellHarness},
    nats::Nats,
    random::TestRandom,
};
use countersign_wire::mac::MacKey;

/// Each node has a doorbell of its own, as each process has.
struct NatsHarness(Nats);

impl DoorbellHarness for NatsHarness {
    fn doorbell(&self) -> Arc<dyn Doorbell> {
        let key = MacKey::new([7; 32]);
        Arc::new(NatsDoorbell::open(Options::new([self.0.url()]), key, Arc::new(TestRandom)).unwrap())
    }

    fn is_between_processes(&self) -> bool {
        true
    }
}

fn main() -> ExitCode {
    doorbell_suite::run(|| Box::new(NatsHarness(Nats::start())))
}
