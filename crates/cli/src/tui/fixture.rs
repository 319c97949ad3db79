//! Requests and keys for tests.

use std::time::Duration;

use countersign_client::{
    approver::InboxItem,
    audience::Verify,
    keys::DeviceKeys,
    payload::{
        Command, CommandFile, Effect, EffectKind, FileRole, FileStatus, Invocation, Patch, PatchFile, Payload,
    },
    profile::{Party, Pin, PinSource},
    request::OpenedRequest,
};
use countersign_wire::{hash::Sha256Hex, timestamp::Timestamp};

use super::state::{Action, Event, Key, Now, State};

/// When the tests begin.
pub(super) fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// A request that was opened and checked.
pub(super) fn request(id: &str, payload: &Payload) -> OpenedRequest {
    let keys = DeviceKeys::from_secret(&[7; DeviceKeys::SECRET_BYTES]).unwrap();
    let party = Party::Enforcer("robot".parse().unwrap());
    OpenedRequest {
        request_id: id.parse().unwrap(),
        enforcer: "robot".parse().unwrap(),
        artifact_type: payload.artifact_type(),
        artifact_hash: Sha256Hex::digest(id.as_bytes()),
        repo_ref: "ref".to_owned(),
        session: None,
        repo_name: Some("shop".to_owned()),
        created_at: noon(),
        expires_at: noon().plus(Duration::from_mins(10)),
        payload: payload.to_json().unwrap(),
        artifact: "{}".to_owned().into(),
        actions: Vec::new(),
        supersedes: None,
        edits: Vec::new(),
        is_edited: false,
        verify: Verify::Usual,
        asked_by: Pin::new(party, keys.bundle(), PinSource::Paired, noon()),
    }
}

/// A request as it arrives.
pub(super) fn arrived(id: &str, payload: &Payload) -> InboxItem {
    InboxItem { request_id: id.parse().unwrap(), opened: Ok(request(id, payload)) }
}

/// A command with these effects; `None` is not examined.
pub(super) fn command(words: &[&str], effects: Option<Vec<Effect>>) -> Payload {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Payload::Command(Command { effects, ..Command::new(Invocation::Argv(words), "/home/robot/shop") })
}

pub(super) fn harmless() -> Payload {
    command(&["cargo", "test"], Some(Vec::new()))
}

/// A push that rewrites history.
pub(super) fn force_push() -> Payload {
    command(
        &["git", "push", "--force", "origin", "main"],
        Some(vec![
            Effect::on(EffectKind::Network, "origin"),
            Effect::on(EffectKind::Pushes, "origin main"),
            Effect::on(EffectKind::RewritesHistory, "origin main"),
        ]),
    )
}

/// Two scripts that nobody has examined.
pub(super) fn scripts() -> Payload {
    let file =
        |path: &str| CommandFile::with_content(path, FileRole::Script, format!("#!/bin/sh\n\tmake {path}\n"));
    let words = ["sh", "one.sh", "two.sh"].map(str::to_owned).to_vec();
    Payload::Command(Command {
        files: vec![file("one.sh"), file("two.sh")],
        ..Command::new(Invocation::Argv(words), "/home/robot/shop")
    })
}

/// A patch of one file for each number of added lines.
pub(super) fn patch(files: &[usize]) -> Payload {
    use std::fmt::Write as _;
    let (mut diff, mut list) = (String::new(), Vec::new());
    for (index, lines) in files.iter().enumerate() {
        let path = format!("src/file{index}.rs");
        writeln!(diff, "--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,{lines} @@\n-old").unwrap();
        for line in 0..*lines {
            writeln!(diff, "+let value_{line} = compute({line}); // file {index}").unwrap();
        }
        list.push(PatchFile {
            path,
            status: FileStatus::Modified,
            previous_path: None,
            added: u64::try_from(*lines).unwrap(),
            removed: 1,
            base_digest: Some(Sha256Hex::digest(b"old")),
            result_digest: Some(Sha256Hex::digest(b"new")),
        });
    }
    Payload::Patch(Patch { effects: Some(Vec::new()), ..Patch::new(diff, list) })
}

/// The interface with a clock that the test moves.
pub(super) struct Desk {
    pub state: State,
    pub at: Duration,
}

impl Desk {
    /// An inbox on a screen of this size.
    pub(super) fn new(width: u16, height: u16, payloads: &[Payload]) -> Self {
        let mut desk = Self {
            state: State::new(
                "dana".to_owned(),
                "https://gw.example".to_owned(),
                Now { running: Duration::ZERO, wall: noon() },
            ),
            at: Duration::ZERO,
        };
        desk.handle(Event::Resize(width, height));
        let items =
            payloads.iter().enumerate().map(|(index, payload)| arrived(&format!("r{index}"), payload));
        desk.handle(Event::Inbox(items.collect()));
        desk.wait(2_000);
        desk
    }

    pub(super) fn wait(&mut self, milliseconds: u64) {
        self.at += Duration::from_millis(milliseconds);
        self.handle(Event::Tick);
    }

    pub(super) fn handle(&mut self, event: Event) -> Vec<Action> {
        let now = Now { running: self.at, wall: noon().plus(self.at) };
        self.state.handle(event, now)
    }

    pub(super) fn key(&mut self, key: Key) -> Vec<Action> {
        self.handle(Event::Key(key))
    }

    /// Types slowly enough for every question.
    pub(super) fn slowly(&mut self, keys: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        for char in keys.chars() {
            self.wait(1_500);
            actions.extend(self.key(if char == '\n' { Key::Enter } else { Key::Char(char) }));
        }
        self.wait(1_500);
        actions
    }

    /// The bar at the bottom, on one line.
    pub(super) fn bar(&self) -> String {
        self.state.bar_rows().into_iter().map(|(_, row)| row).collect::<Vec<_>>().join(" ").replace("  ", " ")
    }
}
