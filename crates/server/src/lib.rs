//! The gateway as a service.
//!
//! | to find | look in |
//! |---|---|
//! | all routes | [`http::router`] |
//! | how connections are served | [`http::accept`] |
//! | what can be configured | [`config`], [`default.toml`](config::DEFAULT) |
//! | where stores are named | [`assemble`] |
//! | the commands | [`commands`] |

pub mod app;
pub mod assemble;
pub mod commands;
pub mod config;
pub mod http;
pub mod secrets;
pub mod telemetry;

mod auth;
mod clock;
mod presence;
mod push;
