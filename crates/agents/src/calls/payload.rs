//! What people review before an agent acts: the effect of a call, not what the agent says about it.

use std::path::PathBuf;

use countersign_client::payload::{
    BoundFile, BoundRole, Checkpoint, Effect, EffectKind, Patch, Payload, Plan, State,
};
use countersign_wire::hash::Sha256Hex;
use serde_json::Value;

use super::{
    call::{Action, Call, FileChange, Question},
    diff::{self, Changes},
};
use crate::examine::{
    real_path::real_path,
    repository,
    shell::{ExaminedText, examine_text},
};

/// What people review of a call, and how much of it is certain.
#[derive(Debug, Clone, PartialEq)]
pub struct Reviewed {
    /// The view of the call, without the call itself.
    pub payload: Payload,
    /// How much is certain; absent for what runs nothing.
    pub state: Option<State>,
    /// The files that decide what it does, as far as they are certain.
    pub files: Vec<BoundFile>,
}

/// The view of a call, made from the call and never from what the agent says about it.
pub fn reviewed(call: &Call) -> Reviewed {
    let (payload, files) = match &call.action {
        Action::Shell(text) => {
            let ExaminedText { command, files } = examine_text(text, &call.cwd);
            (Payload::Command(command), files)
        }
        Action::Edit(changes) => (edit(call, changes), bound(changes)),
        Action::Plan(text) if !text.trim().is_empty() => (Payload::Plan(Plan::new(text)), Vec::new()),
        Action::Plan(_) => {
            (Payload::Plan(Plan::new("The agent shows no plan, and wants to begin.")), Vec::new())
        }
        Action::Questions(questions) => (Payload::Checkpoint(checkpoint(questions)), Vec::new()),
        Action::Network(target) => (task(call, "Open a connection with the tool", &code(target)), Vec::new()),
        Action::Read(paths) => (read(call, paths), Vec::new()),
        Action::Own(arguments) | Action::Other(arguments) => {
            (task(call, "Use the tool", &code(&pretty(arguments))), Vec::new())
        }
    };
    let state = match &payload {
        Payload::Command(command) => command.context.state,
        Payload::Task(Plan { effects: Some(_), .. }) => Some(State::Examined),
        Payload::Task(_) => Some(State::NotExamined),
        _ => None,
    };
    Reviewed { payload, state, files }
}

/// The files that an edit replaces.
fn bound(changes: &[FileChange]) -> Vec<BoundFile> {
    let bound = |change: &FileChange| BoundFile {
        path: real_path(&change.path).to_string_lossy().into_owned(),
        role: BoundRole::Before,
        digest: change.before.as_deref().map(Sha256Hex::digest),
    };
    changes.iter().map(bound).collect()
}

fn edit(call: &Call, changes: &[FileChange]) -> Payload {
    let root = repository::root_of(&call.cwd).unwrap_or_else(|| call.cwd.clone());
    match diff::patch(changes, &root) {
        Changes::Text(patch) => Payload::Patch(Patch { effects: call.effects(), ..patch }),
        Changes::None => {
            let text = format!("{} changes nothing.", call.tool);
            Payload::Task(Plan { effects: Some(Vec::new()), ..Plan::new(text) })
        }
        // What can't be shown byte for byte is no patch: nobody could say that they have seen it.
        Changes::NotText(text) => {
            let what = "Change what is not text, shown as far as it can be, with the tool";
            Payload::Task(Plan { effects: None, ..plan(call, what, &code(&text)) })
        }
    }
}

fn read(call: &Call, paths: &[PathBuf]) -> Payload {
    let root = repository::root_of(&call.cwd).unwrap_or_else(|| call.cwd.clone());
    let read = |path: &PathBuf| {
        let named = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        if named.is_empty() { Effect::new(EffectKind::Reads) } else { Effect::on(EffectKind::Reads, named) }
    };
    let mut effects: Vec<Effect> = paths.iter().map(read).collect();
    if effects.is_empty() {
        effects.push(Effect::new(EffectKind::Reads));
    }
    let outside = |effect: Effect| match effect.kind {
        EffectKind::LeavesRepository => Effect { kind: EffectKind::ReadsOutside, ..effect },
        _ => effect,
    };
    effects.extend(call.effects().unwrap_or_default().into_iter().map(outside));
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let what = if paths.is_empty() { call.cwd.display().to_string() } else { paths.join("\n") };
    Payload::Task(Plan { effects: Some(effects), ..plan(call, "Read with the tool", &code(&what)) })
}

fn task(call: &Call, what: &str, details: &str) -> Payload {
    Payload::Task(Plan { effects: call.effects(), ..plan(call, what, details) })
}

fn plan(call: &Call, what: &str, details: &str) -> Plan {
    Plan::new(format!("{what} `{}`:\n\n{details}", call.tool.replace('`', "'")))
}

fn pretty(arguments: &Value) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_else(|_| arguments.to_string())
}

/// A block that nothing in the text can end.
pub fn code(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

fn checkpoint(questions: &[Question]) -> Checkpoint {
    let summary = match questions {
        [only] => format!("The agent asks: {}", only.text),
        several => format!("The agent asks {} questions", several.len()),
    };
    let changes = questions.iter().flat_map(|question| {
        let choices = question.choices.iter().enumerate();
        let choices = choices.map(|(number, choice)| format!("{}. {choice}", number + 1));
        [question.text.clone()].into_iter().chain(choices)
    });
    Checkpoint { changes: changes.filter(|line| !line.is_empty()).collect(), ..Checkpoint::new(summary) }
}
