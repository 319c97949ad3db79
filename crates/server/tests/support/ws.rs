//! A WebSocket client.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use super::client::Client;

/// An open WebSocket.
pub struct Socket(pub WebSocketStream<TcpStream>);

impl Socket {
    /// Connects, or tells the status of the refusal.
    pub async fn connect(client: &Client, query: &str, protocol: Option<&str>) -> Result<Self, u16> {
        let mut request = format!("ws://{}/v1/ws{query}", client.address).into_client_request().unwrap();
        if let Some(key) = &client.key {
            request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        if let Some(protocol) = protocol {
            request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
        }
        let stream = TcpStream::connect(client.address).await.unwrap();
        let connected = client_async(request, stream).await;
        let (status, result) = match connected {
            Ok((socket, response)) => (response.status().as_u16(), Ok(Self(socket))),
            Err(tungstenite::Error::Http(response)) => {
                let status = response.status().as_u16();
                (status, Err(status))
            }
            Err(error) => panic!("{error}"),
        };
        client.seen.lock().insert(("GET".into(), "/v1/ws".into(), status));
        result
    }

    pub async fn open(client: &Client, role: &str, id: &str) -> Self {
        Self::connect(client, &format!("?role={role}&id={id}"), None).await.expect("an upgrade")
    }

    /// None if the connection is cut before the upgrade is answered.
    pub async fn try_open(client: &Client, role: &str, id: &str) -> Option<Self> {
        let mut request =
            format!("ws://{}/v1/ws?role={role}&id={id}", client.address).into_client_request().unwrap();
        let key = client.key.as_deref().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let stream = TcpStream::connect(client.address).await.unwrap();
        client_async(request, stream).await.ok().map(|(socket, _)| Self(socket))
    }

    pub async fn try_send(&mut self, message: &Value) -> Result<(), tungstenite::Error> {
        self.0.send(Message::text(message.to_string())).await
    }

    pub async fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message; the close code when the connection has ended.
    pub async fn next(&mut self) -> Result<Value, Option<u16>> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map(|frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// The next message within some seconds.
    pub async fn message(&mut self) -> Value {
        timeout(Duration::from_secs(10), self.next()).await.expect("a message").expect("an open socket")
    }

    /// Sends, and returns the answer, which is the next message.
    pub async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.message().await
    }

    /// Nothing comes for a moment.
    pub async fn expect_nothing(&mut self) {
        if let Ok(message) = timeout(Duration::from_millis(400), self.next()).await {
            panic!("unexpected: {message:?}");
        }
    }

    /// Nothing about requests with this end comes for a moment.
    pub async fn expect_nothing_of(&mut self, suffix: &str) {
        let wanted = async {
            loop {
                let message = self.message().await;
                if message["requestId"].as_str().unwrap().ends_with(suffix) {
                    return message;
                }
            }
        };
        if let Ok(message) = timeout(Duration::from_millis(400), wanted).await {
            panic!("unexpected: {message}");
        }
    }

    /// The code with which the other side closes.
    pub async fn closed(&mut self) -> Option<u16> {
        let closing = async {
            loop {
                if let Err(code) = self.next().await {
                    return code;
                }
            }
        };
        timeout(Duration::from_secs(30), closing).await.expect("a close")
    }
}
