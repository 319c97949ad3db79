//! What people review before an agent acts: the effect of a call, not what the agent says about it.

use countersign_client::payload::{Checkpoint, Patch, Payload, Plan};

use serde_json::Value;

use super::{
    call::{Action, Call, Question},
    diff,
};
use crate::{execution::examine_shell, repository};

/// The payload of a call.
pub fn payload_of(call: &Call) -> Payload {
    match &call.action {
        Action::Shell(text) => Payload::Command(examine_shell(text, &call.cwd)),
        Action::Edit(changes) => {
            let root = repository::root_of(&call.cwd);
            match diff::patch(changes, root.as_deref().unwrap_or(&call.cwd)) {
                Some(patch) => Payload::Patch(Patch { effects: call.effects(), ..patch }),
                None => Payload::Task(Plan::new(format!("{} changes nothing.", call.tool))),
            }
        }
        Action::Plan(text) if !text.trim().is_empty() => Payload::Plan(Plan::new(text)),
        Action::Plan(_) => Payload::Plan(Plan::new("The agent shows no plan, and wants to begin.")),
        Action::Questions(questions) => Payload::Checkpoint(checkpoint(questions)),
        Action::Network(target) => task(call, "Open a connection with the tool", &code(target)),
        Action::Read(paths) => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let what = if paths.is_empty() { call.cwd.display().to_string() } else { paths.join("\n") };
            let text = code(&what);
            task(call, "Read with the tool", &text)
        }
        Action::Other(arguments) => {
            let diff = || arguments["diff"].as_str().or(arguments["metadata"]["diff"].as_str());
            let text = diff().map_or_else(|| pretty(arguments), str::to_owned);
            task(call, "Use the tool", &code(&text))
        }
    }
}

fn task(call: &Call, what: &str, details: &str) -> Payload {
    let text = format!("{what} `{}`:\n\n{details}", call.tool.replace('`', "'"));
    Payload::Task(Plan { effects: call.effects(), ..Plan::new(text) })
}

fn pretty(arguments: &Value) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_else(|_| arguments.to_string())
}

/// A block that nothing in the text can end.
fn code(text: &str) -> String {
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
