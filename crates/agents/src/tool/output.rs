//! Where words go: stdout is for programs, stderr for people.

use std::{
    future::Future,
    io::{self, IsTerminal as _, Write as _},
};

use countersign_client::payload::visible;
use countersign_wire::id::RequestId;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::exit::{Exit, Failure};

/// Writes a line to stdout. Who closes it early has seen enough.
pub fn out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, format!("the result can't be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one object to stdout, on one line.
pub fn object(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    out(&text.map_err(|error| Failure::new(Exit::Failed, format!("the result can't be written: {error}")))?)
}

/// What people are told while something is done for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Said {
    /// A line that stays.
    Line(String),
    /// What a line shows until the next one; empty if it shows nothing any longer.
    Status(String),
}

/// Whoever waits in another process.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Takes what is said.
    pub words: UnboundedSender<Said>,
    /// Whether people see it in a terminal.
    pub is_live: bool,
}

tokio::task_local! {
    static LISTENER: Listener;
}

/// Everything that a future says to people, it says to this listener instead of stderr.
pub async fn heard_by<T>(listener: Listener, future: impl Future<Output = T>) -> T {
    LISTENER.scope(listener, future).await
}

/// Writes a line to stderr. If nobody reads it, nothing more can be done.
pub fn say(text: &str) {
    if !is_heard(|| Said::Line(text.to_owned())) {
        drop(writeln!(io::stderr().lock(), "{text}"));
    }
}

/// Whether a listener takes it instead of stderr. One that is gone needs nothing.
fn is_heard(said: impl FnOnce() -> Said) -> bool {
    LISTENER.try_with(|listener| drop(listener.words.send(said()))).is_ok()
}

/// Whether people see stderr in a terminal, where a line can be written over.
pub fn is_live() -> bool {
    LISTENER.try_with(|listener| listener.is_live).unwrap_or_else(|_| {
        io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    })
}

/// A line of stderr that is written over until it is finished. Without a terminal it is not shown.
#[derive(Debug, Default)]
pub struct StatusLine {
    shown: String,
}

impl StatusLine {
    /// Shows the text in place of the one before.
    pub fn show(&mut self, text: &str) {
        if is_live() && self.shown != text {
            text.clone_into(&mut self.shown);
            write_over(text);
        }
    }

    /// Removes the line, so that others can be written.
    pub fn clear(&mut self) {
        if !std::mem::take(&mut self.shown).is_empty() {
            write_over("");
        }
    }
}

fn write_over(text: &str) {
    if !is_heard(|| Said::Status(text.to_owned())) {
        drop(write!(io::stderr().lock(), "\r\x1b[2K{text}"));
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The beginning of a request's id, which is enough for people to name it.
pub fn short(id: &RequestId) -> String {
    visible(&id.as_str().chars().take(8).collect::<String>())
}

/// A table of texts in columns, without a line after it.
pub fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_hears_what_would_be_on_stderr() {
        let (words, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let saying = async {
            say("one");
            let mut line = StatusLine::default();
            line.show("two");
            line.show("two");
            drop(line);
        };
        heard_by(Listener { words, is_live: true }, saying).await;
        let mut all = Vec::new();
        while let Some(said) = heard.recv().await {
            all.push(said);
        }
        let status = |text: &str| Said::Status(text.to_owned());
        assert_eq!(all, [Said::Line("one".to_owned()), status("two"), status("")]);
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "bb".to_owned()], vec!["ccc".to_owned(), "d".to_owned()]];
        assert_eq!(columns(&rows), "a    bb\nccc  d");
    }
}
