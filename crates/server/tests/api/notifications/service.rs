//! A push service that says what it was sent, and a device that can read it.

use std::{collections::VecDeque, time::Duration};

use aws_lc_rs::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Salt},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

/// A push service: says what it was sent, and answers with the statuses that it is given, 201 after the last.
pub(super) struct Service {
    pub(super) url: String,
    pub(super) sent: mpsc::UnboundedReceiver<Sent>,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Sent {
    pub(super) fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.split_once(": ").filter(|(it, _)| *it == name));
        line.map_or("", |(_, value)| value)
    }
}

impl Service {
    pub(super) async fn start(statuses: &[u16]) -> Self {
        Self::start_with("", statuses).await
    }

    /// One whose answers have these headers too, each with its line break.
    pub(super) async fn start_with(headers: &'static str, statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/device", listener.local_addr().unwrap());
        let (report, sent) = mpsc::unbounded_channel();
        let mut statuses = VecDeque::from(statuses.to_vec());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(got) = read(&mut stream).await else { continue };
                let status = statuses.pop_front().unwrap_or(201);
                let answer =
                    format!("HTTP/1.1 {status} x\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
                drop(stream.write_all(answer.as_bytes()).await);
                drop(report.send(got));
            }
        });
        Self { url, sent }
    }

    pub(super) async fn next(&mut self) -> Sent {
        timeout(Duration::from_secs(30), self.sent.recv()).await.expect("nothing was sent").unwrap()
    }

    pub(super) async fn is_left_alone(&mut self) -> bool {
        timeout(Duration::from_millis(700), self.sent.recv()).await.is_err()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Sent> {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4);
        if let Some(end) = head {
            let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if bytes.len() >= end + length.parse::<usize>().ok()? {
                return Some(Sent { head, body: bytes[end..].to_vec() });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A device with its keys.
pub(super) struct Device(PrivateKey);

pub(super) const AUTH: [u8; 16] = [9; 16];

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; N] {
    let mut key = [0; N];
    let info = [info];
    let expanded = Salt::new(HKDF_SHA256, salt).extract(secret);
    expanded.expand(&info, Length(N)).unwrap().fill(&mut key).unwrap();
    key
}

impl Device {
    pub(super) fn new() -> Self {
        Self(PrivateKey::generate(&ECDH_P256).unwrap())
    }

    pub(super) fn public(&self) -> Vec<u8> {
        self.0.compute_public_key().unwrap().as_ref().to_vec()
    }

    pub(super) fn channel(&self, service: &Service) -> Value {
        let keys =
            json!({ "p256dh": URL_SAFE_NO_PAD.encode(self.public()), "auth": URL_SAFE_NO_PAD.encode(AUTH) });
        json!({ "kind": "webPush", "label": "phone", "endpoint": service.url, "keys": keys, "page": "https://page/" })
    }

    pub(super) fn read(&self, body: &[u8]) -> Value {
        let (salt, rest) = body.split_at(16);
        let (sender, record) = rest[5..].split_at(65);
        let info = [b"WebPush: info\0", &self.public()[..], sender].concat();
        let theirs = UnparsedPublicKey::new(&ECDH_P256, sender);
        let secret: [u8; 32] =
            agree(&self.0, theirs, Unspecified, |shared| Ok(derive(&AUTH, shared, &info))).unwrap();
        let key: [u8; 16] = derive(salt, &secret, b"Content-Encoding: aes128gcm\0");
        let nonce: [u8; 12] = derive(salt, &secret, b"Content-Encoding: nonce\0");
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
        let mut record = record.to_vec();
        let plain =
            key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record).unwrap();
        let end = plain.iter().rposition(|byte| *byte == 2).unwrap();
        serde_json::from_slice(&plain[..end]).unwrap()
    }
}
