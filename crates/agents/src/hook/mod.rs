//! The hook: the process that a host starts before its agent acts.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | whether somebody is at the desk | [`attended`], [`desk`] |
//! | how a hook was started, and what a failure means | [`settings`], [`start`] |
//! | how a verdict is written, whatever happens | `outcome` |
//! | a run that the doctor has started, and its last result | [`canary`], [`last_check`] |
//! | who asks, and why | `about` |
//! | what approvers say to an agent, and what they have stopped | [`said`], [`stopped`] |
//! | the way from an event to a verdict | [`engine`], `inquiry`, `news` |
//! | the process that the host starts: with a worker of its own, or with a keeper | [`supervisor`], [`kept`] |
//! | the same with a keeper, and nothing else in it | [`thin`] |
//! | the permission tool over MCP | [`mcp`] |

pub mod canary;

pub mod attended;
pub mod desk;
pub mod last_check;
pub mod settings;
pub mod stopped;

mod about;
mod inquiry;
pub mod said;

mod news;

pub mod engine;
pub mod start;

pub mod outcome;

pub mod kept;
pub mod supervisor;

pub mod thin;

pub mod mcp;
