//! Coding agents: what they want to do, told by the programs that host them.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | the hosts that are known | [`host`] |
//! | what an agent wants to do, whatever its host calls it | [`call`] |
//! | the tools of Claude Code and Codex CLI | [`tools`] |
//! | recorded sessions | [`transcript`] |

pub mod call;
pub mod host;

pub mod tools;

pub mod transcript;
