//! What every store must do, as one table of cases.
//!
//! A store's `tests/conformance.rs` implements [`StoreHarness`] and calls [`run()`], or [`run_also_sharded`]; it needs
//! nothing else.

// Clippy does not report them in test builds.
#![cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "every case uses the fixtures"))]

mod batching;
mod case;
mod clock;
mod due;
mod exactness;
mod fixtures;
mod guards;
mod handles;
mod harness;
mod marks;
mod noted;
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
mod whole_tenants;

pub(crate) use case::cases;
pub use case::{Case, Run};
pub use harness::{MakeHarness, MakeHarnesses, START, StoreHarness, start};
pub use run::{run, run_also_relocating, run_also_sharded};
