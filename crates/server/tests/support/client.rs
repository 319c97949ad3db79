//! A client that knows nothing but HTTP.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What was asked and how it was answered: method, path, status.
pub type Seen = Arc<Mutex<BTreeSet<(String, String, u16)>>>;

/// Calls one gateway with one credential.
#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub key: Option<String>,
    pub seen: Seen,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error} in {} {:?}", self.status, self.bytes))
    }

    /// The body of the envelope.
    pub fn body(&self) -> Value {
        self.json()["body"].take()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The code of an error, in either form.
    pub fn code(&self) -> String {
        let json = self.json();
        let code = json.get("code").or_else(|| json["body"].get("code"));
        code.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The status, and the code if it is an error.
    pub fn outcome(&self) -> (u16, String) {
        (self.status, if self.status < 400 { String::new() } else { self.code() })
    }

    /// Asserts the status; returns itself.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    /// Asserts an error; returns itself.
    #[track_caller]
    pub fn refuse(self, status: u16, code: &str) -> Self {
        assert_eq!(self.outcome(), (status, code.to_owned()), "{}", String::from_utf8_lossy(&self.bytes));
        self
    }
}

impl Client {
    pub fn new(address: SocketAddr, key: &str) -> Self {
        Self { address, key: Some(key.to_owned()), seen: Seen::default() }
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub fn without_key(&self) -> Self {
        Self { key: None, ..self.clone() }
    }

    /// Sends a request as it is, with the credential.
    pub async fn send(&self, mut request: Request<Full<Bytes>>) -> Answer {
        if let Some(key) = &self.key {
            let value = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().entry("authorization").or_insert(value);
        }
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let answer = exchange(self.address, request).await.expect("an answer");
        self.seen.lock().insert((method, path, answer.status));
        answer
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, "", &[]).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, "", &[]).await
    }

    pub async fn post(&self, path: &str, body: impl AsRef<str>) -> Answer {
        self.call(Method::POST, path, body.as_ref(), &[]).await
    }

    pub async fn post_with(&self, path: &str, body: impl AsRef<str>, headers: &[(&str, &str)]) -> Answer {
        self.call(Method::POST, path, body.as_ref(), headers).await
    }

    pub async fn call(&self, method: Method, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "gateway");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await
    }
}

/// One request on a connection of its own.
pub async fn exchange(address: SocketAddr, request: Request<Full<Bytes>>) -> Result<Answer, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, bytes })
}

/// A body without a declared length.
pub async fn chunked(client: &Client, path: &str, body: String) -> Answer {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let key = client.key.clone().unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {key}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    let (mut reading, mut writing) = stream.split();
    let write = async {
        writing.write_all(head.as_bytes()).await.ok()?;
        for chunk in body.as_bytes().chunks(60_000) {
            writing.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await.ok()?;
            writing.write_all(chunk).await.ok()?;
            writing.write_all(b"\r\n").await.ok()?;
        }
        writing.write_all(b"0\r\n\r\n").await.ok()
    };
    let mut text = Vec::new();
    let read = async {
        // A connection that is cut after the answer is still an answer.
        drop(reading.read_to_end(&mut text).await);
    };
    tokio::join!(write, read);
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    client.seen.lock().insert(("POST".into(), path.into(), status));
    Answer { status, headers: HeaderMap::new(), bytes: Bytes::from(body.to_owned()) }
}

/// Asks for a stream on a connection of its own, and reads no more than the status.
pub async fn ask_for_stream(address: SocketAddr, key: &str, path: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    let status = std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap();
    (stream, status)
}
