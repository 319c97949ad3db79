//! The whole call behind what people review: every member of the host's message, and the files that it concerns.

use std::{collections::BTreeMap, path::Path};

use countersign_client::payload::{BoundFile, Call as WholeCall, Command, Payload, Plan, State};
use serde_json::Value;

use super::{
    call::{Action, Call},
    message::{Aside, Message},
    payload::{Reviewed, reviewed},
};
use crate::examine::{
    environment::{hook::HookEnvironment, last::LastEnvironment},
    real_path::real_path,
    repository,
};

/// Members of plans that name the file in which the plan is. People see them, and they make a plan no other request.
const PLAN_FILES: &[&str] = &["planFilePath", "plan_filename", "plan_path"];

/// Where a call comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The word for the host on a command line.
    pub host: &'a str,
    /// The event as the host names it.
    pub moment: &'a str,
    /// What the host has sent.
    pub message: &'a Message,
    /// Members that are not part of what a grant covers.
    pub aside: &'a [Aside],
    /// Whether the person's own rules name the tool: then it is known which tool it is, and not what it does.
    pub is_named: bool,
    /// The environment that was approved last.
    pub last: &'a LastEnvironment,
    /// The environment of the hook, and the files that a shell of the host reads when it starts.
    pub environment: &'a HookEnvironment,
}

/// The payload of a call, with all of what the host has sent.
pub fn payload_of(call: &Call, origin: &Origin<'_>) -> Payload {
    let Reviewed { mut payload, mut state, files } = reviewed(call);
    if let (Action::Other(_), Payload::Task(task), true) = (&call.action, &mut payload, origin.is_named) {
        (task.effects, state) = (Some(Vec::new()), Some(State::Opaque));
    }
    let is_run = matches!(call.action, Action::Shell(_));
    if let Payload::Command(Command { effects, env, .. }) = &mut payload {
        let loads = &origin.environment.effects;
        if effects.is_some() || !loads.is_empty() {
            effects.get_or_insert_default().extend_from_slice(loads);
        }
        origin.last.add_to(env, &origin.environment.environment);
    }
    let whole = whole(call, origin, files, is_run);
    let payload = payload.with_call(state, whole.clone());
    match &payload {
        Payload::Plan(plan) if has_more(&payload) => {
            // A plan that says more than its text is a call like any other.
            let task = Plan { effects: None, ..plan.clone() };
            Payload::Task(task).with_call(Some(State::NotExamined), whole)
        }
        _ => payload,
    }
}

/// Whether a plan has members that are not shown with it.
fn has_more(plan: &Payload) -> bool {
    let name = |pointer: &str| pointer.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let is_in_input = |pointer: &str| pointer.matches('/').count() > 1;
    plan.not_shown().iter().any(|(at, _)| is_in_input(at) && !PLAN_FILES.contains(&name(at).as_str()))
}

fn whole(call: &Call, origin: &Origin<'_>, files: Vec<BoundFile>, is_run: bool) -> WholeCall {
    let mut message = origin.message.value.clone();
    let mut aside = BTreeMap::new();
    for member in origin.aside {
        if let Some(value) = member.take(&call.tool, &mut message) {
            aside.insert(member.pointer.to_owned(), value);
        }
    }
    let members = match message {
        Value::Object(members) => members,
        _ => serde_json::Map::new(),
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let folder = real_path(&call.cwd);
    let kind = format!("hook.{}", origin.host);
    let mut whole = WholeCall::new(&kind, origin.moment, &call.tool, &text(&folder), members);
    whole.repository = repository::root_of(&folder).map(|root| text(&root));
    (whole.aside, whole.digest) = (aside, Some(origin.message.digest));
    whole.files = files;
    // Only what is run gets an environment: a host edits files itself.
    if is_run {
        whole.environment.clone_from(&origin.environment.environment);
        whole.files.extend_from_slice(&origin.environment.files);
    }
    whole
}
