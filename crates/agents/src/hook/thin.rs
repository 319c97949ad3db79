//! The hook of a machine with a keeper, as a program of its own: it asks, and repeats what it is told.
//!
//! It runs before every call of an agent, so it has nothing in it that it does not need: no host, no rule, no parser. Whatever
//! else comes up, the whole tool takes its place, which knows how to say no to each host.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    call_socket::{
        client,
        frames::{self, MAX_TIME},
        place::CallSocket,
    },
    hook_line::{deadlines::supervisor_limit, line_options},
    hosts::output::Output,
    platform::in_memory,
};

/// Runs with the arguments of this process.
pub fn run() -> ExitCode {
    // A panic must not look like an exit code that hosts take for consent.
    std::panic::set_hook(Box::new(|_| {
        no("Countersign failed, and denies what was asked. Please report this.");
        std::process::exit(2);
    }));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match asked(&arguments) {
        Some(Ok(output)) => say(&output),
        Some(Err(Failed { message, words })) => whole_tool(&arguments, Some((&message, &words))),
        None => whole_tool(&arguments, None),
    }
}

/// What was read before it failed, and why it did.
struct Failed {
    message: Vec<u8>,
    words: String,
}

/// What the keeper answers; `None` if the arguments are not those that `countersign install` writes.
fn asked(arguments: &[OsString]) -> Option<Result<Output, Failed>> {
    let words: Vec<String> =
        arguments.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
    let [hook, host, options @ ..] = &words[..] else { return None };
    let (place, keeper, mode, host_timeout) = line_options(options)?;
    let keeper = keeper.filter(|_| hook == "hook" && place.profile_file.is_none())?;
    let deadline = Instant::now() + supervisor_limit(host_timeout.min(Duration::from_millis(MAX_TIME)));
    let failed = |message: &[u8], words: String| Failed { message: message.to_owned(), words };
    let Ok(message) = client::read_message(deadline) else {
        return Some(Err(failed(b"", "The host's message could not be read.".to_owned())));
    };
    let start = frames::Start {
        host: host.clone(),
        mode: mode.word().to_owned(),
        host_timeout: u64::try_from(host_timeout.as_millis()).unwrap_or(MAX_TIME),
        defer_for: None,
        profile: None,
    };
    let socket = CallSocket::of_line(keeper, &place);
    let answer = socket.and_then(|socket| client::ask(&socket, &start, &message, deadline));
    Some(answer.map_err(|words| failed(&message, words)))
}

fn say(Output { stdout, stderr, code }: &Output) -> ExitCode {
    let written = io::stdout().write_all(stdout.as_bytes()).and_then(|()| io::stdout().flush());
    drop(io::stderr().write_all(stderr.as_bytes()));
    match written {
        Ok(()) => ExitCode::from(*code),
        Err(_) => no("Countersign could not write its verdict."),
    }
}

/// The no that is left when nothing else works. Every host obeys this exit code.
fn no(words: &str) -> ExitCode {
    drop(io::stderr().write_all(format!("{words}\n").as_bytes()));
    ExitCode::from(2)
}

/// Runs the tool beside this program in its place: with the same arguments, or to say that asking has failed.
fn whole_tool(arguments: &[OsString], failed: Option<(&[u8], &str)>) -> ExitCode {
    let run = || -> io::Result<io::Error> {
        let mut command = Command::new(std::env::current_exe()?.with_file_name("countersign"));
        command.args(arguments);
        if let Some((message, words)) = failed {
            let input = in_memory("message", message, false)?;
            command.arg("--failed").arg(words).stdin(Stdio::from(input));
        }
        Ok(command.exec())
    };
    let error = run().unwrap_or_else(|error| error);
    let words = failed.map_or("The whole tool is needed here.", |(_, words)| words);
    no(&format!("{words} The program countersign beside this one can't be run: {error}. It was not done."))
}
