//! One WebSocket: frames in, frames out. What is due when is decided by [`super::session`].

use std::{collections::VecDeque, io, mem, pin::pin, time::Duration};

use bytes::Bytes;
use countersign_core::delivery::{
    feed::FeedItem,
    message::{Message, Party},
};
use countersign_wire::{
    RawObject, limits,
    msg_type::MsgType,
    refresh::{RefreshBody, RefreshRequest, RefreshType},
    timestamp::Timestamp,
};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message as Frame,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tracing::Instrument as _;

use super::{
    dispatch::{Answer, Dispatch},
    metering::MeteredStream,
    session::{Action, MessageRef, WsSession},
};
use crate::{
    auth::{Caller, KeyStatus, RevocationWatch},
    delivery::{Subscriber, Subscription, SubscriptionEnded},
    error::ApiError,
    ids::HttpRequestId,
    limits::LARGE_BODY,
    metrics::PushMeter,
    net::socket::{Socket, WRITE_TIMEOUT},
    state::SharedState,
    traces::SPANS,
};

/// One WebSocket after its upgrade.
pub(crate) struct WsConnection {
    pub(crate) app: SharedState,
    pub(crate) caller: Caller,
    pub(crate) revocation: RevocationWatch,
    pub(crate) subscriber: Subscriber,
    pub(crate) subscription: Subscription,
    pub(crate) http_id: HttpRequestId,
    pub(crate) meter: PushMeter,
    /// The head of the answer after which HTTP is over; empty once it is written.
    pub(crate) upgrade: Vec<u8>,
}

/// Why a connection is closed.
struct CloseReason(CloseCode, &'static str);

const REVOKED: CloseReason = CloseReason(CloseCode::Policy, "the credential is revoked");
const STORE_UNAVAILABLE: CloseReason = CloseReason(CloseCode::Error, "store unavailable");

impl From<SubscriptionEnded> for CloseReason {
    fn from(ended: SubscriptionEnded) -> Self {
        match ended {
            SubscriptionEnded::Store(error) => {
                tracing::warn!(%error, "a WebSocket is closed; its client will reconnect");
                STORE_UNAVAILABLE
            }
            SubscriptionEnded::ChannelDropped => {
                Self(CloseCode::Again, "other channels took its place; reconnect")
            }
        }
    }
}

fn close_if_revoked(status: KeyStatus) -> Result<(), CloseReason> {
    match status {
        KeyStatus::Active | KeyStatus::Unknown => Ok(()),
        KeyStatus::Revoked => Err(REVOKED),
        KeyStatus::Unconfirmed => Err(STORE_UNAVAILABLE),
    }
}

pub(crate) type WsStream = WebSocketStream<MeteredStream>;

impl WsConnection {
    /// The library's defaults hold 128 KB for reading on every connection, and let writes pile up without end. The
    /// largest message of an enforcer is a snapshot of a session, that of an approver a prompt.
    fn settings(&self) -> WebSocketConfig {
        let max_message_bytes = match &self.subscriber.party {
            Party::Enforcer(_) => limits::MAX_SESSION_MESSAGE,
            Party::Approver(_) => limits::MAX_PROMPT_MESSAGE,
        };
        WebSocketConfig::default()
            .read_buffer_size(512)
            .write_buffer_size(0)
            .max_write_buffer_size(limits::MAX_SESSION_MESSAGE)
            .max_message_size(Some(max_message_bytes))
            .max_frame_size(Some(max_message_bytes))
    }

    /// Answers the upgrade, after which HTTP is over.
    pub(crate) async fn upgrade(&mut self, mut socket: Socket) -> io::Result<WsStream> {
        socket.limit_send_buffer();
        socket.write(&mem::take(&mut self.upgrade)).await?;
        let Socket { stream, read } = socket;
        let memory = self.app.request_memory.permit(&self.caller.tenant);
        let stream = MeteredStream::new(stream, memory);
        let settings = Some(self.settings());
        Ok(WebSocketStream::from_partially_read(stream, read.to_vec(), Role::Server, settings).await)
    }

    /// Runs until either side closes.
    pub(crate) async fn run(&mut self, stream: &mut WsStream) {
        let CloseReason(code, reason) = self.run_loop(stream).await;
        let frame = CloseFrame { code, reason: reason.into() };
        drop(timeout(WRITE_TIMEOUT, Box::pin(stream.close(Some(frame)))).await);
    }

    /// What is done now and then is boxed, so that an idle connection does not carry the memory for it.
    async fn run_loop(&mut self, stream: &mut WsStream) -> CloseReason {
        let started = Instant::now();
        let mut session = WsSession::new(self.app.websocket_idle);
        let mut queue: VecDeque<FeedItem> = VecDeque::new();
        let drain = self.app.drain.clone();
        let mut drain_begun = pin!(drain.begun());
        loop {
            let done = tokio::select! {
                frame = stream.next() => {
                    session.received(started.elapsed());
                    let control_payload = match &frame {
                        Some(Ok(Frame::Ping(payload) | Frame::Pong(payload))) => Some(payload.len()),
                        _ => None,
                    };
                    let handled = Box::pin(self.handle(stream, frame, &mut session, started.elapsed())).await;
                    match control_payload {
                        Some(bytes) => stream.get_mut().control_frame_received(bytes),
                        None => stream.get_mut().message_finished(),
                    }
                    handled
                }
                items = self.subscription.next(), if queue.is_empty() => match items {
                    Ok(items) => {
                        queue.extend(items);
                        Ok(())
                    }
                    Err(ended) => Err(ended.into()),
                },
                Some(item) = async { queue.pop_front() } => {
                    let committed = Some(item.delivery.at);
                    let now = started.elapsed();
                    let span = tracing::trace_span!(target: SPANS, "push", otel.kind = "producer");
                    let sending = self.send_item(stream, &item, &mut session, now, committed);
                    Box::pin(sending.instrument(span)).await
                }
                () = sleep_until(started + session.wake_at()) => {
                    Box::pin(self.do_due(stream, &mut session, started.elapsed())).await
                }
                () = self.revocation.changed() => close_if_revoked(self.revocation.check().await),
                () = &mut drain_begun => {
                    Err(CloseReason(CloseCode::Restart, "the gateway restarts; reconnect"))
                }
            };
            if let Err(reason) = done {
                return reason;
            }
        }
    }

    /// Sends a message. Its body is fetched now and not before: a slow client holds one message in memory, never a
    /// queue. `committed` is when; `None` if it was sent before.
    async fn send_item(
        &self,
        stream: &mut WsStream,
        item: &FeedItem,
        session: &mut WsSession,
        now: Duration,
        committed: Option<Timestamp>,
    ) -> Result<(), CloseReason> {
        let started = Instant::now();
        let message = self.subscription.message(item).await.map_err(SubscriptionEnded::Store)?;
        let place = (item.source, item.delivery.number);
        let Some(message) = message else {
            session.done_with(place);
            return Ok(());
        };
        let message_ref =
            MessageRef { request_id: message.request_id.clone(), msg_id: message.msg_id.clone() };
        let text = match self.frame_text(message) {
            Ok(text) => text,
            Err(error) => {
                error.log(&self.http_id);
                return Ok(());
            }
        };
        self.send_text(stream, text).await?;
        let msg_type = &item.delivery.msg_type;
        self.meter.sent(self.app.gateway.metrics(), msg_type, committed, started);
        session.sent(place, message_ref, now);
        Ok(())
    }

    /// The frame's text; nothing else of the message is kept. A refresh request is a bare control object.
    fn frame_text(&self, message: Message) -> Result<Vec<u8>, ApiError> {
        if message.msg_type != MsgType::RefreshRequest {
            return self.app.message(&message, &self.subscriber.party);
        }
        let body = RawObject::reread(&message.body).and_then(RawObject::view::<RefreshBody>);
        let body = body.map_err(|error| ApiError::internal(&error))?.into_view();
        let refresh = RefreshRequest {
            msg_type: RefreshType::RefreshRequest,
            msg_id: message.msg_id,
            request_id: message.request_id,
            created_at: message.created_at,
            reason: body.reason,
        };
        serde_json::to_vec(&refresh).map_err(|error| ApiError::internal(&error))
    }

    async fn send_text(&self, stream: &mut WsStream, text: Vec<u8>) -> Result<(), CloseReason> {
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        self.send_frame(stream, Frame::text(text)).await
    }

    async fn send_frame(&self, stream: &mut WsStream, frame: Frame) -> Result<(), CloseReason> {
        match timeout(WRITE_TIMEOUT, stream.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(CloseReason(CloseCode::Away, "")),
            Err(_) => Err(CloseReason(CloseCode::Policy, "too slow")),
        }
    }

    /// Pings, redelivers or gives up, whichever is due.
    async fn do_due(
        &mut self,
        stream: &mut WsStream,
        session: &mut WsSession,
        now: Duration,
    ) -> Result<(), CloseReason> {
        if stream.get_ref().is_overdue() {
            return Err(CloseReason(CloseCode::Policy, "a message did not arrive in time"));
        }
        for action in session.due(now) {
            match action {
                Action::CloseIdle => {
                    return Err(CloseReason(CloseCode::Away, "nothing was received for too long"));
                }
                Action::Ping => self.send_frame(stream, Frame::Ping(Bytes::new())).await?,
                Action::Redeliver((source, number)) => match self.subscription.reload(source, number).await {
                    Ok(Some(item)) => {
                        self.app.metrics.redeliveries.inc();
                        self.send_item(stream, &item, session, now, None).await?;
                    }
                    Ok(None) => session.done_with((source, number)),
                    Err(ended) => return Err(ended.into()),
                },
            }
        }
        Ok(())
    }

    /// The answer to a frame. A large one is handled in the pool for it.
    async fn answer(&self, bytes: Bytes) -> Result<Answer, ApiError> {
        if bytes.len() <= LARGE_BODY {
            let dispatch = Dispatch { app: &self.app, caller: &self.caller, subscriber: &self.subscriber };
            return dispatch.answer(&bytes).await;
        }
        let (app, caller, subscriber) = (self.app.clone(), self.caller.clone(), self.subscriber.clone());
        let answer = async move {
            let _turn = app.cpu_pool.turn(&caller.tenant).await;
            Dispatch { app: &app, caller: &caller, subscriber: &subscriber }.answer(&bytes).await
        };
        self.app.cpu_pool.run(answer).await?
    }

    /// Handles a frame from the client, and answers.
    async fn handle(
        &self,
        stream: &mut WsStream,
        frame: Option<Result<Frame, tungstenite::Error>>,
        session: &mut WsSession,
        now: Duration,
    ) -> Result<(), CloseReason> {
        let bytes: Bytes = match frame {
            Some(Ok(Frame::Text(text))) => text.into(),
            Some(Ok(Frame::Binary(bytes))) => bytes,
            Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_))) => return Ok(()),
            Some(Err(tungstenite::Error::Capacity(_))) => {
                return Err(CloseReason(CloseCode::Size, "too large"));
            }
            Some(Err(tungstenite::Error::Io(error))) if error.kind() == io::ErrorKind::OutOfMemory => {
                return Err(CloseReason(CloseCode::Again, "too much is on its way; send it again later"));
            }
            Some(Err(tungstenite::Error::Utf8(_))) => {
                return Err(CloseReason(CloseCode::Invalid, "not UTF-8"));
            }
            Some(Ok(Frame::Close(_)) | Err(_)) | None => return Err(CloseReason(CloseCode::Normal, "")),
        };
        // A frame acts with the credential of the connection, so the credential must be active now.
        close_if_revoked(Box::pin(self.revocation.check_before_acting()).await)?;
        let span = tracing::trace_span!(target: SPANS, "message", otel.kind = "server");
        match Box::pin(self.answer(bytes).instrument(span)).await {
            Ok(answer) => {
                if let Some(ack) = &answer.acknowledged {
                    session.acknowledged(&ack.request_id, ack.msg_id.as_ref());
                }
                match answer.envelope {
                    Some(envelope) => self.send_text(stream, envelope).await,
                    None => Ok(()),
                }
            }
            Err(error) => {
                error.log(&self.http_id);
                self.app.count_rejection(&error);
                self.send_text(stream, self.app.error_envelope(&error, &self.http_id)).await?;
                let malformed = matches!(error.failure().status(), 400 | 403 | 413 | 422);
                match malformed && session.malformed(now) {
                    true => Err(CloseReason(CloseCode::Policy, "too many malformed frames")),
                    false => Ok(()),
                }
            }
        }
    }
}
