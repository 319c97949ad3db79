//! The hook: the process that a host starts before its agent acts.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | whether somebody is at the desk | [`attended`], [`desk`] |
//! | how a hook was started, and what a failure means | [`settings`], [`start`] |
//! | how a verdict is written, whatever happens | `outcome` |
//! | a run that the doctor has started; what this machine says of itself | [`canary`], [`machine`] |
//! | who asks, and why | `about` |
//! | what approvers say to an agent, what they have stopped, and who listens | [`said`], [`stopped`], [`ears`] |
//! | the way from an event to a verdict | [`engine`], `inquiry`, `news` |
//! | the process that the host starts: with a worker of its own, or with a keeper | [`supervisor`], [`kept`] |
//! | the same with a keeper, and nothing else in it | [`thin`] |
//! | the permission tool over MCP | [`mcp`] |

pub mod canary;

pub mod attended;
pub mod desk;
pub mod machine;
pub mod stopped;

pub mod said;

pub mod ears;

pub mod settings;

mod about;
mod inquiry;

mod news;

pub mod engine;
pub mod start;

pub mod outcome;

pub mod kept;
mod subject;
pub mod supervisor;

pub mod thin;

pub mod mcp;
