//! The process that a host starts where no keeper decides. It asks a worker for the verdict and answers for it if it dies, hangs or says nonsense.
//!
//! Most hosts do what they wanted when a hook crashes, is killed or is late, so this process does as little as possible
//! itself: read, start, wait, write.

use std::{
    io::{Read as _, Write as _},
    process::{ExitCode, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until, timeout},
};

use super::{
    attended::{Between, is_attended},
    engine, outcome,
    start::Start,
};
use crate::{
    calls::{message::Message, verdict::Verdict},
    platform::end_with_parent,
};

/// The largest verdict of a worker.
const MAX_VERDICT: u64 = 4 << 20;

/// How much of what a dead worker has said is repeated.
const MAX_LAST_WORDS: usize = 300;

/// How long a worker may take to take its request back.
const WITHDRAW_TIME: Duration = Duration::from_secs(2);

/// Answers one event of the host. Whatever happens, the exit code and both outputs say it in the host's format.
pub async fn supervise(start: &Start) -> ExitCode {
    outcome::deny_on_panic();
    let began = Instant::now();
    let attended = is_attended(start.host, std::process::id());
    let (text, message) = match read_message().await {
        Ok((text, message)) => (text, message.value),
        Err(words) => return outcome::unread(start.host, &words),
    };
    outcome::begin(start.host, &message);
    let verdict = ask_worker(start, &text, began, attended).await;
    let verdict = verdict.unwrap_or_else(|words| outcome::on_failure(start, &message, attended, words));
    outcome::end(&outcome::output(start.host, &message, &verdict))
}

/// Reads all of the standard input, on a thread of its own: a host may keep it open. The worker gets the same bytes.
async fn read_message() -> Result<(Vec<u8>, Message), String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut text = Vec::new();
        std::io::stdin().lock().take(outcome::MAX_MESSAGE + 1).read_to_end(&mut text).map(|_| text)
    });
    outcome::parsed(read.await.unwrap_or_else(|error| Err(std::io::Error::other(error))))
}

/// The worker's verdict, or why there is none.
async fn ask_worker(
    start: &Start,
    message: &[u8],
    began: Instant,
    attended: bool,
) -> Result<Verdict, String> {
    let deadline = began + start.supervisor_time();
    let failed = |error: std::io::Error| format!("The hook could not be started: {error}.");
    let mut child = worker(start, attended)?.spawn().map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let stopped_waiting = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = Between::broken(start.host, std::process::id()) => {}
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
    if end_with_parent().is_err() {
        return ExitCode::FAILURE;
    }
    let settings = start.settings(Instant::now(), attended);
    let verdict = match (read_message().await, settings) {
        (Ok((_, message)), Ok(settings)) => engine::verdict(&settings, &message).await,
        (Ok((_, message)), Err(failure)) => {
            outcome::on_failure(start, &message.value, attended, failure.to_string())
        }
        (Err(words), _) => Verdict::failed(words),
    };
    let Ok(text) = serde_json::to_string(&verdict) else { return ExitCode::FAILURE };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
