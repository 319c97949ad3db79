//! The kinds of channels and the two servers that are compared, and the requests that open channels on them.

use serde::Serialize;

use crate::{
    Failure,
    clients::{
        http::Connection,
        messages,
        publishers::{Pace, publish},
        subscribers::Answer,
    },
    servers::gateway::Gateway,
};

/// The transport that a client waits for messages on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChannelKind {
    Sse,
    WebSocket,
    /// Our `GET /v1/exchanges/{id}/wait`, Nchan's long poll.
    Wait,
}

/// What is below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    Plain,
    /// TLS 1.3, with a certificate of ECDSA P-256.
    Tls,
}

/// The server under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Ours,
    Nchan,
}

impl ChannelKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sse => "SSE",
            Self::WebSocket => "WebSocket",
            Self::Wait => "wait",
        }
    }

    pub(super) fn answer(self) -> Answer {
        match self {
            Self::Sse => Answer::Head(200),
            Self::WebSocket => Answer::Head(101),
            Self::Wait => Answer::Nothing,
        }
    }

    /// The request that opens channel number `channel` on our gateway.
    pub(super) fn our_request(self, key: &str, channel: u64) -> String {
        let enforcer = messages::enforcer(channel);
        let path = match self {
            Self::Sse => format!("/v1/sse/enforcers/{enforcer}"),
            Self::WebSocket => format!("/v1/ws?role=enforcer&id={enforcer}"),
            Self::Wait => format!("/v1/exchanges/{}/wait?timeout=60", messages::request_id(channel)),
        };
        self.request(&path, &format!("authorization: Bearer {key}\r\n"))
    }

    /// The request that opens channel number `channel` on Nchan.
    pub(super) fn peer_request(self, channel: u64) -> String {
        let folder = match self {
            Self::Sse => "sse",
            Self::WebSocket => "ws",
            Self::Wait => "lp",
        };
        self.request(&format!("/{folder}/{channel}"), "")
    }

    fn request(self, path: &str, authorization: &str) -> String {
        let headers = match self {
            Self::Sse => "accept: text/event-stream\r\n",
            Self::WebSocket => messages::UPGRADE,
            Self::Wait => "",
        };
        format!("GET {path} HTTP/1.1\r\nhost: lab\r\n{authorization}{headers}\r\n")
    }
}

impl Layer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "TLS",
        }
    }
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Nchan => "Nchan",
        }
    }
}

/// Submits so many exchanges, of so many enforcers in turn.
pub(super) fn submit(gateway: &Gateway, count: u64, enforcers: u64) -> Result<(), Failure> {
    publish(Pace::Count(count), || {
        let mut connection = Connection::open(gateway.address)?;
        Ok(move |message| {
            let enforcer = messages::enforcer(message % enforcers);
            Ok(connection.call(&messages::submission(&gateway.enforcer_key, message, &enforcer))?)
        })
    })?;
    Ok(())
}
