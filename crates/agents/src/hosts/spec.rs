//! Everything about one host, in one place: what the rest of this crate asks of it.

use std::{
    fmt, io,
    ops::Deref,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::process::Command;

use super::{input::Unreadable, output::Output};
use crate::{
    calls::{call::Call, event::Event, message::Aside, verdict::Verdict},
    hook_line::{HookLine, host_name::HostName},
    install::{
        deciding_files::DecidingFile,
        inspection::Inspection,
        places::Places,
        plan::{Plan, Wish},
    },
    tool::{caller::Caller, exit::Failure, finding::Finding},
};

/// A program that runs an agent and can ask before the agent acts.
#[derive(Clone, Copy)]
pub struct Host(&'static HostSpec);

/// What a host is, and how it is spoken to.
#[derive(Debug)]
pub struct HostSpec {
    pub names: HostName,
    /// Who makes it, for `--help`.
    pub about: &'static str,
    /// The versions against which the hook was run, newest last.
    pub tested_versions: &'static [&'static str],
    /// Variables that keep it from updating itself.
    pub without_updates: &'static [(&'static str, &'static str)],
    /// Arguments with which it asks nobody.
    pub headless: &'static [&'static str],
    pub messages: Messages,
    pub files: Files,
    /// What it needs in a sandbox; absent if nothing there would make it obey its hook.
    pub contained: Option<Contained>,
    pub canary: Canary,
}

/// What goes through the hook.
#[derive(Debug)]
pub struct Messages {
    /// Reads what the host has written to the hook's standard input.
    pub read: fn(&Value, &Caller) -> Result<Event, Unreadable>,
    /// Writes a verdict on an event; the second argument is what the host has written.
    pub write: fn(&str, &Value, &Verdict) -> Output,
    /// The event that a message is, as far as that is known even of one that can't be read.
    pub event_name: fn(&Value) -> &str,
    /// The events that decide something: a failure there must deny.
    pub deciding: &'static [&'static str],
    /// Whether a verdict can carry the answers to an agent's questions. Elsewhere they are the words of a denial.
    pub takes_answers: bool,
    /// Where the arguments of a call are, as a JSON pointer, if a verdict on this message can carry others in their place. `None`
    /// where that is not sure: a host that does not know them would run the call that was rejected.
    pub edits: fn(&Value) -> Option<&'static str>,
    /// Whether the host's own prompt is on the screen while a hook waits. The first answer counts.
    pub asks_beside_hook: bool,
    /// Members of its messages that are no part of what a grant covers, each with its reason.
    pub aside: &'static [Aside],
    /// What a message about a call has in common with the host's other question about the same call, and with no other.
    /// `None` if the host says nothing that is sure: then people are asked again.
    pub join: fn(&Value) -> Option<String>,
    /// The calls in a line of a recorded session, made in a folder. Not every host records any.
    pub recorded: fn(&Value, &Path) -> Vec<Call>,
}

/// Where its settings are, and how the hook gets into them.
#[derive(Debug)]
pub struct Files {
    /// Its folder of the user.
    pub folder: fn(&Places) -> PathBuf,
    /// Every file that decides.
    pub deciding: &'static [DecidingFile],
    /// Variables that move its folder.
    pub variables: &'static [Variable],
    /// What has to change so that it runs the hook. Nothing is changed yet.
    pub install: fn(&Places, &Wish) -> Result<Plan, Failure>,
    /// What has to change so that it is as if the hook had never been there; the second argument: for every user.
    pub uninstall: fn(&Places, bool) -> Result<Plan, Failure>,
    /// Every place where its hook is, with what is wrong there.
    pub inspect: fn(&Places) -> Vec<Inspection>,
    /// What switches an installed hook off; the last argument is the folder in which the agent works.
    pub switches: fn(&Places, &Inspection, &Path) -> Vec<Finding>,
    /// What is left of an installation whose hook is gone.
    pub leftovers: fn(&Places, &[Inspection]) -> Option<Inspection>,
}

/// A variable that moves the folder of a host.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub moves: Moves,
}

/// What a variable moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// The folder, or a file of settings.
    Folder,
    /// The folder with what is beside it. Its name there, unless it is the usual one.
    Parent(Option<&'static str>),
}

/// What a host needs in a sandbox, and what makes it obey its hook there.
#[derive(Debug)]
pub struct Contained {
    /// Its own folders and files in the home of its user, without the variables that would move them.
    pub state: &'static [State],
    /// Variables that it is given if they are set, such as the key for its model.
    pub variables: &'static [&'static str],
    /// Arguments with which it would start without its hook.
    pub refused: &'static [&'static str],
    /// Whether its settings make it run tools in a sandbox of its own, too.
    pub has_own_sandbox: bool,
    /// The files that its users can't change, below the folder of administrators, with the hook in them.
    pub settings: fn(&Places, &HookLine) -> Result<FixedFiles, Failure>,
}

/// Files that users can't change, and what stands in them.
pub type FixedFiles = Vec<(PathBuf, String)>;

/// Something of a host's own in the home of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Folder(&'static str),
    /// With what stands in a new one.
    File(&'static str, &'static str),
}

/// How `doctor` makes the host try something harmless.
#[derive(Debug)]
pub struct Canary {
    /// Its tool for shell commands.
    pub tool: &'static str,
    /// The arguments of the tool for a command.
    pub arguments: fn(&str) -> Value,
    /// Makes it start with its person's settings, the model at this address, and its own checks switched off: only the hook
    /// stands in between. The folder is empty and for files that it needs.
    pub start: fn(&mut Command, &str, &Path) -> io::Result<()>,
    /// What to try first if it did not ask the hook.
    pub unasked: Option<&'static str>,
}

/// What hosts are given as the key for the model of `doctor`.
pub const CANARY_KEY: &str = "countersign-doctor";

impl Host {
    pub const fn new(spec: &'static HostSpec) -> Self {
        Self(spec)
    }

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        self.0.names.word
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        self.0.names.name
    }

    /// What it needs in a sandbox.
    pub fn contained(self) -> Option<&'static Contained> {
        self.0.contained.as_ref()
    }

    /// Reads what the host has written to the standard input of this hook.
    pub fn read(self, input: &Value, caller: &Caller) -> Result<Event, Unreadable> {
        (self.0.messages.read)(input, caller)
    }

    /// Writes a verdict on an event. `input` is what the host has written.
    pub fn write(self, event: &str, input: &Value, verdict: &Verdict) -> Output {
        (self.0.messages.write)(event, input, verdict)
    }

    /// The event that a message is, as far as that is known even of one that can't be read.
    pub fn event_name(self, input: &Value) -> &str {
        (self.0.messages.event_name)(input)
    }

    /// Whether a failure at this event must deny: it decides something.
    pub fn decides(self, event: &str) -> bool {
        self.0.messages.deciding.contains(&event)
    }

    /// Every place where its hook is, with what is wrong there. Empty if it is not installed.
    pub fn inspect(self, places: &Places, project: &Path) -> Vec<Inspection> {
        let files = &self.0.files;
        let mut found = (files.inspect)(places);
        for inspection in &mut found {
            let switched_off = (files.switches)(places, inspection, project);
            inspection.findings.extend(switched_off);
        }
        found.extend((files.leftovers)(places, &found));
        found
    }
}

impl Deref for Host {
    type Target = HostSpec;

    fn deref(&self) -> &HostSpec {
        self.0
    }
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.word() == other.word()
    }
}

impl Eq for Host {}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
