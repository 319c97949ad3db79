//! A WebSocket: frames in, frames out. What is due when is decided by [`super::ws_session`].

use std::{collections::VecDeque, io, time::Duration};

use bytes::Bytes;
use countersign_core::{
    delivery::{
        feed::FeedItem,
        message::{Message, Party},
    },
    use_cases::presence::SelfDescription,
};
use countersign_wire::{
    RawObject,
    ack::AckAccepted,
    envelope::Envelope,
    failure::Failure,
    framed::Framed,
    id::RequestId,
    limits,
    msg_type::MsgType,
    presence::{Hello, Transport},
    refresh::{RefreshBody, RefreshRequest, RefreshType},
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

use super::{
    metered::Metered,
    tellings::{Ended, Listening, Tellings},
    ws_session::{About, Act, Session},
};
use crate::{
    app::Shared,
    auth::{Caller, Standing},
    http::{
        error_response::Refusal,
        held::{Socket, WRITE_TIME},
        operations,
        request_id::HttpRequestId,
    },
};

/// How large a message of this type may be, as over REST.
fn largest(msg_type: Option<&MsgType>) -> usize {
    match msg_type {
        Some(MsgType::ArtifactSubmit) => limits::MAX_ARTIFACT_MESSAGE,
        Some(MsgType::PromptSend) => limits::MAX_PROMPT_MESSAGE,
        Some(MsgType::SessionSnapshot) => limits::MAX_SESSION_MESSAGE,
        _ => limits::MAX_OTHER_BODY,
    }
}

/// One connection.
pub(crate) struct Channel {
    pub(crate) app: Shared,
    pub(crate) caller: Caller,
    pub(crate) standing: Standing,
    pub(crate) listening: Listening,
    pub(crate) tellings: Tellings,
    pub(crate) http_id: HttpRequestId,
}

/// Why a connection ends.
struct Closed(CloseCode, &'static str);

const VOID: Closed = Closed(CloseCode::Policy, "the credential is void");

impl From<Ended> for Closed {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Store(error) => {
                tracing::warn!(%error, "a WebSocket is closed, its client will come back");
                Self(CloseCode::Error, "the store is away")
            }
            Ended::Forgotten => Self(CloseCode::Again, "other channels took its place; reconnect"),
        }
    }
}

type Sockets = WebSocketStream<Metered>;

impl Channel {
    /// The library's defaults hold 128 KB for reading on every connection, and let writes pile up without end. The largest
    /// message of an enforcer is a snapshot of a session, that of an approver a prompt.
    fn settings(&self) -> WebSocketConfig {
        let most = match &self.listening.who {
            Party::Enforcer(_) => limits::MAX_SESSION_MESSAGE,
            Party::Approver(_) => limits::MAX_PROMPT_MESSAGE,
        };
        WebSocketConfig::default()
            .read_buffer_size(512)
            .write_buffer_size(0)
            .max_write_buffer_size(limits::MAX_SESSION_MESSAGE)
            .max_message_size(Some(most))
            .max_frame_size(Some(most))
    }

    /// Until either side has enough. The upgrade has been answered. Boxed, as are streams and waits: a future carries what it
    /// was given as long as it lives, and once more while it runs.
    pub(crate) async fn run(mut self: Box<Self>, socket: Socket) {
        socket.send_little_ahead();
        let read = socket.read.to_vec();
        let stream = Metered::new(socket.stream, self.app.bodies.share_of(&self.caller.tenant));
        let mut sockets =
            WebSocketStream::from_partially_read(stream, read, Role::Server, Some(self.settings())).await;
        let Closed(code, reason) = self.talk(&mut sockets).await;
        let frame = CloseFrame { code, reason: reason.into() };
        drop(timeout(WRITE_TIME, Box::pin(sockets.close(Some(frame)))).await);
    }

    /// What is done now and then is boxed, so that a connection at rest does not carry the room for it.
    async fn talk(&mut self, sockets: &mut Sockets) -> Closed {
        let started = Instant::now();
        let mut session = Session::default();
        let mut queue: VecDeque<FeedItem> = VecDeque::new();
        loop {
            let done = tokio::select! {
                frame = sockets.next() => {
                    session.heard(started.elapsed());
                    let interrupts = match &frame {
                        Some(Ok(Frame::Ping(payload) | Frame::Pong(payload))) => Some(payload.len()),
                        _ => None,
                    };
                    let taken = Box::pin(self.take(sockets, frame, &mut session, started.elapsed())).await;
                    match interrupts {
                        Some(payload) => sockets.get_mut().interrupted(payload),
                        None => sockets.get_mut().finished(),
                    }
                    taken
                }
                told = self.tellings.next(), if queue.is_empty() => match told {
                    Ok(told) => {
                        queue.extend(told);
                        Ok(())
                    }
                    Err(ended) => Err(ended.into()),
                },
                Some(told) = async { queue.pop_front() } => {
                    Box::pin(self.tell(sockets, &told, &mut session, started.elapsed())).await
                }
                () = sleep_until(started + session.wake_at()) => {
                    Box::pin(self.due(sockets, &mut session, started.elapsed())).await
                }
                () = self.standing.changed() => match self.standing.holds().await {
                    true => Ok(()),
                    false => Err(VOID),
                },
                () = self.app.drain.begun() => Err(Closed(CloseCode::Restart, "the gateway restarts; reconnect")),
            };
            if let Err(closed) = done {
                return closed;
            }
        }
    }

    /// Sends a message. Its body is fetched now and not before: a slow client holds one message, never a queue.
    async fn tell(
        &self,
        sockets: &mut Sockets,
        told: &FeedItem,
        session: &mut Session,
        now: Duration,
    ) -> Result<(), Closed> {
        let turn = self.app.push_reads.acquire().await;
        let fetched = self.app.gateway.message(&self.listening.tenant, &told.delivery).await;
        drop(turn);
        let Ok(message) = fetched else { return Err(Closed(CloseCode::Error, "the store is away")) };
        let place = (told.source, told.delivery.number);
        let Some(message) = message else {
            session.settled(place);
            return Ok(());
        };
        let about = About { request_id: message.request_id.clone(), msg_id: message.msg_id.clone() };
        let text = self.text(message);
        let Some(text) = text else { return Ok(()) };
        self.send(sockets, text).await?;
        session.told(place, about, now);
        Ok(())
    }

    /// The frame's text, and nothing else of the message is kept. A refresh is a bare control object.
    fn text(&self, message: Message) -> Option<Vec<u8>> {
        if message.msg_type != MsgType::RefreshRequest {
            return self.app.message(&message, &self.listening.who);
        }
        let body = RawObject::reread(&message.body).ok()?;
        let refresh = RefreshRequest {
            msg_type: RefreshType::RefreshRequest,
            msg_id: message.msg_id,
            request_id: message.request_id,
            created_at: message.created_at,
            reason: body.view::<RefreshBody>().ok()?.into_view().reason,
        };
        serde_json::to_vec(&refresh).ok()
    }

    async fn send(&self, sockets: &mut Sockets, text: Vec<u8>) -> Result<(), Closed> {
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        self.write(sockets, Frame::text(text)).await
    }

    async fn write(&self, sockets: &mut Sockets, frame: Frame) -> Result<(), Closed> {
        match timeout(WRITE_TIME, sockets.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Closed(CloseCode::Away, "")),
            Err(_) => Err(Closed(CloseCode::Policy, "too slow")),
        }
    }

    async fn due(
        &mut self,
        sockets: &mut Sockets,
        session: &mut Session,
        now: Duration,
    ) -> Result<(), Closed> {
        if sockets.get_ref().is_overdue() {
            return Err(Closed(CloseCode::Policy, "a message did not arrive in time"));
        }
        for act in session.due(now) {
            match act {
                Act::GiveUp => return Err(Closed(CloseCode::Away, "nothing was heard for two minutes")),
                Act::Ping => self.write(sockets, Frame::Ping(Bytes::new())).await?,
                Act::TellAgain((lane, number)) => match self.tellings.again(lane, number).await {
                    Ok(Some(told)) => self.tell(sockets, &told, session, now).await?,
                    Ok(None) => session.settled((lane, number)),
                    Err(ended) => return Err(ended.into()),
                },
            }
        }
        Ok(())
    }

    /// Takes what came from the client, and answers.
    async fn take(
        &self,
        sockets: &mut Sockets,
        frame: Option<Result<Frame, tungstenite::Error>>,
        session: &mut Session,
        now: Duration,
    ) -> Result<(), Closed> {
        let bytes: Bytes = match frame {
            Some(Ok(Frame::Text(text))) => text.into(),
            Some(Ok(Frame::Binary(bytes))) => bytes,
            Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_))) => return Ok(()),
            Some(Err(tungstenite::Error::Capacity(_))) => return Err(Closed(CloseCode::Size, "too large")),
            Some(Err(tungstenite::Error::Io(error))) if error.kind() == io::ErrorKind::OutOfMemory => {
                return Err(Closed(CloseCode::Again, "too much is on its way; send it again later"));
            }
            Some(Err(tungstenite::Error::Utf8(_))) => return Err(Closed(CloseCode::Invalid, "not UTF-8")),
            Some(Ok(Frame::Close(_)) | Err(_)) | None => return Err(Closed(CloseCode::Normal, "")),
        };
        match Box::pin(self.answer(&bytes, session)).await {
            Ok(Some(answer)) => self.send(sockets, answer).await,
            Ok(None) => Ok(()),
            Err(refusal) => {
                refusal.log(&self.http_id);
                self.send(sockets, refusal.envelope(&self.app, &self.http_id)).await?;
                let malformed = matches!(refusal.failure().status(), 400 | 403 | 413 | 422);
                match malformed && session.malformed(now) {
                    true => Err(Closed(CloseCode::Policy, "too many malformed frames")),
                    false => Ok(()),
                }
            }
        }
    }

    /// The answer to one frame, as over REST.
    async fn answer(&self, bytes: &[u8], session: &mut Session) -> Result<Option<Vec<u8>>, Refusal> {
        let object = RawObject::parse(bytes).map_err(|fault| Refusal::invalid(&fault))?;
        let mut members = object.members().map_err(|fault| Refusal::invalid(&fault))?;
        // Whatever is wrong with the frame, its sender learns which one it was.
        let about: Option<RequestId> = members.optional("requestId").ok().flatten();
        let said = members.optional("msgType").map_err(|fault| Refusal::invalid(&fault));
        let answered = async { self.answer_object(object, bytes.len(), said?, session).await };
        answered.await.map_err(|refusal| refusal.or_about(about))
    }

    async fn answer_object(
        &self,
        object: RawObject<'_>,
        size: usize,
        said: Option<MsgType>,
        session: &mut Session,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        self.app.rates.admit(&self.caller.tenant, &self.caller.principal)?;
        if size > largest(said.as_ref()) {
            return Err(Failure::TooLarge.into());
        }
        if said == Some(MsgType::Hello) {
            let hello = object.view::<Hello>().map_err(|fault| Refusal::invalid(&fault))?.into_view();
            self.hello(hello);
            return Ok(None);
        }
        let envelope = object.view::<Envelope<'_>>().map_err(|fault| Refusal::invalid(&fault))?.into_view();
        self.act(envelope.into(), session).await.map(Some)
    }

    async fn act(&self, mut framed: Framed<'_>, session: &mut Session) -> Result<Vec<u8>, Refusal> {
        let (app, caller) = (&*self.app, &self.caller);
        self.check_sender(&mut framed)?;
        let request_id = framed.request_id.clone().ok_or(Failure::Validation)?;
        match framed.msg_type.clone().ok_or(Failure::Validation)? {
            MsgType::ArtifactSubmit => {
                let accepted = operations::submit(app, &caller.enforcer()?, framed, None).await?.accepted;
                Ok(app.envelope(MsgType::ArtifactAccepted, &request_id, accepted))
            }
            MsgType::DecisionSubmit => {
                let accepted = operations::decide(app, &caller.approver()?, framed, None).await?.accepted;
                Ok(app.envelope(MsgType::DecisionAccepted, &request_id, accepted))
            }
            MsgType::AckSubmit | MsgType::PromptAck => {
                let accepted = operations::acknowledge(app, caller, &framed).await?;
                session.acknowledged(&accepted.request_id, accepted.msg_id.as_ref());
                Ok(app.envelope(MsgType::AckAccepted, &request_id, accepted))
            }
            MsgType::ExchangeWithdrawn => {
                let accepted = operations::withdraw(app, &caller.enforcer()?, &request_id, &framed).await?;
                Ok(app.envelope(MsgType::ExchangeWithdrawn, &request_id, accepted))
            }
            MsgType::RefreshRequest => {
                let body = operations::refresh(app, &caller.approver()?, &request_id, &framed).await?;
                Ok(app.envelope(MsgType::RefreshRequest, &request_id, body))
            }
            MsgType::PromptSend => {
                let (ack, _) = operations::send_prompt(app, &caller.approver()?, framed, None).await?;
                Ok(app.envelope(MsgType::PromptAck, &request_id, ack))
            }
            MsgType::SessionStart
            | MsgType::SessionSnapshot
            | MsgType::SessionStatus
            | MsgType::SessionEnd => {
                operations::report(app, &caller.enforcer()?, &framed).await?;
                let accepted = AckAccepted { request_id: request_id.clone(), msg_id: None };
                Ok(app.envelope(MsgType::AckAccepted, &request_id, accepted))
            }
            _ => Err(Refusal::from(Failure::Unsupported).about(&request_id)),
        }
    }

    /// On a WebSocket it is known who speaks; whoever says otherwise is refused.
    fn check_sender(&self, framed: &mut Framed<'_>) -> Result<(), Refusal> {
        let sender = &mut framed.sender;
        // That it does not speak for the other side as well is seen to by whatever takes the message.
        let honest = match &self.listening.who {
            Party::Enforcer(enforcer) => {
                sender.enforcer_id.get_or_insert_with(|| enforcer.clone()) == enforcer
            }
            Party::Approver(approver) => {
                sender.approver_id.get_or_insert_with(|| approver.clone()) == approver
            }
        };
        if honest { Ok(()) } else { Err(Failure::Forbidden.into()) }
    }

    fn hello(&self, hello: Hello) {
        if let Party::Enforcer(enforcer) = &self.listening.who {
            let says = SelfDescription {
                workspace_name: hello.workspace_name,
                enforcer_label: hello.enforcer_label,
                capabilities: hello.capabilities,
            };
            self.app.presence.told(&self.listening.tenant, enforcer, Transport::Websocket, says);
        }
    }
}
