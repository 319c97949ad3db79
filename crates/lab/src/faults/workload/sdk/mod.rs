//! Clients through the client library: profiles in folders, joined and paired, stopped anywhere and started again.

mod approver;
mod enforcer;
mod life;
mod people;

pub(super) use approver::Approver;
pub(super) use enforcer::Enforcer;
pub(super) use life::revive;
pub(super) use people::{People, pair};
