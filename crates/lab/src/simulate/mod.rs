//! Several nodes on one store in memory, with faults, on a clock that stands still: the same seed gives the same run.
//!
//! | to find | look in |
//! |---|---|
//! | time, order, steps | `world.rs`, `random.rs` |
//! | what goes wrong | `plan.rs` |
//! | the database, and a node's way to it | `database.rs`, `store.rs` |
//! | rings and hand-overs between nodes | `doorbell.rs` |
//! | nodes that stop, end and start again | `nodes.rs`, `cluster.rs` |
//! | a connection, and what a node sends on it | `channel.rs`, `outgoing.rs` |
//! | clients | `enforcer.rs`, `approver.rs`, `exchange.rs` |
//! | what must hold | `facts.rs`, `checks.rs` |
//! | many seeds, planted bugs | `seeds.rs`, `report.rs` |

mod approver;
mod args;
mod channel;
mod checks;
mod cluster;
mod database;
mod doorbell;
mod enforcer;
mod exchange;
mod facts;
mod nodes;
mod nonce;
mod outgoing;
mod plan;
mod random;
mod report;
mod run;
mod seeds;
mod store;
mod world;

pub(crate) use args::SimulateArgs;
pub(crate) use report::run;
