//! Held channels, ours compared with Nchan's: memory of an idle channel, and throughput and latency of messages.

mod memory;
mod push;
pub(crate) mod report;
mod stretch;
mod table;

use serde::Serialize;

use crate::{
    Failure,
    args::ChannelsArgs,
    clients::messages,
    report_progress,
    servers::{gateway, nchan::Nchan},
};

pub(crate) use report::Report;

/// The transport that a client waits for messages on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChannelKind {
    Sse,
    WebSocket,
    /// Our `GET /v1/exchanges/{id}/wait`, Nchan's long poll.
    Wait,
}

/// The server under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Ours,
    Nchan,
}

impl ChannelKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sse => "SSE",
            Self::WebSocket => "WebSocket",
            Self::Wait => "wait",
        }
    }
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Nchan => "Nchan",
        }
    }
}

/// Runs `bench channels`: memory first, then messages.
pub(crate) fn run(args: &ChannelsArgs) -> Result<Report, Failure> {
    let gateway = gateway::program(args.gateway.as_deref())?;
    Nchan::check_installed()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let memory = match args.only_push {
        true => Vec::new(),
        false => memory::measure(args, &gateway, &runtime)?,
    };
    let push = match args.only_memory {
        true => Vec::new(),
        false => push::measure(args, &runtime)?,
    };
    report_progress("done");
    Ok(Report::new(args, &memory, push))
}

/// The request that opens channel number `channel` on our gateway.
pub(crate) fn our_request(kind: ChannelKind, key: &str, channel: u64) -> String {
    let enforcer = messages::enforcer(channel);
    let path = match kind {
        ChannelKind::Sse => format!("/v1/sse/enforcers/{enforcer}"),
        ChannelKind::WebSocket => format!("/v1/ws?role=enforcer&id={enforcer}"),
        ChannelKind::Wait => format!("/v1/exchanges/{}/wait?timeout=60", messages::request_id(channel)),
    };
    request(kind, &path, &format!("authorization: Bearer {key}\r\n"))
}

/// The request that opens channel number `channel` on Nchan.
fn peer_request(kind: ChannelKind, channel: u64) -> String {
    let folder = match kind {
        ChannelKind::Sse => "sse",
        ChannelKind::WebSocket => "ws",
        ChannelKind::Wait => "lp",
    };
    request(kind, &format!("/{folder}/{channel}"), "")
}

fn request(kind: ChannelKind, path: &str, authorization: &str) -> String {
    let headers = match kind {
        ChannelKind::Sse => "accept: text/event-stream\r\n",
        ChannelKind::WebSocket => messages::UPGRADE,
        ChannelKind::Wait => "",
    };
    format!("GET {path} HTTP/1.1\r\nhost: lab\r\n{authorization}{headers}\r\n")
}
