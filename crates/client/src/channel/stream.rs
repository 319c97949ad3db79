//! One stream of server-sent events.

use std::{collections::VecDeque, time::Duration};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout_at};

use super::message::{Interrupted, max_message};
use crate::{
    gateway::{
        http::{Http, OpenError, segment},
        trouble::Trouble,
    },
    identity::profile::Party,
};

/// One event with data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The position after it, for the next connection.
    pub(super) id: Option<String>,
    pub(super) data: String,
}

/// A stream of events that was opened.
pub(super) struct Stream {
    response: reqwest::Response,
    reader: EventReader,
    events: VecDeque<SseEvent>,
    silence: Duration,
    heard_at: Instant,
}

impl Stream {
    /// Opens it after the position of an earlier one.
    pub(super) async fn open(
        http: &Http,
        party: &Party,
        silence: Duration,
        last: Option<&str>,
    ) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        // An id that is no header is one that the gateway does not know either.
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            headers.insert("last-event-id", last);
        }
        let response =
            http.open(&format!("/v1/sse/{}s/{}", party.role(), segment(party.id())), headers).await?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !media_type.is_some_and(|value| value.starts_with("text/event-stream")) {
            return Err(OpenError::Failed(Trouble::NoStream));
        }
        let reader = EventReader::new(max_message(party.role()));
        Ok(Self { response, reader, events: VecDeque::new(), silence, heard_at: Instant::now() })
    }

    /// Something was heard, or could not have been.
    pub(super) fn touch(&mut self) {
        self.heard_at = Instant::now();
    }

    /// The next event with data; `None` for anything else that shows that the connection lives.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, Interrupted> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        match timeout_at(self.heard_at + self.silence, self.response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                self.touch();
                self.reader.feed(&chunk, &mut self.events)?;
                Ok(self.events.pop_front())
            }
            Ok(Ok(None)) => Err(Interrupted::Ended(Trouble::Closed)),
            Ok(Err(error)) => Err(Interrupted::Ended(Trouble::of_http(&error))),
            Err(_) => Err(Interrupted::Ended(Trouble::Silent)),
        }
    }
}

/// Reads events out of bytes, however they are cut.
#[derive(Debug, Default)]
struct EventReader {
    limit: usize,
    line: Vec<u8>,
    after_return: bool,
    has_data: bool,
    event: SseEvent,
}

impl EventReader {
    fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    fn feed(&mut self, bytes: &[u8], events: &mut VecDeque<SseEvent>) -> Result<(), Interrupted> {
        let mut rest = bytes;
        while let Some(position) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, ended) = rest.split_at(position);
            // The second half of a line break of two characters.
            let is_second = self.after_return && position == 0 && ended[0] == b'\n';
            self.after_return = ended[0] == b'\r';
            rest = &ended[1..];
            if is_second {
                continue;
            }
            self.push(part)?;
            let line = std::mem::take(&mut self.line);
            self.take(&line, events)?;
        }
        if !rest.is_empty() {
            self.after_return = false;
        }
        self.push(rest)
    }

    fn push(&mut self, part: &[u8]) -> Result<(), Interrupted> {
        if self.line.len() + part.len() + self.event.data.len() > self.limit {
            return Err(Interrupted::NotUnderstood);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take(&mut self, line: &[u8], events: &mut VecDeque<SseEvent>) -> Result<(), Interrupted> {
        let line = std::str::from_utf8(line).map_err(|_| Interrupted::NotUnderstood)?;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // A ping has no data.
            if std::mem::take(&mut self.has_data) && !event.data.is_empty() {
                events.push_back(event);
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "id" => self.event.id = Some(value.to_owned()),
            // The name is in the envelope too, comments have none, and when to come back is our own matter.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = "retry: 1000\n\nid: 1\nevent: approval.request\ndata: {\"a\":\ndata: 1}\n\n\
                    event: ping\ndata:\n\n: comment\r\nid: 2\r\ndata:x\r\n\r\ndata: y\r\rdata: lost";
        let expected = [(Some("1"), "{\"a\":\n1}"), (Some("2"), "x"), (None, "y")]
            .map(|(id, data)| SseEvent { id: id.map(str::to_owned), data: data.to_owned() });
        for size in 1..text.len() {
            let (mut reader, mut events) = (EventReader::new(1_000), VecDeque::new());
            for part in text.as_bytes().chunks(size) {
                reader.feed(part, &mut events).unwrap();
            }
            assert_eq!(events, expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn an_event_without_end_is_an_error() {
        for text in ["data: 0123456789\n", "0123456789"] {
            let (mut reader, mut events) = (EventReader::new(1_000), VecDeque::new());
            let fed: Result<(), Interrupted> =
                (0..1_000).try_for_each(|_| reader.feed(text.as_bytes(), &mut events));
            assert!(fed.is_err() && reader.event.data.len() + reader.line.len() <= 1_000);
        }
        let fed = EventReader::new(10).feed(b"data: \xff\n", &mut VecDeque::new());
        assert!(fed.is_err(), "what is not UTF-8");
    }
}
