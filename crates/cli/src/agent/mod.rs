//! Coding agents: what they want to do, as the programs that host them say it, and the verdict.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | the hosts that are known | [`host`] |
//! | what an agent wants to do, whatever its host calls it | [`call`], [`event`] |
//! | the tools of Claude Code and Codex CLI; recorded sessions | [`tools`], [`transcript`] |
//! | what people review | [`diff`], [`payload`], [`answers`] |
//! | what a host is answered | [`verdict`], [`hosts`] |
//! | whether somebody is at the desk | [`attended`], [`desk`] |
//! | how a hook was started, and what a failure means | [`settings`] |
//! | a run that the doctor has started, and its last result | [`canary`], [`last_check`] |
//! | the way from an event to a verdict | [`engine`], `turns`, `news` |
//! | the process that the host starts | [`supervisor`] |
//! | the permission tool over MCP | [`mcp`] |

pub mod host;

pub mod call;

pub mod tools;

pub mod transcript;

pub mod event;

pub mod answers;
pub mod diff;
pub mod payload;

pub mod verdict;

pub mod canary;

pub mod hosts;

pub mod attended;
pub mod desk;
pub mod last_check;
pub mod settings;

mod news;
mod turns;

pub mod engine;

pub mod supervisor;

pub mod mcp;
