//! A reader of server-sent events, from the specification alone.

use std::{collections::VecDeque, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::client::Client;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: String,
}

impl Event {
    pub fn envelope(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

pub struct Stream {
    socket: TcpStream,
    pub head: String,
    pub status: u16,
    text: String,
    events: VecDeque<Event>,
    pub retries: Vec<u64>,
}

impl Stream {
    pub async fn open(client: &Client, path: &str, last_event_id: Option<&str>) -> Self {
        Self::try_open(client, path, last_event_id).await.expect("an answer")
    }

    /// None if the connection is cut before the whole head of the answer has come.
    pub async fn try_open(client: &Client, path: &str, last_event_id: Option<&str>) -> Option<Self> {
        let mut socket = TcpStream::connect(client.address).await.unwrap();
        let key =
            client.key.as_ref().map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        let last = last_event_id.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: g\r\naccept: text/event-stream\r\n{key}{last}\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Self {
            socket,
            head: String::new(),
            status: 0,
            text: String::new(),
            events: VecDeque::new(),
            retries: Vec::new(),
        };
        while !stream.text.contains("\r\n\r\n") {
            if !stream.read().await {
                return None;
            }
        }
        let (head, rest) = stream.text.split_once("\r\n\r\n").unwrap();
        (stream.head, stream.text) = (head.to_lowercase(), rest.to_owned());
        stream.status = stream.head.split(' ').nth(1).unwrap().parse().unwrap();
        client.seen.lock().insert(("GET".into(), path.into(), stream.status));
        Some(stream)
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        match self.socket.read(&mut bytes).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
                true
            }
        }
    }

    /// The next event; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                self.take(&block);
            }
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if !self.read().await {
                return None;
            }
        }
    }

    fn take(&mut self, block: &str) {
        let mut event = Event { id: String::new(), name: String::new(), data: String::new() };
        let mut lines = 0;
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap();
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => value.clone_into(&mut event.id),
                "event" => value.clone_into(&mut event.name),
                "data" => {
                    if lines > 0 {
                        event.data.push('\n');
                    }
                    lines += 1;
                    event.data.push_str(value);
                }
                "retry" => self.retries.push(value.parse().unwrap()),
                other => panic!("unknown field {other}"),
            }
        }
        if lines > 0 {
            self.events.push_back(event);
        }
    }

    /// The next event that is no ping, within some seconds.
    pub async fn event(&mut self) -> Event {
        loop {
            let event = timeout(Duration::from_secs(10), self.next())
                .await
                .expect("an event")
                .expect("an open stream");
            if event.name != "ping" {
                return event;
            }
        }
    }

    /// Nothing comes for a moment.
    pub async fn expect_nothing(&mut self) {
        if let Ok(event) = timeout(Duration::from_millis(400), self.next()).await {
            panic!("unexpected: {event:?}");
        }
    }
}
