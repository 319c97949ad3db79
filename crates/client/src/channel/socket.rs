//! One WebSocket. It is opened with the same HTTP client as every other call, so with the same certificates, proxies
//! and credential, which stands in a header and never in the address.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{
    StatusCode, Upgraded,
    header::{
        CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
        UPGRADE,
    },
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::ProtocolError,
        handshake::derive_accept_key,
        protocol::{Role as End, WebSocketConfig},
    },
};

use super::message::{Interrupted, Settings, max_message};
use crate::{
    gateway::{
        http::{Http, OpenError, segment},
        trouble::Trouble,
    },
    identity::profile::{Party, Role},
    random,
};

/// A frame must be sent within this time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The capability of an approver that wants to be told when a request has ended elsewhere.
const STATUS: &str = "org.countersign.status";

/// A WebSocket that was opened and has said hello.
pub(super) struct Socket {
    stream: WebSocketStream<Upgraded>,
    silence: Duration,
    heard_at: Instant,
    ping_at: Instant,
}

impl Socket {
    /// Opens it, says hello and pings, so that something is heard soon.
    pub(super) async fn open(http: &Http, party: &Party, settings: &Settings) -> Result<Self, OpenError> {
        let key = random::bytes::<16>().map_err(|_| OpenError::Failed(Trouble::Unusable))?;
        let key = base64(key);
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let value = HeaderValue::from_str(&key).map_err(|_| OpenError::Failed(Trouble::Unusable))?;
        headers.insert(SEC_WEBSOCKET_KEY, value);
        let path = format!("/v1/ws?role={}&id={}", party.role(), segment(party.id()));
        let response = http.open(&path, headers).await?;
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS
            || accepted != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            return Err(OpenError::Failed(Trouble::NoWebSocket));
        }
        let upgraded = timeout(WRITE_TIMEOUT, response.upgrade()).await;
        let upgraded = upgraded.map_err(|_| OpenError::Failed(Trouble::Late))?;
        let upgraded = upgraded.map_err(|error| OpenError::Failed(Trouble::of_http(&error)))?;
        let max = max_message(party.role());
        let limits = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(64 << 10)
            .max_message_size(Some(max))
            .max_frame_size(Some(max));
        let stream = WebSocketStream::from_raw_socket(upgraded, End::Client, Some(limits)).await;
        let (now, silence) = (Instant::now(), settings.silence);
        let mut socket = Self { stream, silence, heard_at: now, ping_at: now + silence / 3 };
        socket.send(Message::text(hello(party.role(), settings))).await.map_err(OpenError::Failed)?;
        socket.send(Message::Ping(Vec::new().into())).await.map_err(OpenError::Failed)?;
        Ok(socket)
    }

    async fn send(&mut self, message: Message) -> Result<(), Trouble> {
        match timeout(WRITE_TIMEOUT, self.stream.send(message)).await {
            Ok(sent) => sent.map_err(|_| Trouble::Broken),
            Err(_) => Err(Trouble::Late),
        }
    }

    /// Something was heard, or could not have been.
    pub(super) fn touch(&mut self) {
        self.heard_at = Instant::now();
    }

    /// The next message; `None` for anything else that shows that the connection lives.
    pub(super) async fn next(&mut self) -> Result<Option<String>, Interrupted> {
        let frame = loop {
            tokio::select! {
                biased;
                frame = self.stream.next() => break frame,
                () = sleep_until(self.heard_at + self.silence) => {
                    return Err(Interrupted::Ended(Trouble::Silent));
                }
                () = sleep_until(self.ping_at) => {
                    self.ping_at = Instant::now() + self.silence / 3;
                    self.send(Message::Ping(Vec::new().into())).await.map_err(Interrupted::Ended)?;
                }
            }
        };
        self.touch();
        match frame {
            Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
            Some(Ok(Message::Binary(bytes))) => {
                String::from_utf8(bytes.into()).map(Some).map_err(|_| Interrupted::NotUnderstood)
            }
            Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) | None => {
                Err(Interrupted::Ended(Trouble::Closed))
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
            Some(Err(Error::Io(_) | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                Err(Interrupted::Ended(Trouble::Broken))
            }
            Some(Err(_)) => Err(Interrupted::NotUnderstood),
        }
    }
}

/// What is said first: the transports, what else this end can do, and what an enforcer is called.
fn hello(role: Role, settings: &Settings) -> String {
    let mut capabilities = json!({ "push": true, "sse": true, "poll": true });
    if role == Role::Approver {
        capabilities[STATUS] = true.into();
    }
    for (name, value) in settings.capabilities.now() {
        capabilities[name] = value;
    }
    let mut hello = Map::new();
    hello.insert("msgType".to_owned(), "hello".into());
    if role == Role::Enforcer {
        settings.names.add_to(&mut hello);
    }
    hello.insert("capabilities".to_owned(), capabilities);
    Value::from(hello).to_string()
}

/// Base64 with padding, which the handshake wants; 16 bytes are 22 characters and two signs.
fn base64(bytes: [u8; 16]) -> String {
    let text = countersign_wire::base64url::encode(&bytes);
    text.replace('-', "+").replace('_', "/") + "=="
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::names::Names;

    #[test]
    fn an_enforcer_says_its_names_and_an_approver_that_it_wants_to_hear_of_ends() {
        let settings = Settings { names: Names::new("robot", "agent"), ..Settings::default() };
        let said = |role| serde_json::from_str::<Value>(&hello(role, &settings)).unwrap();
        let transports = json!({ "push": true, "sse": true, "poll": true });
        assert_eq!(
            said(Role::Enforcer),
            json!({ "msgType": "hello", "enforcerLabel": "robot", "workspaceName": "agent",
                    "capabilities": transports })
        );
        let capabilities = json!({ "push": true, "sse": true, "poll": true, STATUS: true });
        assert_eq!(said(Role::Approver), json!({ "msgType": "hello", "capabilities": capabilities }));
    }
}
