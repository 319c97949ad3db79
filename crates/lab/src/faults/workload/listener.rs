//! Bare channels: a WebSocket or an event stream for one reader, whose messages are recorded and acknowledged.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use super::{
    super::history::{Answer, Call, Caller, Message, Open, Push, Transport},
    answers,
    rest::{Rest, Sent},
    texts,
    world::World,
};
use crate::clients::{messages::Role, messages::open_websocket, websocket::WebSocket};

/// A connection that is not open by then is given up.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection on which nothing arrives for this long may be dead.
const SILENCE: Duration = Duration::from_secs(17);

/// One reader's channel, which connects again and again.
pub(super) struct Listener {
    pub(super) rest: Rest,
    pub(super) reader: String,
    pub(super) role: Role,
    pub(super) transport: Transport,
    /// How many messages out of a hundred are not acknowledged when they first come.
    pub(super) ignores: usize,
    /// Where messages go, with their texts.
    pub(super) to: Option<mpsc::UnboundedSender<(Message, Vec<u8>)>>,
    /// How long one connection is kept, from and to, in milliseconds.
    pub(super) kept: (u64, u64),
    /// Whether it goes on when the world is stopped.
    drains: bool,
    seen: HashSet<String>,
    last_event: Option<String>,
    /// Acknowledgements over REST that are under way. They must not delay reading: the time of arrival counts.
    acks: JoinSet<()>,
}

struct Connection {
    by: Caller,
    number: u64,
    until: Instant,
    /// Acknowledgements that were sent on it and not answered.
    acks: HashMap<String, Open>,
}

impl Listener {
    pub(super) fn new(rest: Rest, reader: &str, role: Role, transport: Transport) -> Self {
        Self {
            rest,
            reader: reader.to_owned(),
            role,
            transport,
            ignores: 10,
            to: None,
            kept: (4_000, 25_000),
            drains: false,
            seen: HashSet::new(),
            last_event: None,
            acks: JoinSet::new(),
        }
    }

    /// Listens until the world is stopped.
    pub(super) async fn run(mut self) {
        let world = Arc::clone(&self.rest.world);
        while !world.is_stopped() {
            self.connect(&world).await;
            let pause = self.rest.rng.millis(50, 500);
            world.stopped_within(pause).await;
        }
        while self.acks.join_next().await.is_some() {}
    }

    /// Listens until this task is dropped, and acknowledges everything.
    pub(super) async fn drain(mut self) {
        (self.ignores, self.drains) = (0, true);
        let world = Arc::clone(&self.rest.world);
        loop {
            self.connect(&world).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// One connection, from its begin to its end.
    pub(super) async fn connect(&mut self, world: &World) {
        let node = world.node(&mut self.rest.rng);
        let by = self.rest.caller(node.clone());
        let call = Call::Listen { reader: self.reader.clone(), transport: self.transport };
        let open = world.recorder.invoke(&by, call);
        let (number, until) =
            (open.number(), Instant::now() + self.rest.rng.millis(self.kept.0, self.kept.1));
        let mut connection = Connection { by, number, until, acks: HashMap::new() };
        match self.transport {
            Transport::Websocket => self.on_websocket(&node, open, &mut connection).await,
            Transport::Sse | Transport::Sdk => self.on_stream(&node, open, &mut connection).await,
        }
    }

    async fn on_websocket(&mut self, node: &str, open: Open, connection: &mut Connection) {
        let Some(at) = self.rest.world.endpoint(node) else { return open.fail(Answer::none("no address")) };
        let handshake = open_websocket(self.rest.key(), self.role, &self.reader);
        let mut socket = match timeout(OPEN_TIMEOUT, WebSocket::open(at, &handshake)).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => return open.fail(refused(&error.to_string())),
            Err(_) => return open.unknown(Answer::none("no answer in time")),
        };
        open.ok(Answer { status: 101, ..Answer::default() });
        while Instant::now() < connection.until {
            let Some(Ok(text)) = self.in_time(connection, socket.next()).await else { return };
            let text = text.to_vec();
            if let Some(acknowledged) = answers::acknowledged(&text) {
                if let Some(ack) = connection.acks.remove(&acknowledged) {
                    ack.ok(Answer { status: 200, ..Answer::default() });
                }
                continue;
            }
            let Some(message) = self.take(&text, connection) else { continue };
            if self.rest.rng.is_one_of(30) {
                self.acknowledge(&message);
                continue;
            }
            let sent = texts::acknowledgement(&message.request, self.sender(), &message.id);
            let ack = self.rest.world.recorder.invoke(&connection.by, self.ack(&message));
            connection.acks.insert(message.id, ack);
            let Ok(Ok(())) = timeout(OPEN_TIMEOUT, socket.send(&sent)).await else { return };
        }
    }

    async fn on_stream(&mut self, node: &str, open: Open, connection: &mut Connection) {
        let role = match self.role {
            Role::Enforcer => "enforcers",
            Role::Approver => "approvers",
        };
        let url = format!("{node}/v1/sse/{role}/{}", self.reader);
        let mut request = self.rest.world.http.get(url).bearer_auth(self.rest.key());
        // Without it everything that is not acknowledged comes again.
        if let Some(last) = self.last_event.take_if(|_| self.rest.rng.is_one_of(50)) {
            request = request.header("last-event-id", last);
        }
        let mut response = match timeout(OPEN_TIMEOUT, request.send()).await {
            Ok(Ok(response)) if response.status().is_success() => response,
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                return open.fail(Answer { status, ..Answer::default() });
            }
            Ok(Err(error)) if error.is_connect() => return open.fail(Answer::none(error.to_string())),
            Ok(Err(error)) => return open.unknown(Answer::none(error.to_string())),
            Err(_) => return open.unknown(Answer::none("no answer in time")),
        };
        open.ok(Answer { status: 200, ..Answer::default() });
        let mut read = Vec::new();
        while Instant::now() < connection.until {
            let Some(Ok(Some(chunk))) = self.in_time(connection, response.chunk()).await else { return };
            read.extend_from_slice(&chunk);
            while let Some(end) = read.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = read.drain(..end + 2).collect();
                let (id, data) = fields(&event);
                self.last_event = id.or(self.last_event.take());
                let Some(message) = self.take(&data, connection) else { continue };
                self.acknowledge(&message);
            }
        }
    }

    /// What is read, unless nothing comes for a while, the connection's time is up, or the world is stopped.
    async fn in_time<T>(&self, connection: &Connection, reading: impl Future<Output = T>) -> Option<T> {
        let until = connection.until.min(Instant::now() + SILENCE);
        let stopped = async {
            match self.drains {
                true => std::future::pending().await,
                false => self.rest.world.stopped_within(Duration::from_hours(1)).await,
            }
        };
        tokio::select! {
            read = timeout_at(until, reading) => read.ok(),
            _ = stopped => None,
        }
    }

    /// Records a message and hands it on; returns it if it is to be acknowledged.
    fn take(&mut self, text: &[u8], connection: &Connection) -> Option<Message> {
        let message = answers::message(text)?;
        let world = &self.rest.world;
        world.recorder.pushed(Push {
            by: connection.by.clone(),
            reader: self.reader.clone(),
            connection: connection.number,
            transport: self.transport,
            message: message.clone(),
        });
        let is_known = !self.seen.insert(message.id.clone());
        if !is_known && let Some(to) = &self.to {
            let _gone = to.send((message.clone(), text.to_vec()));
        }
        // What is ignored comes again, and is acknowledged then.
        let is_ignored = !is_known && self.rest.rng.is_one_of(self.ignores);
        (!message.id.is_empty() && message.kind != "error" && !is_ignored).then_some(message)
    }

    fn acknowledge(&mut self, message: &Message) {
        let sent =
            Sent::post("/v1/acks", texts::acknowledgement(&message.request, self.sender(), &message.id));
        let (call, node) = (self.ack(message), self.rest.world.node(&mut self.rest.rng));
        let rest = self.rest.clone();
        self.acks.spawn(async move {
            rest.call_on(node, call, &sent).await;
        });
        while self.acks.try_join_next().is_some() {}
    }

    fn ack(&self, message: &Message) -> Call {
        let (reader, request) = (self.reader.clone(), message.request.clone());
        Call::Ack { reader, request, message: message.id.clone() }
    }

    fn sender(&self) -> (&'static str, &str) {
        match self.role {
            Role::Enforcer => ("enforcerId", &self.reader),
            Role::Approver => ("approverId", &self.reader),
        }
    }
}

/// The answer to a handshake that was refused, with its status if there is one.
fn refused(error: &str) -> Answer {
    let status = error.split_once("HTTP/1.1 ").and_then(|(_, rest)| rest.get(..3)?.parse().ok());
    Answer { status: status.unwrap_or_default(), ..Answer::none(error.chars().take(60).collect::<String>()) }
}

/// The id and the data of one event.
fn fields(event: &[u8]) -> (Option<String>, Vec<u8>) {
    let (mut id, mut data) = (None, Vec::new());
    for line in event.split(|byte| *byte == b'\n') {
        if let Some(value) = line.strip_prefix(b"id: ") {
            id = Some(String::from_utf8_lossy(value).into_owned());
        } else if let Some(value) = line.strip_prefix(b"data: ") {
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(value);
        }
    }
    (id, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_an_id_and_data_of_several_lines() {
        let (id, data) = fields(b"id: 7\nevent: decision.deliver\ndata: {\ndata: }\n\n");
        assert_eq!((id.as_deref(), data.as_slice()), (Some("7"), b"{\n}".as_slice()));
        assert_eq!(fields(b"event: ping\ndata:\n\n"), (None, Vec::new()));
    }

    #[test]
    fn the_status_of_a_refused_handshake_is_read() {
        assert_eq!(refused("not opened: HTTP/1.1 401 Unauthorized\r\n").status, 401);
        assert_eq!(refused("connection refused").status, 0);
    }
}
