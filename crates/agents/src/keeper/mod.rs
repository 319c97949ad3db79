//! The keeper: one process that decides for all hooks of a user or of a machine, and waits for what comes next.
//!
//! Whoever calls may be an agent that means harm: everything is bounded for each account, in time, number and memory, and a
//! caller that hangs up takes its question back.

mod accounts;
mod portion;
mod proposals;

use std::{io, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, SemaphorePermit, watch},
    time::{Instant, sleep, timeout},
};

pub use self::accounts::served_home;
use self::{
    accounts::{Account, Accounts, Others},
    portion::{ANSWER_TIME, MAX_OPEN, PLACE_TIME, Portion},
    proposals::Proposed,
};
use crate::{
    call_socket::{
        frames::{self, FrameError, MAX_TIME, Question},
        place::own_user,
        root,
    },
    calls::{message::Message, verdict::Verdict},
    hook::{
        attended::{Between, is_attended},
        ears::Ears,
        engine, outcome,
        settings::Settings,
    },
    hook_line::{deadlines::margin, mode::Mode},
    hosts::{self, Host, output::Output},
    platform::peer_user,
    proposals::kept,
    rules::policy,
    tool::{
        caller,
        files::{Folder, Root},
        home::Home,
    },
};

/// What decides for the hooks of one user, or of all that it knows.
#[derive(Debug)]
pub struct Keeper {
    accounts: Accounts,
}

/// Who calls: a number, and the account if it is one that the keeper decides for, or what to tell it.
struct Caller {
    user: u32,
    account: Result<Arc<Account>, String>,
}

impl Keeper {
    /// For this user, with the rules and profiles of a home.
    pub fn new(home: Home) -> Arc<Self> {
        Arc::new(Self { accounts: Accounts::Own(Account::new(home)) })
    }

    /// For every user that has a home in a folder, with the rules and profiles of that.
    pub fn of_accounts(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self { accounts: Accounts::Others(Others::in_folder(folder)) })
    }

    /// Answers whoever calls, for as long as callers can be heard.
    pub async fn serve(self: Arc<Self>, listener: UnixListener) -> io::Error {
        loop {
            // Callers of one account may wait in the system's queue. Of several, nobody may wait there for another.
            let place = match &self.accounts {
                Accounts::Own(own) => own.portion.place().await,
                Accounts::Others(_) => None,
            };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // Descriptors may be short; those that are open end by themselves.
                Err(error) if is_passing(&error) => {
                    sleep(PLACE_TIME).await;
                    continue;
                }
                Err(error) => return error,
            };
            if let Some(caller) = self.caller(&stream) {
                let keeper = Arc::clone(&self);
                tokio::spawn(async move { Box::pin(keeper.hear(caller, stream, place)).await });
            }
        }
    }

    /// Who is at the other end; `None` if it is to be hung up on.
    fn caller(&self, stream: &UnixStream) -> Option<Caller> {
        let user = peer_user(stream)?;
        let account = match &self.accounts {
            Accounts::Own(own) => (user == own_user()).then(|| Ok(Arc::clone(own)))?,
            Accounts::Others(others) => others.account(user),
        };
        Some(Caller { user, account })
    }

    fn portion<'a>(&'a self, caller: &'a Caller) -> &'a Portion {
        match &self.accounts {
            Accounts::Own(own) => &own.portion,
            Accounts::Others(others) => others.portion(caller.account.as_ref().ok()),
        }
    }

    async fn hear(&self, caller: Caller, stream: UnixStream, place: Option<OwnedSemaphorePermit>) {
        let place = match place {
            Some(place) => Some(place),
            None => self.portion(&caller).place_in_turn().await,
        };
        if let Some(place) = place {
            self.converse(&caller, stream, place).await;
        }
    }

    async fn converse(&self, caller: &Caller, mut stream: UnixStream, place: OwnedSemaphorePermit) {
        let began = Instant::now();
        let account = match &caller.account {
            Ok(account) => account,
            Err(words) => return refuse(&mut stream, words).await,
        };
        let question = tokio::select! {
            question = question(&mut stream, caller) => question,
            // Whoever has not asked needs no answer: its hook says no.
            () = account.portion.sending_time_is_over() => return,
        };
        let verdict = match question {
            Err(FrameError::Io(_)) => return,
            Err(error) => {
                // It keeps its place meanwhile.
                let words = format!("The keeper did not understand the hook: {error}.");
                return refuse(&mut stream, &words).await;
            }
            Ok(received) => {
                drop(place);
                match (account.home(&self.accounts), received.subject) {
                    (Err(words), _) => Some(Output::refused(&words)),
                    (Ok(home), Subject::Call(question)) => {
                        let asked = (question, received.root);
                        answer(account, home, asked, &mut stream, began).await
                    }
                    (Ok(home), Subject::Proposal(proposed)) => {
                        let asked = proposals::Received { proposed, root: received.root, user: caller.user };
                        return proposals::answer(account, home, asked, stream).await;
                    }
                }
            }
        };
        if let Some(verdict) = verdict {
            send(&mut stream, &verdict).await;
        }
    }
}

/// Says no to whoever has not been understood.
async fn refuse(stream: &mut UnixStream, words: &str) {
    send(stream, &Output::refused(words)).await;
    // Closed before all is read, the connection would be reset, and the verdict lost.
    drop(timeout(ANSWER_TIME, tokio::io::copy(stream, &mut tokio::io::sink())).await);
}

/// Reads a question of an account. Each part takes its memory before it is read.
async fn question<'a>(stream: &mut UnixStream, caller: &'a Caller) -> Result<Received<'a>, FrameError> {
    let Caller { user, account: Ok(account) } = caller else { return Err(FrameError::Root) };
    let mut version = [0; 4];
    let receiving = || root::receive(&*stream, &mut version);
    let (count, folders) = stream.async_io(Interest::READABLE, receiving).await?;
    stream.read_exact(version.get_mut(count..).unwrap_or_default()).await?;
    if ![frames::VERSION, frames::PROPOSAL].contains(&version) {
        return Err(FrameError::Version);
    }
    if !(1..=root::MAX_FOLDERS).contains(&folders.len()) {
        return Err(FrameError::Root);
    }
    let acquired = |length: usize| async move {
        let kilobytes = u32::try_from(length.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let permit = account.portion.memory.acquire_many(kilobytes).await;
        permit.map_err(|_| FrameError::Malformed("the question"))
    };
    let (parts, memory) = frames::read_parts(stream, acquired).await?;
    let subject = match version {
        frames::PROPOSAL => Subject::Proposal(Box::new(kept::proposed(parts)?)),
        _ => Subject::Call(Question::from_parts(parts)?),
    };
    let root = seen(folders, subject.caller(), *user != own_user()).ok_or(FrameError::Root)?;
    Ok(Received { subject, root, _memory: memory })
}

/// What a caller has handed over to look for files in: its root and, if it is anywhere, its folder.
fn seen(folders: Vec<OwnedFd>, caller: &caller::Caller, is_of_another: bool) -> Option<Root> {
    let mut folders = folders.into_iter();
    let root = folders.next()?;
    let path = caller.folder.clone();
    let folder = folders.next().zip(path).map(|(open, path)| Folder { open, path });
    Root::of_caller(root, folder, is_of_another).ok()
}

/// What the hook says; `None` if it has hung up.
async fn answer(
    account: &Account,
    home: &Home,
    (question, root): (Question, Root),
    stream: &mut UnixStream,
    began: Instant,
) -> Option<Output> {
    let hook = peer_process(stream);
    let (waiting, hung_up) = watch::channel(());
    let message = Message::read(&question.message);
    let Some(settings) = settings(home, question, hook, began, hung_up, &account.ears) else {
        return Some(Output::refused("The keeper does not know this host or mode. It was not done."));
    };
    let Some(message) = message else {
        return Some(outcome::output(settings.host, &Value::Null, &Verdict::failed(outcome::NO_OBJECT)));
    };
    let verdict = if let Ok(_open) = account.portion.open.try_acquire() {
        Box::pin(root.seen_by(decide(&settings, &message, stream, hook, waiting))).await?
    } else {
        let words = format!("{MAX_OPEN} calls wait for an answer already.");
        root.seen_by(async { settings.without_verdict(&message.value, &words) }).await
    };
    Some(outcome::output(settings.host, &message.value, &verdict))
}

fn settings(
    home: &Home,
    question: Question,
    hook: u32,
    began: Instant,
    hung_up: watch::Receiver<()>,
    ears: &Arc<Ears>,
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
        home: home.clone(),
        profile: start.profile,
        caller,
        hung_up: Some(hung_up),
        ears: Some(Arc::clone(ears)),
    })
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
    let Ok(bytes) = frames::part_bytes(verdict) else { return };
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
    subject: Subject,
    root: Root,
    _memory: Vec<SemaphorePermit<'a>>,
}

/// What is asked about.
enum Subject {
    /// A call of an agent, by a hook.
    Call(Question),
    /// What a command of the tool proposes.
    Proposal(Box<Proposed>),
}

impl Subject {
    fn caller(&self) -> &caller::Caller {
        match self {
            Self::Call(question) => &question.caller,
            Self::Proposal(proposed) => &proposed.1,
        }
    }
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
