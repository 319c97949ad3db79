//! What every store must do, as one table of cases.
//!
//! A store's `tests/conformance.rs` implements [`StoreHarness`] and calls [`run()`], or [`run_also_sharded`]; it needs
//! nothing else.

// Clippy does not report them in test builds.
#![cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "every case uses the fixtures"))]

mod batching;
mod clock;
mod due;
mod exactness;
mod fixtures;
mod guards;
mod handles;
mod marks;
mod numbering;
mod paging;
mod payloads;
mod records;
mod removals;
mod reopening;
mod run;
mod scan;
mod seen;
mod tenants;

use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;
use countersign_core::store::Store;
use countersign_wire::timestamp::Timestamp;

pub use run::{run, run_also_sharded};

/// The time of a new [`StoreHarness`]'s clock.
pub const START: &str = "2026-11-15T12:00:00Z";

/// [`START`] as a [`Timestamp`].
pub fn start() -> Timestamp {
    START.parse().expect("START is a point in time")
}

/// A store under test: one empty database, its handles and its clock.
#[async_trait]
pub trait StoreHarness: Send + Sync + 'static {
    /// The handle that most cases use; stays the same until [`StoreHarness::reopen`].
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same data with its own connections and writers, as on another node of a cluster.
    async fn second_handle(&self) -> Arc<dyn Store>;

    /// Closes every handle and reopens the data, as a restart does. Handles from before must not be used
    /// afterwards; the clock keeps its time.
    async fn reopen(&mut self);

    /// Sets the store's clock, which does not advance by itself.
    async fn set_now(&self, now: Timestamp);

    /// How many random commands `gateway_suite::model` runs on this store; fewer for a slow one.
    fn model_steps(&self) -> usize {
        20_000
    }
}

/// Makes an empty database whose clock is at [`START`].
pub type MakeHarness = fn() -> Pin<Box<dyn Future<Output = Box<dyn StoreHarness>> + Send>>;

/// Makes two empty databases whose clocks are at [`START`]. They may be of one server.
pub type MakeHarnesses = fn() -> Pin<Box<dyn Future<Output = [Box<dyn StoreHarness>; 2]> + Send>>;

/// The future of a running case.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One claim about stores, with the code that checks it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The claim, as a function name; the test's name is `<subject>::<name>`.
    pub name: &'static str,
    /// Panics if the store violates the claim.
    pub run: fn(Box<dyn StoreHarness>) -> Run,
}

/// Builds the table of a file's cases. The compiler reports a case that is not listed as dead code.
macro_rules! cases {
    ($($name:ident,)+) => {
        pub(super) const CASES: &[super::Case] = &[
            $(super::Case { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}
use cases;

/// Every case on a bare store, by subject.
pub const SUBJECTS: &[(&str, &[Case])] = &[
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
    ("exactness", exactness::CASES),
];
