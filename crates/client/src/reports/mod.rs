//! What an enforcer tells others: what a session is doing, what became of a decision, and the proof of it all.

pub mod session;

pub mod receipt;

pub mod bundle;
