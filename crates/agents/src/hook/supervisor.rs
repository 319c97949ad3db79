//! The process that a host starts. It asks a worker for the verdict and answers for it if it dies, hangs or says nonsense.
//!
//! Most hosts do what they wanted when a hook crashes, is killed or is late, so this process does as little as possible
//! itself: read, start, wait, write.

use std::{
    io::{Read as _, Write as _},
    process::{ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    attended::{Between, is_attended},
    engine,
    settings::Settings,
};
use crate::{
    calls::{
        event::{Kind, Moment},
        message::Message,
        verdict::Verdict,
    },
    hook_line::{deadlines::margin, mode::Mode, place::Place},
    hosts::{Host, output::Output},
    tool::exit::Failure,
};

/// The largest message that is read.
const MAX_MESSAGE: u64 = 16 << 20;

/// The largest verdict of a worker.
const MAX_VERDICT: u64 = 4 << 20;

/// How much of what a dead worker has said is repeated.
const MAX_LAST_WORDS: usize = 300;

/// How long a worker may take to take its request back.
const WITHDRAW_TIME: Duration = Duration::from_secs(2);

/// Whether the event decides something, which it does until it is known. At others, a denial would stop the agent itself.
static DECIDES: AtomicBool = AtomicBool::new(true);

/// How the hook was started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program that asks.
    pub host: Host,
    /// What the hook is for.
    pub mode: Mode,
    /// After how long the host stops waiting.
    pub host_timeout: Duration,
    /// For how long people can answer, where the run ends and is resumed.
    pub defer_for: Option<Duration>,
    /// Where rules and profiles are.
    pub place: Place,
    /// The profile to ask with.
    pub profile: Option<String>,
}

/// How often it is looked whether the host still waits.
const LOOK_TIME: Duration = Duration::from_millis(500);

impl Start {
    fn settings(&self, began: Instant, attended: bool) -> Result<Settings, Failure> {
        Ok(Settings {
            host: self.host,
            mode: self.mode,
            attended,
            deadline: began + self.host_timeout.saturating_sub(margin(self.host_timeout)),
            defer_for: self.defer_for,
            home: self.place.home()?,
            profile: self.profile.clone(),
        })
    }
}

/// Answers one event of the host. Whatever happens, the exit code and both outputs say it in the host's format.
pub async fn supervise(start: &Start) -> ExitCode {
    deny_on_panic();
    let began = Instant::now();
    let attended = is_attended(start.host);
    let (message, verdict) = match read_message().await {
        Ok(message) => {
            let (text, Message { value, .. }) = message;
            DECIDES.store(start.host.decides(start.host.event_name(&value)), Ordering::Relaxed);
            let verdict = ask_worker(start, &text, began, attended).await;
            let verdict = verdict.unwrap_or_else(|words| on_failure(start, &value, attended, words));
            (value, verdict)
        }
        Err(words) => (Value::Null, Verdict::failed(words)),
    };
    let event = start.host.event_name(&message);
    let output = match start.host.decides(event) || !matches!(verdict, Verdict::Deny { .. }) {
        true => start.host.write(event, &message, &verdict),
        // What decides nothing can't be denied.
        false => Output::default(),
    };
    end(&output)
}

/// A panic must not look like an exit code that hosts take for consent.
fn deny_on_panic() {
    std::panic::set_hook(Box::new(|_| {
        if !DECIDES.load(Ordering::Relaxed) {
            std::process::exit(0);
        }
        let words = b"Countersign failed, and denies what was asked. Please report this.\n";
        drop(std::io::stderr().write_all(words));
        std::process::exit(2);
    }));
}

fn end(output: &Output) -> ExitCode {
    let written = std::io::stdout().write_all(output.stdout.as_bytes());
    let written = written.and_then(|()| std::io::stdout().flush());
    drop(std::io::stderr().write_all(output.stderr.as_bytes()));
    if written.is_ok() {
        return ExitCode::from(output.code);
    }
    // Nobody has read the verdict: then it is a denial, in the only way that is left.
    drop(std::io::stderr().write_all(b"Countersign could not write its verdict.\n"));
    ExitCode::from(2)
}

/// Reads all of the standard input, on a thread of its own: a host may keep it open. The worker gets the same bytes.
async fn read_message() -> Result<(Vec<u8>, Message), String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut text = Vec::new();
        std::io::stdin().lock().take(MAX_MESSAGE + 1).read_to_end(&mut text).map(|_| text)
    });
    let Ok(Ok(text)) = read.await else {
        return Err("The host's message could not be read.".to_owned());
    };
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_MESSAGE) {
        return Err(format!("The host's message is larger than {} MB.", MAX_MESSAGE >> 20));
    }
    match Message::read(&text) {
        Some(message) => Ok((text, message)),
        None => Err("The host's message is no JSON object that all readers understand alike.".to_owned()),
    }
}

/// Without a verdict: back to the host's own prompt if somebody sees it, else denied.
fn on_failure(start: &Start, message: &Value, attended: bool, words: String) -> Verdict {
    let event = start.host.read(message);
    let is_relayed = start.mode == Mode::Relay && attended;
    match event.map(|event| event.kind) {
        Ok(Kind::Call { moment: Moment::WouldAsk, .. }) if is_relayed => {
            Verdict::NoOpinion { cause: Some(words) }
        }
        Ok(Kind::News(_) | Kind::Other) => Verdict::silent(),
        _ => Verdict::failed(format!("{words} It was not done.")),
    }
}

/// The worker's verdict, or why there is none.
async fn ask_worker(
    start: &Start,
    message: &[u8],
    began: Instant,
    attended: bool,
) -> Result<Verdict, String> {
    let deadline = began + start.host_timeout.saturating_sub(margin(start.host_timeout) / 2);
    let failed = |error: std::io::Error| format!("The hook could not be started: {error}.");
    let mut child = worker(start, attended)?.spawn().map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let stopped_waiting = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = host_is_gone(start.host) => {}
        }
    };
    tokio::select! {
        ended = converse(&mut child, message) => ended,
        // It is late itself, so it hangs; its request ends with its own deadline.
        () = sleep_until(deadline) => Err("Nobody answered in time.".to_owned()),
        () = stopped_waiting => {
            stop(&mut child).await;
            Err("The host has stopped waiting.".to_owned())
        }
    }
}

/// Waits until the host, or what is between it and this process, has ended.
async fn host_is_gone(host: Host) {
    let between = Between::now(host);
    loop {
        sleep(LOOK_TIME).await;
        if between.is_broken() {
            return;
        }
    }
}

/// This program again, as the worker.
fn worker(start: &Start, attended: bool) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("The hook can't find itself: {error}."))?;
    let mut command = Command::new(program);
    command.args(["hook", start.host.word(), "--worker", "--host-timeout"]);
    command.arg(start.host_timeout.as_secs_f64().to_string());
    command.args(["--mode", start.mode.word()]);
    if attended {
        command.arg("--attended");
    }
    if let Some(time) = start.defer_for {
        command.arg("--defer-for").arg(format!("{}s", time.as_secs()));
    }
    command.args(start.place.arguments());
    if let Some(profile) = &start.profile {
        command.arg("--profile").arg(profile);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Gives the worker the message and takes its verdict, which counts only if it ends well.
async fn converse(child: &mut Child, message: &[u8]) -> Result<Verdict, String> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("The hook has no pipes.".to_owned());
    };
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let ((), read, _) = tokio::join!(
        async {
            // A worker that does not read it has its own reason, and says it.
            drop(stdin.write_all(message).await);
            drop(stdin);
        },
        async { stdout.take(MAX_VERDICT).read_to_end(&mut said).await },
        async { stderr.take(MAX_VERDICT).read_to_end(&mut complained).await },
    );
    let status = child.wait().await.map_err(|error| format!("The hook's end was not seen: {error}."))?;
    let verdict = read.ok().and_then(|_| serde_json::from_slice(&said).ok());
    match (status.success(), verdict) {
        (true, Some(verdict)) => Ok(verdict),
        _ => Err(format!("The hook ended without a verdict ({status}). {}", last_words(&complained))),
    }
}

fn last_words(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let text = text.trim();
    let start = text.char_indices().rev().nth(MAX_LAST_WORDS).map_or(0, |(start, _)| start);
    text[start..].to_owned()
}

/// Lets a worker take its request back, and ends it if it does not.
async fn stop(child: &mut Child) {
    if let Some(id) =
        child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    {
        // If it is gone already, so much the better.
        let _gone = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    if timeout(WITHDRAW_TIME, child.wait()).await.is_err() {
        drop(child.kill().await);
    }
}

/// The worker: reads the message again and writes the verdict as JSON.
pub async fn work(start: &Start, attended: bool) -> ExitCode {
    // Without its supervisor nobody reads the verdict: then the request is taken back.
    let terminate = rustix::process::Signal::TERM;
    if rustix::process::set_parent_process_death_signal(Some(terminate)).is_err() {
        return ExitCode::FAILURE;
    }
    let settings = start.settings(Instant::now(), attended);
    let verdict = match (read_message().await, settings) {
        (Ok((_, message)), Ok(settings)) => engine::verdict(&settings, &message).await,
        (Ok((_, message)), Err(failure)) => on_failure(start, &message.value, attended, failure.to_string()),
        (Err(words), _) => Verdict::failed(words),
    };
    let Ok(text) = serde_json::to_string(&verdict) else { return ExitCode::FAILURE };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
