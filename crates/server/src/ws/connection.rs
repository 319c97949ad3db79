//! One WebSocket: frames in, frames out. What is sent when is decided by core's [`WsChannel`].

use std::{io, mem, pin::pin, time::Duration};

use bytes::Bytes;
use countersign_core::{
    delivery::{
        message::Party,
        ws_channel::{WsChannel, WsEnded},
        ws_session::WsSession,
    },
    model::viewer::Viewer,
    notify::Endings,
};
use countersign_wire::{id::RequestId, limits};
use futures_util::StreamExt as _;
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
    dispatch::Dispatch,
    metering::MeteredStream,
    output::{CloseReason, Output, STORE_UNAVAILABLE, WsClient, WsStream},
};
use crate::{
    auth::{KeyStatus, RevocationWatch},
    error::ApiError,
    limits::{FairSemaphore, LARGE_BODY},
    metrics::Rejection,
    net::socket::{Socket, WRITE_TIMEOUT},
    protocol::{operations::Answer, status::exchange_status},
    traces::SPANS,
};

/// One WebSocket after its upgrade.
pub(crate) struct WsConnection {
    pub(crate) client: WsClient,
    pub(crate) revocation: RevocationWatch,
    pub(crate) channel: WsChannel<FairSemaphore>,
    /// The head of the answer after which HTTP is over; empty once it is written.
    pub(crate) upgrade: Vec<u8>,
    /// Requests that have left the approver's inbox, if its client wants to hear of them.
    pub(crate) endings: Option<Endings>,
}

const REVOKED: CloseReason = CloseReason(CloseCode::Policy, "the credential is revoked");

fn close_if_revoked(status: KeyStatus) -> Result<(), CloseReason> {
    match status {
        KeyStatus::Active | KeyStatus::Unknown => Ok(()),
        KeyStatus::Revoked => Err(REVOKED),
        KeyStatus::Unconfirmed => Err(STORE_UNAVAILABLE),
    }
}

impl WsConnection {
    /// The library's defaults hold 128 KB for reading on every connection, and let writes pile up without end. The
    /// largest message of an enforcer is a snapshot of a session, that of an approver a prompt.
    fn settings(&self) -> WebSocketConfig {
        let max_message_bytes = self.max_message_bytes();
        WebSocketConfig::default()
            .read_buffer_size(512)
            .write_buffer_size(0)
            .max_write_buffer_size(limits::MAX_SESSION_MESSAGE)
            .max_message_size(Some(max_message_bytes))
            .max_frame_size(Some(max_message_bytes))
    }

    fn max_message_bytes(&self) -> usize {
        match &self.client.subscriber.party {
            Party::Enforcer(_) => limits::MAX_SESSION_MESSAGE,
            Party::Approver(_) => limits::MAX_PROMPT_MESSAGE,
        }
    }

    /// Answers the upgrade, after which HTTP is over.
    pub(crate) async fn upgrade(&mut self, mut socket: Socket) -> io::Result<WsStream> {
        socket.limit_send_buffer();
        socket.write(&mem::take(&mut self.upgrade)).await?;
        let Socket { stream, read } = socket;
        let memory = self.client.app.request_memory.permit(&self.client.caller.tenant);
        let stream = MeteredStream::new(stream, self.max_message_bytes(), memory);
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
        let Self { client, revocation, channel, endings, .. } = self;
        let drain = client.app.drain.clone();
        let mut drain_begun = pin!(drain.begun());
        loop {
            let wake_at = started + channel.session.wake_at();
            let done = tokio::select! {
                frame = stream.next() => {
                    let now = started.elapsed();
                    channel.session.received(now);
                    let control_payload = match &frame {
                        Some(Ok(Frame::Ping(payload) | Frame::Pong(payload))) => Some(payload.len()),
                        _ => None,
                    };
                    let mut output = Output { client, stream };
                    let handling = handle(&mut output, revocation, frame, &mut channel.session, endings, now);
                    let handled = Box::pin(handling).await;
                    match control_payload {
                        Some(bytes) if !stream.get_mut().control_frame_received(bytes) => {
                            Err(CloseReason(CloseCode::Policy, "too many control frames"))
                        }
                        Some(_) => handled,
                        None => {
                            stream.get_mut().message_finished();
                            handled
                        }
                    }
                }
                item = channel.subscription.next() => match item {
                    Ok(item) => {
                        let span = tracing::trace_span!(target: SPANS, "push", otel.kind = "producer");
                        let mut output = Output { client, stream };
                        let sending = channel.send(&mut output, &item, started.elapsed());
                        Box::pin(sending.instrument(span)).await
                    }
                    Err(ended) => Err(WsEnded::from(ended).into()),
                },
                ended = next_ending(endings) => {
                    let mut output = Output { client, stream };
                    Box::pin(send_status(&mut output, &ended)).await
                }
                () = sleep_until(wake_at) => {
                    if stream.get_ref().is_overdue() {
                        Err(CloseReason(CloseCode::Policy, "a message did not arrive in time"))
                    } else {
                        let mut output = Output { client, stream };
                        Box::pin(channel.do_due(&mut output, started.elapsed())).await
                    }
                }
                () = revocation.changed() => close_if_revoked(revocation.check().await),
                () = &mut drain_begun => {
                    Err(CloseReason(CloseCode::Restart, "the gateway restarts; reconnect"))
                }
            };
            if let Err(reason) = done {
                return reason;
            }
        }
    }
}

impl WsClient {
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
}

/// The next request that has left the inbox; never, if nobody wants to hear of it. Cancel-safe.
async fn next_ending(endings: &mut Option<Endings>) -> RequestId {
    match endings {
        Some(endings) => endings.next().await,
        None => std::future::pending().await,
    }
}

/// Says once what became of a request. A client that misses it learns it by reading, so nothing is tried again.
async fn send_status(output: &mut Output<'_>, request_id: &RequestId) -> Result<(), CloseReason> {
    let WsClient { app, caller, subscriber, .. } = output.client;
    let Party::Approver(approver) = &subscriber.party else { return Ok(()) };
    let status = {
        let _permit = app.push_reads.acquire(&caller.tenant).await;
        exchange_status(app, &caller.tenant, Viewer::Approver(approver), request_id).await
    };
    match status {
        Ok(envelope) => output.text(envelope).await,
        Err(error) => {
            tracing::debug!(failure = ?error.failure(), "a status was not sent");
            Ok(())
        }
    }
}

/// Handles a frame from the client, and answers.
async fn handle(
    output: &mut Output<'_>,
    revocation: &RevocationWatch,
    frame: Option<Result<Frame, tungstenite::Error>>,
    session: &mut WsSession,
    endings: &mut Option<Endings>,
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
        Some(Err(tungstenite::Error::Io(error))) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(CloseReason(CloseCode::Size, "too large"));
        }
        Some(Err(tungstenite::Error::Utf8(_))) => {
            return Err(CloseReason(CloseCode::Invalid, "not UTF-8"));
        }
        Some(Ok(Frame::Close(_)) | Err(_)) | None => return Err(CloseReason(CloseCode::Normal, "")),
    };
    // A frame acts with the credential of the connection, so the credential must be active now. One that may be active
    // keeps its connection, and nothing is done for it.
    let status = Box::pin(revocation.check_before_acting()).await;
    close_if_revoked(status)?;
    let answer = if status == KeyStatus::Active {
        let span = tracing::trace_span!(target: SPANS, "message", otel.kind = "server");
        Box::pin(output.client.answer(bytes).instrument(span)).await
    } else {
        Err(ApiError::unavailable(Rejection::StoreUnavailable))
    };
    match answer {
        Ok(answer) => {
            if let Some(ack) = &answer.acknowledged {
                session.acknowledged(&ack.request_id, ack.msg_id.as_ref());
            }
            if let (Some(wants), Party::Approver(approver)) =
                (answer.wants_status, &output.client.subscriber.party)
            {
                let WsClient { app, caller, .. } = output.client;
                *endings = wants.then(|| app.gateway.listen_to_endings(&caller.tenant, approver));
            }
            match answer.envelope {
                Some(envelope) => output.text(envelope).await,
                None => Ok(()),
            }
        }
        Err(error) => {
            let WsClient { app, http_id, .. } = output.client;
            error.log(http_id);
            app.count_rejection(&error);
            output.text(app.error_envelope(&error, http_id)).await?;
            let malformed = matches!(error.failure().status(), 400 | 403 | 413 | 422);
            match malformed && session.malformed(now) {
                true => Err(CloseReason(CloseCode::Policy, "too many malformed frames")),
                false => Ok(()),
            }
        }
    }
}
