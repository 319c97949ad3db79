//! Every endpoint of the protocol over HTTP, each with its success and each named error, on both stores
//! and on three nodes that share two shards.
//!
//! Run with `cargo test -p countersign-server --test api`: one gateway, or one cluster, serves all cases of a store, and at the
//! end every status that the OpenAPI document names must have been seen.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod acks;
mod artifacts;
mod case;
mod coverage;
mod decisions;
mod endings;
mod exchanges;
mod generic;
mod http_semantics;
mod inboxes;
mod invitations;
mod notifications;
mod pairing;
mod pairs;
mod platform;
mod progress;
mod prompts_and_sessions;
mod rotation;
mod sockets;
mod streams;
mod tenants;
mod turns;
mod vouchers;
mod world;

use std::{panic::AssertUnwindSafe, process::ExitCode, sync::Arc};

use case::Case;
use futures_util::FutureExt as _;
use libtest_mimic::{Arguments, Failed, Trial};
use support::process::On;
use world::World;

// CONTRIBUTING: add an endpoint, step 5
const FILES: &[(&str, &[Case])] = &[
    ("acks", acks::CASES),
    ("artifacts", artifacts::CASES),
    ("decisions", decisions::CASES),
    ("endings", endings::CASES),
    ("exchanges", exchanges::CASES),
    ("generic", generic::CASES),
    ("inboxes", inboxes::CASES),
    ("http_semantics", http_semantics::CASES),
    ("invitations", invitations::CASES),
    ("notifications", notifications::CASES),
    ("pairing", pairing::CASES),
    ("pairs", pairs::CASES),
    ("platform", platform::CASES),
    ("progress", progress::CASES),
    ("prompts_and_sessions", prompts_and_sessions::CASES),
    ("rotation", rotation::CASES),
    ("sockets", sockets::CASES),
    ("streams", streams::CASES),
    ("tenants", tenants::CASES),
    ("turns", turns::CASES),
    ("vouchers", vouchers::CASES),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());
    let everything = !arguments.list && arguments.filter.is_none() && arguments.skip.is_empty();
    let mut trials = Vec::new();
    let mut worlds = Vec::new();
    // CONTRIBUTING: add a store, step 5
    for (store, on) in
        [("sqlite", On::Sqlite), ("postgres", On::Postgres), ("postgres shards+nats", On::Cluster)]
    {
        let world = Arc::new(std::sync::OnceLock::new());
        worlds.push(Arc::clone(&world));
        for (file, cases) in FILES {
            for case in *cases {
                let (runtime, world) = (Arc::clone(&runtime), Arc::clone(&world));
                trials.push(Trial::test(format!("{store}::{file}::{}", case.name), move || {
                    let world = Arc::clone(world.get_or_init(|| Arc::new(World::new(on))));
                    let run = AssertUnwindSafe((case.run)(world)).catch_unwind();
                    runtime.block_on(run).map_err(|panic| Failed::from(said(&*panic)))
                }));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let worlds: Vec<Arc<World>> = worlds.iter().filter_map(|world| world.get().cloned()).collect();
    let covered = !everything || coverage::check(&worlds);
    if conclusion.has_failed() || !covered { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
