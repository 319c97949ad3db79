//! What an enforcer tells others: what a session is doing, what became of a decision, what was answered before, and the proof
//! of it all.

pub mod session;

pub mod receipt;

pub mod bundle;

pub mod history;
