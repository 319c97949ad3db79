//! The gateway as a service. Each line imports only from the lines above it; a test keeps it so.
//!
//! | to find | look in |
//! |---|---|
//! | what can be configured | [`config`] |
//! | clock, randomness, ids, the shared secret and what it encrypts, shutdown | `clock`, [`random`], `ids`, [`secrets`], `sealing`, [`shutdown`] |
//! | what is counted, and the routes that it is counted by | `metrics`, `openapi` |
//! | the page for approvers, and who else may call from a browser | `page`, [`cors`] |
//! | traces for a collector | `traces`, `traceparent` |
//! | errors as data | `error` |
//! | rate limits and quotas | [`limits`] |
//! | what can be changed while it runs | [`live`] |
//! | what handlers share | [`state`], with `presence`, `api_keys` and `joins` |
//! | what is sent to people outside of the protocol | `notifications` |
//! | who calls | `auth` |
//! | what REST and WebSocket share: operations, envelopes | `protocol` |
//! | what a channel has to send | `delivery` |
//! | connections, and how they leave HTTP | [`net`] |
//! | requests and answers over HTTP; the only error renderer | `rest` |
//! | SSE and WebSocket | `sse`, `ws` |
//! | the handlers, one file for each resource | `routes` |
//! | all routes on one page | [`router`] |
//! | metrics for a scraper, health for probes | [`scrape`], `health` |
//! | certificates from an authority | `acme` |
//! | sweep, poll, heartbeat | `background` |
//! | where stores are named | [`assemble`] |
//! | the log, and where traces are sent | [`telemetry`] |
//! | what systemd is told | `service_manager` |
//! | how settings are read again | `reload` |
//! | the commands | [`commands`] |

pub mod config;

mod clock;
mod ids;
pub mod random;
mod sealing;
pub mod secrets;
pub mod shutdown;

pub mod cors;
mod openapi;
mod page;
mod traceparent;

mod metrics;
mod traces;

mod error;

pub mod limits;

pub mod live;

mod api_keys;
mod joins;
mod notifications;
mod presence;
pub mod state;

#[cfg(test)]
mod test_node;

mod auth;

mod protocol;

mod delivery;

pub mod net;

mod rest;

mod sse;
mod ws;

mod routes;

pub mod router;

mod health;
pub mod scrape;

mod acme;

mod background;

pub mod assemble;

pub mod telemetry;

mod service_manager;

mod reload;

pub mod commands;
