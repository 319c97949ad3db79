//! What is written to a WebSocket: messages, answers, pings. And why it is closed.

use bytes::Bytes;
use countersign_core::delivery::{
    message::Message,
    ws_channel::{Push, WsEnded, WsOutput},
};
use countersign_wire::{
    RawObject,
    msg_type::MsgType,
    refresh::{RefreshBody, RefreshRequest, RefreshType},
};
use futures_util::SinkExt as _;
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message as Frame, protocol::frame::coding::CloseCode},
};

use super::metering::MeteredStream;
use crate::{
    auth::Caller,
    delivery::{Subscriber, SubscriptionEnded},
    error::ApiError,
    ids::HttpRequestId,
    metrics::PushMeter,
    net::socket::WRITE_TIMEOUT,
    state::SharedState,
};

/// Who is at the other end.
pub(crate) struct WsClient {
    pub(crate) app: SharedState,
    pub(crate) caller: Caller,
    pub(crate) subscriber: Subscriber,
    pub(crate) http_id: HttpRequestId,
    pub(crate) meter: PushMeter,
}

pub(crate) type WsStream = WebSocketStream<MeteredStream>;

/// The way to a client.
pub(super) struct Output<'a> {
    pub(super) client: &'a WsClient,
    pub(super) stream: &'a mut WsStream,
}

/// Why a connection is closed.
pub(super) struct CloseReason(pub(super) CloseCode, pub(super) &'static str);

pub(super) const STORE_UNAVAILABLE: CloseReason = CloseReason(CloseCode::Error, "store unavailable");

impl From<WsEnded> for CloseReason {
    fn from(ended: WsEnded) -> Self {
        match ended {
            WsEnded::Subscription(SubscriptionEnded::Store(error)) => {
                tracing::warn!(%error, "a WebSocket is closed; its client will reconnect");
                STORE_UNAVAILABLE
            }
            WsEnded::Subscription(SubscriptionEnded::ChannelDropped) => {
                Self(CloseCode::Again, "other channels took its place; reconnect")
            }
            WsEnded::Idle => Self(CloseCode::Away, "nothing was received for too long"),
        }
    }
}

impl WsClient {
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
}

impl Output<'_> {
    pub(super) async fn text(&mut self, text: Vec<u8>) -> Result<(), CloseReason> {
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        self.frame(Frame::text(text)).await
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), CloseReason> {
        match timeout(WRITE_TIMEOUT, self.stream.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(CloseReason(CloseCode::Away, "")),
            Err(_) => Err(CloseReason(CloseCode::Policy, "too slow")),
        }
    }
}

impl WsOutput for Output<'_> {
    type Closed = CloseReason;

    async fn push(&mut self, push: Push<'_>) -> Result<bool, CloseReason> {
        let WsClient { app, http_id, meter, .. } = self.client;
        if !push.is_first {
            app.metrics.redeliveries.inc();
        }
        let text = match self.client.frame_text(push.message) {
            Ok(text) => text,
            Err(error) => {
                error.log(http_id);
                return Ok(false);
            }
        };
        self.text(text).await?;
        let committed = push.is_first.then_some(push.item.delivery.at);
        meter.sent(app.gateway.metrics(), &push.item.delivery.msg_type, committed, push.began);
        Ok(true)
    }

    async fn ping(&mut self) -> Result<(), CloseReason> {
        self.frame(Frame::Ping(Bytes::new())).await
    }
}
