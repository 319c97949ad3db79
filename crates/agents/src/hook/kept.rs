//! The hook of a machine with a keeper, where the whole tool is run: it asks the keeper for the verdict, and says no without one.

use std::process::ExitCode;

use tokio::time::Instant;

use super::{attended::is_attended, outcome, start::Start};
use crate::{
    call_socket::{client, place::CallSocket},
    hook_line::{keeper::KeeperPlace, mode::Mode},
};

/// Answers one event of the host. `failed` says why asking has failed already. Whatever happens, the exit code and both outputs
/// say it in the host's format.
pub fn ask(start: &Start, keeper: KeeperPlace, failed: Option<String>) -> ExitCode {
    outcome::deny_on_panic();
    let deadline = Instant::now() + start.supervisor_time();
    let (text, message) = match outcome::parsed(client::read_message(deadline)) {
        Ok((text, message)) => (text, message.value),
        Err(words) => return outcome::unread(start.host, &words),
    };
    outcome::begin(start.host, &message);
    let asked = || {
        let socket = CallSocket::of_line(keeper, &start.place)?;
        client::ask(&socket, &start.said(), &text, deadline)
    };
    let answer = failed.map_or_else(asked, Err);
    outcome::end(&answer.unwrap_or_else(|words| {
        let attended = start.mode == Mode::Relay && is_attended(start.host, std::process::id());
        outcome::output(start.host, &message, &outcome::on_failure(start, &message, attended, words))
    }))
}
