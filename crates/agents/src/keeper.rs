//! The keeper: one process that decides for all hooks of a user, and waits for what comes next.
//!
//! Whoever calls may be an agent that means harm, under the same account: everything is bounded, in time, number and memory, and
//! a caller that hangs up takes its question back.

use std::{io, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch},
    time::{Instant, sleep, timeout},
};

use crate::{
    call_socket::{
        frames::{self, FrameError, LIMITS, MAX_TIME, PARTS, Question},
        place::is_same_user,
        root,
    },
    calls::{message::Message, verdict::Verdict},
    hook::{
        attended::{Between, is_attended},
        engine, outcome,
        settings::Settings,
    },
    hook_line::{deadlines::margin, mode::Mode},
    hosts::{self, Host, output::Output},
    rules::policy,
    tool::{files::Root, home::Home},
};

/// A hook has its question ready when it calls.
const QUESTION_TIME: Duration = Duration::from_secs(5);

/// So many may be sending their questions at once. When more call, those who take longer than usual are hung up on.
const MAX_SENDING: usize = 256;

/// What sending usually takes, and much more.
const PLACE_TIME: Duration = Duration::from_millis(100);

/// So many questions may be open, each with a person or on its way to one.
const MAX_OPEN: usize = 512;

/// All questions together may take so many kilobytes.
const MAX_KILOBYTES: usize = 64 << 10;

/// How long a hook may take to read its verdict.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// What decides for the hooks of one user.
#[derive(Debug)]
pub struct Keeper {
    home: Home,
    sending: Arc<Semaphore>,
    /// Whether somebody waits for a place among those who send.
    is_crowded: watch::Sender<bool>,
    open: Semaphore,
    memory: Semaphore,
}

impl Keeper {
    /// With the rules and profiles of a home.
    pub fn new(home: Home) -> Arc<Self> {
        Arc::new(Self {
            home,
            sending: Arc::new(Semaphore::new(MAX_SENDING)),
            is_crowded: watch::channel(false).0,
            open: Semaphore::new(MAX_OPEN),
            memory: Semaphore::new(MAX_KILOBYTES),
        })
    }

    /// Answers whoever calls, for as long as callers can be heard.
    pub async fn serve(self: Arc<Self>, listener: UnixListener) -> io::Error {
        loop {
            let Some(place) = self.place().await else { return io::Error::other("the keeper ends") };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // Descriptors may be short; those that are open end by themselves.
                Err(error) if is_passing(&error) => {
                    sleep(PLACE_TIME).await;
                    continue;
                }
                Err(error) => return error,
            };
            if is_same_user(&stream) {
                let keeper = Arc::clone(&self);
                tokio::spawn(async move { Box::pin(keeper.converse(stream, place)).await });
            }
        }
    }

    /// A place among those who send. Where there is none, those who take longest lose theirs.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.sending).try_acquire_owned() {
            return Some(place);
        }
        self.is_crowded.send_replace(true);
        let place = Arc::clone(&self.sending).acquire_owned().await;
        self.is_crowded.send_replace(false);
        place.ok()
    }

    /// Waits until a caller has had its time to send.
    async fn sending_time_is_over(&self) {
        let crowded = async {
            sleep(PLACE_TIME).await;
            // The sender lives as long as this.
            drop(self.is_crowded.subscribe().wait_for(|is_crowded| *is_crowded).await);
        };
        tokio::select! {
            () = sleep(QUESTION_TIME) => {}
            () = crowded => {}
        }
    }

    async fn converse(&self, mut stream: UnixStream, place: OwnedSemaphorePermit) {
        let began = Instant::now();
        let question = tokio::select! {
            question = self.question(&mut stream) => question,
            // Whoever has not asked needs no answer: its hook says no.
            () = self.sending_time_is_over() => return,
        };
        let verdict = match question {
            Err(FrameError::Io(_)) => return,
            Err(error) => {
                let words = format!("The keeper did not understand the hook: {error}.");
                send(&mut stream, &Output::refused(&words)).await;
                // Closed before all is read, the connection would be reset, and the verdict lost. It keeps its place meanwhile.
                drop(timeout(ANSWER_TIME, tokio::io::copy(&mut stream, &mut tokio::io::sink())).await);
                return;
            }
            Ok(asked) => {
                drop(place);
                self.answer(asked, &mut stream, began).await
            }
        };
        if let Some(verdict) = verdict {
            send(&mut stream, &verdict).await;
        }
    }

    /// Reads a question. Each part takes its memory before it is read.
    async fn question(&self, stream: &mut UnixStream) -> Result<Received<'_>, FrameError> {
        let mut version = [0; 4];
        let receiving = || root::receive(&*stream, &mut version);
        let (count, root) = stream.async_io(Interest::READABLE, receiving).await?;
        stream.read_exact(version.get_mut(count..).unwrap_or_default()).await?;
        if version != frames::VERSION {
            return Err(FrameError::Version);
        }
        let root = root.and_then(|root| Root::new(root).ok()).ok_or(FrameError::Root)?;
        let mut parts: [Vec<u8>; PARTS] = Default::default();
        let mut memory = Vec::with_capacity(PARTS);
        for (part, limit) in parts.iter_mut().zip(LIMITS) {
            let mut head = [0; 4];
            stream.read_exact(&mut head).await?;
            let length = frames::length(head, limit)?;
            let kilobytes = u32::try_from(length.div_ceil(1 << 10)).unwrap_or(u32::MAX);
            let permit = self.memory.acquire_many(kilobytes).await;
            memory.push(permit.map_err(|_| FrameError::Malformed("the question"))?);
            part.resize(length, 0);
            stream.read_exact(part).await?;
        }
        Ok(Received { question: Question::from_parts(parts)?, root, _memory: memory })
    }

    /// What the hook says; `None` if it has hung up.
    async fn answer(&self, asked: Received<'_>, stream: &mut UnixStream, began: Instant) -> Option<Output> {
        let Received { question, root, _memory } = asked;
        let hook = peer_process(stream);
        let (waiting, hung_up) = watch::channel(());
        let message = Message::read(&question.message);
        let Some(settings) = self.settings(question, hook, began, hung_up) else {
            return Some(Output::refused("The keeper does not know this host or mode. It was not done."));
        };
        let Some(message) = message else {
            return Some(outcome::output(settings.host, &Value::Null, &Verdict::failed(outcome::NO_OBJECT)));
        };
        let verdict = if let Ok(_open) = self.open.try_acquire() {
            Box::pin(root.seen_by(decide(&settings, &message, stream, hook, waiting))).await?
        } else {
            let words = format!("{MAX_OPEN} calls wait for an answer already.");
            root.seen_by(async { settings.without_verdict(&message.value, &words) }).await
        };
        Some(outcome::output(settings.host, &message.value, &verdict))
    }

    fn settings(
        &self,
        question: Question,
        hook: u32,
        began: Instant,
        hung_up: watch::Receiver<()>,
    ) -> Option<Settings> {
        let Question { start, caller, .. } = question;
        let (host_timeout, mode) = (start.host_timeout(), policy::mode(Mode::named(&start.mode)?));
        let host = hosts::ALL.into_iter().find(|host: &Host| host.word() == start.host)?;
        Some(Settings {
            host,
            mode,
            // In the mode gate nothing is left to the host's own prompt, whether somebody sees it or not.
            attended: mode == Mode::Relay && is_attended(host, hook),
            deadline: began + host_timeout.saturating_sub(margin(host_timeout)),
            defer_for: start.defer_for.map(|time| Duration::from_millis(time.min(MAX_TIME))),
            home: self.home.clone(),
            profile: start.profile,
            caller,
            hung_up: Some(hung_up),
        })
    }
}

/// The verdict; `None` if nobody waits for it any longer.
async fn decide(
    settings: &Settings,
    message: &Message,
    stream: &mut UnixStream,
    hook: u32,
    waiting: watch::Sender<()>,
) -> Option<Verdict> {
    let deciding = engine::verdict(settings, message);
    tokio::pin!(deciding);
    tokio::select! {
        // First: most verdicts need nobody, and are there at once.
        biased;
        verdict = &mut deciding => return Some(verdict),
        () = until_closed(stream) => {}
        () = Between::broken(settings.host, hook) => {}
    }
    // Whoever is asked learns that nobody waits for the answer.
    drop(waiting);
    drop(timeout(ANSWER_TIME, deciding).await);
    None
}

/// Sends a verdict, and nothing more. If it is not read, the hook says no.
async fn send(stream: &mut UnixStream, verdict: &Output) {
    let Ok(bytes) = frames::verdict_bytes(verdict) else { return };
    let sent = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await
    };
    drop(timeout(ANSWER_TIME, sent).await);
}

/// The process at the other end of a connection; 0 if it has ended.
fn peer_process(stream: &UnixStream) -> u32 {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    peer.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

/// A question, and the memory that it takes.
struct Received<'a> {
    question: Question,
    root: Root,
    _memory: Vec<SemaphorePermit<'a>>,
}

/// Waits until the other end has closed the connection, or says what nobody has asked for.
async fn until_closed(stream: &mut UnixStream) {
    drop(stream.read(&mut [0]).await);
}

/// Whether an error of accepting passes by itself.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::CONNABORTED, Errno::INTR];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|it| it.raw_os_error() == code))
}
