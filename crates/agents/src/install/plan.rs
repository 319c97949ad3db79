//! What an installation would change, in the order in which it is safe to change it.

use std::time::Duration;

use super::{difference, json_value::Json, settings_file::Change};
use crate::hook_line::{HookLine, mode::Mode};

/// How long a host waits for a hook that only passes news on.
const NEWS_TIMEOUT: Duration = Duration::from_secs(10);

/// The same at the end of a session, for which hosts allow little.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// What a person or a program wants to have installed.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The line that decides, with the time that the host waits for a decision.
    pub line: HookLine,
    /// For every user of the machine, where only its administrator can change it.
    pub is_managed: bool,
}

/// Changes to files, and what a person should know about them.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
    pub notes: Vec<String>,
}

/// Why a host runs our hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It waits for a verdict on a call.
    Decision,
    /// It tells what happens in a session.
    News,
    /// It tells that a session has ended.
    End,
}

/// An event of a host that we want to hear of.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub name: &'static str,
    /// The tools that it is for, where the host wants that said.
    pub matcher: Option<&'static str>,
    pub purpose: Purpose,
}

impl Event {
    pub const fn new(name: &'static str, matcher: Option<&'static str>, purpose: Purpose) -> Self {
        Self { name, matcher, purpose }
    }

    /// The line for this event.
    pub fn line(self, line: &HookLine) -> HookLine {
        match self.purpose {
            Purpose::Decision => line.clone(),
            Purpose::News => line.within(NEWS_TIMEOUT),
            Purpose::End => line.within(END_TIMEOUT),
        }
    }

    /// The text of the line for this event, for a shell.
    pub fn text(self, line: &HookLine) -> String {
        match self.purpose {
            Purpose::Decision => self.line(line).deciding(),
            Purpose::News | Purpose::End => self.line(line).for_shell(),
        }
    }

    /// A handler as Claude Code and Codex CLI want it.
    pub fn handler(self, line: &HookLine) -> Vec<(&'static str, Json)> {
        let seconds = self.line(line).host_timeout.as_secs();
        let mut handler = vec![
            ("type", Json::text("command")),
            ("command", Json::text(self.text(line))),
            ("timeout", Json::Number(seconds)),
        ];
        let waits = self.name == "PermissionRequest" || line.mode == Mode::Gate;
        if self.purpose == Purpose::Decision && waits {
            handler.push(("statusMessage", Json::text("Waiting for an approval")));
        }
        handler
    }

    /// A handler within its group, as three of the hosts want it.
    pub fn group(self, handler: Vec<(&'static str, Json)>) -> Json {
        let hooks = ("hooks", Json::List(vec![Json::Object(handler)]));
        let matcher = self.matcher.map(|matcher| ("matcher", Json::text(matcher)));
        Json::Object(matcher.into_iter().chain([hooks]).collect())
    }
}

impl Wish {
    /// The mode of a file that is new.
    pub fn new_mode(&self) -> u32 {
        if self.is_managed { 0o644 } else { 0o600 }
    }
}

impl Plan {
    /// Adds a change if it changes anything.
    pub fn add(&mut self, change: impl Into<Option<Change>>) {
        let Some(change) = change.into().filter(Change::is_needed) else { return };
        if let Some(target) = change.file.link_target() {
            self.notes.push(format!(
                "{} is a link; the file that changes is {}.",
                change.file.path().display(),
                target.display()
            ));
        }
        self.changes.push(change);
    }

    /// Adds what a person should know.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Everything that changes, as a unified diff.
    pub fn difference(&self) -> String {
        let of = |change: &Change| {
            let name = change.file.path().display().to_string();
            difference::unified(&name, change.file.text(), change.after.as_deref())
        };
        self.changes.iter().map(of).collect()
    }
}
