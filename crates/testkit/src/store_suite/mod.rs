//! What every store must do, as one table of cases.
//!
//! A store's `tests/conformance.rs` implements [`StoreHarness`] and calls [`run`]; that is all it has to say.

// In test builds Clippy does not mind them.
#![cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "the fixtures are the words of every case"))]

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
mod tenants;

use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;
use countersign_core::store::Store;
use countersign_wire::timestamp::Timestamp;

pub use run::run;

/// Where the clock of a new [`StoreHarness`] stands.
pub const START: &str = "2026-11-15T12:00:00Z";

/// [`START`] as a point in time.
pub fn start() -> Timestamp {
    START.parse().expect("START is a point in time")
}

/// A store under test: one empty database, its handles and its clock.
#[async_trait]
pub trait StoreHarness: Send + Sync + 'static {
    /// The first handle.
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same data, as another node of a cluster would have it: own connections, own
    /// writers.
    async fn second_handle(&self) -> Arc<dyn Store>;

    /// Closes every handle and opens the data anew, as after a restart. Nobody uses a handle from before
    /// any more; the clock stays where it was.
    async fn reopen(&mut self);

    /// Moves the store's clock, which stands still otherwise.
    async fn set_now(&self, now: Timestamp);

    /// How many random commands the model plays on this store.
    fn model_steps(&self) -> usize {
        20_000
    }
}

/// Makes an empty database whose clock stands at [`START`].
pub type MakeHarness = fn() -> Pin<Box<dyn Future<Output = Box<dyn StoreHarness>> + Send>>;

/// A case under way.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One claim about stores.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The claim.
    pub name: &'static str,
    /// Panics where the claim does not hold.
    pub run: fn(Box<dyn StoreHarness>) -> Run,
}

/// Turns the async fns of a file into its table: one that is not in the list is dead code, and so told.
macro_rules! cases {
    ($($name:ident,)+) => {
        pub(super) const CASES: &[super::Case] = &[
            $(super::Case { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}
use cases;

/// Every case, by subject.
pub const SUBJECTS: &[(&str, &[Case])] = &[
    ("records", records::CASES),
    ("guards", guards::CASES),
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
