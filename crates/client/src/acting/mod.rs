//! Acting on an approval, at most once for each use.

mod open;

pub mod finish;
mod share;

pub mod authorize;

pub mod again;
mod edit;
pub mod waiting;

pub mod bring;
