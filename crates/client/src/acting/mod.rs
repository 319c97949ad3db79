//! Acting on an approval, at most once for each use.

pub mod finish;

pub mod authorize;

pub mod waiting;
