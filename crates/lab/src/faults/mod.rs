//! Faults on purpose: what clients did and saw while they happened, and whether every promise was kept.

pub(crate) mod checker;
pub(crate) mod history;
pub(crate) mod timeline;
pub(crate) mod workload;
