//! Held channels, ours beside Nchan's: what one costs while nothing happens, and how fast messages go over them.

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
    servers::{gateway, nchan::Nchan},
    tell,
};

pub(crate) use report::Report;

/// How a client waits for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Held {
    Sse,
    WebSocket,
    /// A wait of ours, a long poll of Nchan's.
    Wait,
}

/// Whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Ours,
    Nchan,
}

impl Held {
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

/// Measures everything.
pub(crate) fn run(args: &ChannelsArgs) -> Result<Report, Failure> {
    let gateway = gateway::program(args.gateway.as_deref())?;
    Nchan::is_installed()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let memory = match args.only_push {
        true => Vec::new(),
        false => memory::measure(args, &gateway, &runtime)?,
    };
    let push = match args.only_memory {
        true => Vec::new(),
        false => push::measure(args, &runtime)?,
    };
    tell("done");
    Ok(Report::new(args, &memory, push))
}

/// What opens the channel of this number on our gateway.
pub(crate) fn our_request(held: Held, key: &str, channel: u64) -> String {
    let enforcer = messages::enforcer(channel);
    let path = match held {
        Held::Sse => format!("/v1/sse/enforcers/{enforcer}"),
        Held::WebSocket => format!("/v1/ws?role=enforcer&id={enforcer}"),
        Held::Wait => format!("/v1/exchanges/{}/wait?timeout=60", messages::request_id(channel)),
    };
    request(held, &path, &format!("authorization: Bearer {key}\r\n"))
}

/// What opens the channel of this number on the peer.
fn peer_request(held: Held, channel: u64) -> String {
    let folder = match held {
        Held::Sse => "sse",
        Held::WebSocket => "ws",
        Held::Wait => "lp",
    };
    request(held, &format!("/{folder}/{channel}"), "")
}

fn request(held: Held, path: &str, authorization: &str) -> String {
    let kind = match held {
        Held::Sse => "accept: text/event-stream\r\n",
        Held::WebSocket => {
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        }
        Held::Wait => "",
    };
    format!("GET {path} HTTP/1.1\r\nhost: lab\r\n{authorization}{kind}\r\n")
}
