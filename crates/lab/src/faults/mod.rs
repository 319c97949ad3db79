//! Faults on purpose: what clients did and saw while they happened, and whether every promise was kept.
//!
//! | to find | look in |
//! |---|---|
//! | the cluster that faults are done to | `rig/` |
//! | which fault happens when | `schedule.rs` |
//! | how a fault is done and healed | `inject.rs` |
//! | tenants that are moved meanwhile | `moves.rs` |
//! | restarts of one node after the other, without faults | `rolling/` |
//! | the clients | `workload/` |
//! | what they did and saw | `history/` |
//! | which promise was broken | `checker/`, `timeline/` |
//! | how long it took to recover | `recovery.rs` |
//! | the result | `report.rs` |

mod args;
mod inject;
mod moves;
mod programs;
mod recovery;
mod report;
mod rig;
mod rolling;
mod run;
mod schedule;

pub(crate) mod checker;
pub(crate) mod history;
pub(crate) mod timeline;
pub(crate) mod workload;

pub(crate) use args::FaultsArgs;
pub(crate) use run::run;
