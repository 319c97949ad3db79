//! The architecture, kept by tests: which crate may depend on which, and which module on which.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod callers_files;
mod crates;
mod modules;
mod names;
mod platforms;
mod program;
