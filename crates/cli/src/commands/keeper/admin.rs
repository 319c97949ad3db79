//! What an account may do about what the machine's keeper keeps for it: look, tighten, and propose other rules.
//!
//! There is no language for administration: a short list of commands of this tool runs for the account, in its home in the
//! keeper's folder. What loosens is root's, or asks a paired device.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_agents::{
    call_socket::{
        frames::{part_bytes, read_part},
        place::CallSocket,
    },
    keeper::served_home,
    platform::peer_user,
    tool::{
        exit::{Exit, Failure},
        home::ACCOUNTS,
        output::{out, say},
    },
};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    process::{Child, Command},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{sleep, timeout},
};

use super::{super::options::Options, own_home::in_home};

/// How long a caller may take to send a question, and to take a part of the answer.
const CALL_TIME: Duration = Duration::from_secs(5);

/// How long a command may run: people may be asked.
const RUN_TIME: Duration = Duration::from_mins(11);

/// How long a command may take to take back what it has asked.
const END_TIME: Duration = Duration::from_secs(6);

/// The largest question, in bytes: a file of rules as JSON, and more.
const MAX_QUESTION: usize = 600 << 10;

/// The largest part of an answer, in bytes.
const MAX_PART: usize = 64 << 10;

/// How many parts a command may say.
const MAX_PARTS: usize = 20_000;

/// How many connections of one account may be open, each with a command.
const MAX_FOR_ACCOUNT: usize = 4;

/// What somebody wants to be run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    command: Vec<String>,
    json: bool,
    /// What the command reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
}

/// What comes of it, one part after the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Reply {
    /// A line of its standard output.
    Out(String),
    /// A line of its standard error.
    Err(String),
    /// The end, with its exit code.
    Ended(u8),
}

/// The words that run for a question; `None` if they are not for everybody.
fn allowed(command: &[String]) -> Option<Vec<&str>> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words[..] {
        ["status" | "devices" | "grants" | "history"]
        | ["devices" | "grants", "list"]
        | ["rules", "show"] => Some(words),
        ["devices" | "grants", "revoke", name] if is_name(name) => Some(words),
        ["rules", "set", "-"] => Some(vec!["rules", "set", "--ask", "-"]),
        _ => None,
    }
}

/// Whether a word is an id or a key, and no option.
fn is_name(word: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.:".contains(char);
    (1..=128).contains(&word.len()) && !word.starts_with('-') && word.chars().all(is_plain)
}

// --- the keeper's end ---

/// Listens where people administer.
pub(super) fn listen() -> io::Result<UnixListener> {
    UnixListener::from_std(CallSocket::admin_of_system().bind()?)
}

/// Answers whoever calls, for as long as callers can be heard.
pub(super) async fn serve(listener: Option<UnixListener>) -> io::Error {
    let Some(listener) = listener else { return std::future::pending().await };
    let mut places: HashMap<Option<u32>, Arc<Semaphore>> = HashMap::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors may be short; those that are open end by themselves.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(user) = peer_user(&stream) else { continue };
        let home = served_home(Path::new(ACCOUNTS), user);
        // Those that are not set up share what one has.
        let own = places.entry(home.is_ok().then_some(user));
        let own = own.or_insert_with(|| Arc::new(Semaphore::new(MAX_FOR_ACCOUNT)));
        // Whoever has too many open is hung up on.
        if let Ok(place) = Arc::clone(own).try_acquire_owned() {
            tokio::spawn(answer(stream, home, place));
        }
    }
}

async fn answer(mut stream: UnixStream, home: Result<PathBuf, String>, _place: OwnedSemaphorePermit) {
    let Ok(Ok(Some(text))) = timeout(CALL_TIME, read_part(&mut stream, MAX_QUESTION)).await else { return };
    let home = match home {
        Ok(home) => home,
        Err(words) => return refuse(&mut stream, words, Exit::NotSetUp).await,
    };
    let question: Option<Question> = serde_json::from_slice(&text).ok();
    let words = question.as_ref().and_then(|question| allowed(&question.command));
    let (Some(question), Some(words)) = (&question, words) else {
        return refuse(&mut stream, "That is for root: run it with sudo.".to_owned(), Exit::Usage).await;
    };
    match start(question, &words, &home) {
        Ok(child) => drop(timeout(RUN_TIME, run(child, question.input.clone(), &mut stream)).await),
        Err(error) => {
            refuse(&mut stream, format!("It can't be run for the keeper: {error}."), Exit::Failed).await;
        }
    }
}

/// Says why nothing was run.
async fn refuse(stream: &mut UnixStream, words: String, exit: Exit) {
    let _ = send(stream, &Reply::Err(format!("✗ {words}"))).await
        && send(stream, &Reply::Ended(exit.code())).await;
}

fn start(question: &Question, words: &[&str], home: &Path) -> io::Result<Child> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(question.json.then_some("--json")).args(words);
    in_home(&mut command, home).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if question.input.is_some() { Stdio::piped() } else { Stdio::null() });
    Command::from(command).kill_on_drop(true).spawn()
}

/// Says what the command says, until it ends. A caller that is gone ends it.
async fn run(mut child: Child, input: Option<String>, stream: &mut UnixStream) {
    let (lines, mut said) = mpsc::channel(16);
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    }
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        tokio::spawn(pass_on(stdout, lines.clone(), Reply::Out));
        tokio::spawn(pass_on(stderr, lines, Reply::Err));
    }
    let (mut reader, mut writer) = stream.split();
    let passing = async {
        for _ in 0..MAX_PARTS {
            let Some(reply) = said.recv().await else { return true };
            if !send(&mut writer, &reply).await {
                return false;
            }
        }
        false
    };
    let is_whole = tokio::select! {
        is_whole = passing => is_whole,
        // The caller says nothing more, so this is its end.
        _ = async { reader.read(&mut [0]).await } => false,
    };
    if is_whole && let Ok(status) = child.wait().await {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        send(&mut writer, &Reply::Ended(code.unwrap_or(Exit::Failed.code()))).await;
        return;
    }
    // It takes back what it has asked.
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
    drop(timeout(END_TIME, child.wait()).await);
}

/// Passes on lines of an output, of at most [`MAX_PART`] bytes.
async fn pass_on(output: impl AsyncRead + Unpin, lines: mpsc::Sender<Reply>, reply: fn(String) -> Reply) {
    let mut output = BufReader::new(output);
    let limit = u64::try_from(MAX_PART / 8).unwrap_or(u64::MAX);
    loop {
        let mut line = Vec::new();
        match (&mut output).take(limit).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
        if lines.send(reply(line)).await.is_err() {
            return;
        }
    }
}

/// Says something, and whether it was taken in time.
async fn send(stream: &mut (impl tokio::io::AsyncWrite + Unpin), reply: &Reply) -> bool {
    let Ok(bytes) = part_bytes(reply) else { return false };
    timeout(CALL_TIME, stream.write_all(&bytes)).await.is_ok_and(|written| written.is_ok())
}

// --- the person's end ---

/// Has a command run for this account, and says what it says.
pub(super) async fn ask(command: &[OsString], options: &Options) -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format!("the keeper can't be asked: {error}"));
    let question = question(command, options)?;
    let socket = CallSocket::admin_of_system();
    let stream = socket.connect(CALL_TIME).map_err(|error| {
        let what = format!("the keeper does not answer at {}: {error}", socket.path().display());
        Failure::new(Exit::Unreachable, what).next(format!("start it with `{}`", socket.remedy()))
    })?;
    stream.set_nonblocking(true).map_err(failed)?;
    let mut stream = UnixStream::from_std(stream).map_err(failed)?;
    let bytes = part_bytes(&question).map_err(|error| Failure::new(Exit::Failed, error))?;
    stream.write_all(&bytes).await.map_err(failed)?;
    loop {
        let part = read_part(&mut stream, MAX_PART).await;
        let part = part.ok().flatten().and_then(|part| serde_json::from_slice(&part).ok());
        match part {
            Some(Reply::Out(line)) => out(&line)?,
            Some(Reply::Err(line)) => say(&line),
            Some(Reply::Ended(code)) => return Ok(ExitCode::from(code)),
            None => {
                return Err(Failure::new(Exit::Failed, "the keeper ended without an answer").next(format!(
                    "it may have too many questions of yours; try again, or `{}`",
                    socket.remedy()
                )));
            }
        }
    }
}

/// The question for a command. The keeper can't read the person's files, so it gets the text of a file of rules.
fn question(command: &[OsString], options: &Options) -> Result<Question, Failure> {
    let words = command.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let mut words = words.ok_or_else(|| Failure::new(Exit::Usage, "the command is not UTF-8 text"))?;
    let is_json = words.iter().any(|word| word == "--json");
    words.retain(|word| word != "--json");
    let mut input = None;
    if let [rules, set, file] = &mut words[..]
        && (rules == "rules" && set == "set")
    {
        input = Some(super::super::set_rules::text_of(Path::new(file.as_str()))?);
        "-".clone_into(file);
    }
    match allowed(&words) {
        Some(_) => Ok(Question { command: words, json: options.json || is_json, input }),
        None => Err(Failure::new(
            Exit::Usage,
            format!("`{}` is for root: it could loosen what the keeper keeps", words.join(" ")),
        )
        .next(
            "run it with sudo; without, there are status, devices, grants, history, rules show, rules set FILE, \
             devices revoke KEY and grants revoke ID",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_loosens_is_for_everybody() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for text in [
            "status",
            "devices",
            "devices list",
            "grants list",
            "history",
            "rules show",
            "devices revoke 9F3C-41AA",
        ] {
            assert_eq!(allowed(&words(text)).unwrap().join(" "), text);
        }
        assert_eq!(allowed(&words("rules set -")).unwrap().join(" "), "rules set --ask -");
        for text in [
            "rules suggest",
            "rules suggest --add 8c1f2e",
            "rules set /etc/passwd",
            "rules set --ask -",
            "rules init",
            "join",
            "pair",
            "keys export",
            "devices revoke --home",
            "devices revoke ../x",
            "devices --home",
            "devices update",
            "status --profile",
            "exec -- true",
            "approve x",
            "",
        ] {
            assert_eq!(allowed(&words(text)), None, "{text}");
        }
    }
}
