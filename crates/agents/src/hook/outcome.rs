//! What the process that a host starts has in common, whoever decides: the message is read, the verdict is written, and whatever
//! fails is a no.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::Value;

use super::start::Start;
use crate::{
    calls::{
        event::{Kind, Moment},
        message::Message,
        verdict::Verdict,
    },
    hook_line::mode::Mode,
    hosts::{Host, output::Output},
    tool::caller::Caller,
};

/// What is said of a message that can't be read.
pub const NO_OBJECT: &str = "The host's message is no JSON object that all readers understand alike.";

/// The largest message that is read.
pub(super) const MAX_MESSAGE: u64 = 16 << 20;

/// Whether the event decides something, which it does until it is known. At others, a denial would stop the agent itself.
static DECIDES: AtomicBool = AtomicBool::new(true);

/// A panic must not look like an exit code that hosts take for consent.
pub(super) fn deny_on_panic() {
    std::panic::set_hook(Box::new(|_| {
        if !DECIDES.load(Ordering::Relaxed) {
            std::process::exit(0);
        }
        let words = b"Countersign failed, and denies what was asked. Please report this.\n";
        drop(io::stderr().write_all(words));
        std::process::exit(2);
    }));
}

/// A message as it was read, or why there is none.
pub(super) fn parsed(read: io::Result<Vec<u8>>) -> Result<(Vec<u8>, Message), String> {
    let Ok(text) = read else { return Err("The host's message could not be read.".to_owned()) };
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_MESSAGE) {
        return Err(format!("The host's message is larger than {} MB.", MAX_MESSAGE >> 20));
    }
    match Message::read(&text) {
        Some(message) => Ok((text, message)),
        None => Err(NO_OBJECT.to_owned()),
    }
}

/// From now on a panic means what a denial of this message would mean.
pub(super) fn begin(host: Host, message: &Value) {
    DECIDES.store(host.decides(host.event_name(message)), Ordering::Relaxed);
}

/// A verdict on a message in the host's format.
pub fn output(host: Host, message: &Value, verdict: &Verdict) -> Output {
    let event = host.event_name(message);
    match host.decides(event) || !matches!(verdict, Verdict::Deny { .. }) {
        true => host.write(event, message, verdict),
        // What decides nothing can't be denied.
        false => Output::default(),
    }
}

/// The end for a message that can't be read.
pub(super) fn unread(host: Host, words: &str) -> ExitCode {
    end(&output(host, &Value::Null, &Verdict::failed(words)))
}

/// Writes what a host is answered. The exit code is part of it.
pub(super) fn end(output: &Output) -> ExitCode {
    let written = io::stdout().write_all(output.stdout.as_bytes());
    let written = written.and_then(|()| io::stdout().flush());
    drop(io::stderr().write_all(output.stderr.as_bytes()));
    if written.is_ok() {
        return ExitCode::from(output.code);
    }
    // Nobody has read the verdict: then it is a denial, in the only way that is left.
    drop(io::stderr().write_all(b"Countersign could not write its verdict.\n"));
    ExitCode::from(2)
}

/// Without a verdict: back to the host's own prompt if somebody sees it, else denied.
pub(super) fn on_failure(start: &Start, message: &Value, attended: bool, words: String) -> Verdict {
    let event = start.host.read(message, &Caller::this_process());
    let is_relayed = start.mode == Mode::Relay && attended;
    match event.map(|event| event.kind) {
        Ok(Kind::Call { moment: Moment::WouldAsk, .. }) if is_relayed => {
            Verdict::NoOpinion { cause: Some(words) }
        }
        Ok(Kind::News(_) | Kind::Other) => Verdict::silent(),
        _ => Verdict::failed(format!("{words} It was not done.")),
    }
}
