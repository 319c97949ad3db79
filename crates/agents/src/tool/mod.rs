//! What every part of the tool uses.
//!
//! | to find | look in |
//! |---|---|
//! | exit codes and messages; what the gateway answered, in words | [`exit`], [`gateway_error`] |
//! | something that is not as it should be | [`finding`] |
//! | accounts of the system | [`account`] |
//! | whoever wants to act, and the files as it sees them | [`caller`], [`files`] |
//! | stdout and stderr; the controlling terminal; times | [`output`], [`terminal`], [`moment`] |
//! | profiles on this machine, and what calls of one process share of them | [`home`], [`shared`] |

pub mod account;
pub mod caller;
pub mod exit;
pub mod files;
pub mod finding;
pub mod moment;

pub mod gateway_error;
pub mod output;
pub mod terminal;

pub mod shared;

pub mod home;

#[cfg(test)]
mod platform;
