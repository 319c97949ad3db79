//! What this device has answered, one line for each answer in the folder of its profile. It is only for people to look back:
//! nothing is decided by it.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use countersign_client::{edit::Edit, reply::Choice, request::OpenedRequest};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::{EnforcerId, RequestId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::review;

const FILE: &str = "answers.jsonl";

/// How many answers are kept. Twice as many may be in the file before the older half is removed.
const KEPT: usize = 1_000;

/// The longest task that is kept with an answer, in characters.
const MAX_TASK: usize = 200;

/// One answer of this device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptAnswer {
    pub request_id: RequestId,
    /// When it was signed.
    pub at: Timestamp,
    pub decision: DecisionOutcome,
    pub scope: Scope,
    /// What it was about: the sentence and the first line of what was asked.
    pub what: String,
    /// The machine that asked.
    pub machine: EnforcerId,
    /// The words for the agent, and which of its answers was chosen.
    pub reason: Option<String>,
    pub action: Option<String>,
    /// Whose work it belongs to.
    pub session: Option<String>,
    pub agent: Option<String>,
    pub project: Option<String>,
    pub task: Option<String>,
}

impl KeptAnswer {
    fn of(request: &OpenedRequest, choice: &Choice, at: Timestamp) -> Self {
        let payload = review::payload(request);
        let about = payload.context().map(|context| context.about.clone()).unwrap_or_default();
        let caption = |id: &String| {
            let action = request.actions.iter().find(|action| action.id == *id);
            action.map_or_else(|| id.clone(), |action| action.caption.clone())
        };
        Self {
            request_id: request.request_id.clone(),
            at,
            decision: choice.outcome,
            scope: choice.scope,
            what: review::title(&payload),
            machine: request.enforcer.clone(),
            reason: choice.words.reason.clone().or_else(|| Some(changed(choice.words.edit.as_ref()?))),
            action: choice.words.action.as_ref().map(caption),
            session: request.session.clone(),
            agent: about.agent,
            project: about.project.or_else(|| request.repo_name.clone()),
            task: about.task.map(|task| task.chars().take(MAX_TASK).collect()),
        }
    }
}

/// What an approver has made of a call, in words.
fn changed(edit: &Edit) -> String {
    let texts: Vec<&str> = edit.0.values().map(String::as_str).collect();
    format!("changed to: {}", texts.join("; ")).chars().take(MAX_TASK).collect()
}

/// The answers of one profile.
#[derive(Debug, Clone)]
pub struct Answers {
    path: PathBuf,
}

impl Answers {
    /// Those in the folder of a profile.
    pub fn of(folder: &Path) -> Self {
        Self { path: folder.join(FILE) }
    }

    /// Keeps an answer that the gateway has taken. If that fails, the answer counts all the same.
    pub fn keep(&self, request: &OpenedRequest, choice: &Choice, at: Timestamp) {
        drop(self.add(&KeptAnswer::of(request, choice, at)));
    }

    fn add(&self, answer: &KeptAnswer) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o600).open(&self.path)?;
        // One write: lines of two processes don't mix.
        file.write_all(format!("{}\n", serde_json::to_string(answer)?).as_bytes())?;
        let kept = self.read()?;
        if kept.len() < 2 * KEPT {
            return Ok(());
        }
        let lines = kept[kept.len() - KEPT..].iter().map(serde_json::to_string);
        let text = lines.collect::<Result<Vec<_>, _>>()?.join("\n") + "\n";
        let new = self.path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(text.as_bytes())?;
        fs::rename(new, &self.path)
    }

    /// Every answer that is kept, oldest first. A line that is not understood is left out.
    pub fn read(&self) -> io::Result<Vec<KeptAnswer>> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text?.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn answer(number: usize) -> KeptAnswer {
        KeptAnswer {
            request_id: format!("r-{number}").parse().unwrap(),
            at: "2026-11-15T12:00:00Z".parse().unwrap(),
            decision: DecisionOutcome::Approve,
            scope: Scope::Once,
            what: "Lists files · ls".to_owned(),
            machine: "robot".parse().unwrap(),
            reason: None,
            action: None,
            session: None,
            agent: None,
            project: None,
            task: None,
        }
    }

    #[test]
    fn answers_are_kept_for_their_owner_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::of(folder.path());
        assert!(answers.read().unwrap().is_empty());
        answers.add(&answer(0)).unwrap();
        assert_eq!(answers.read().unwrap(), [answer(0)]);
        assert_eq!(fs::metadata(&answers.path).unwrap().permissions().mode() & 0o777, 0o600);
        let lines: Vec<String> =
            (1..2 * KEPT).map(|it| serde_json::to_string(&answer(it)).unwrap()).collect();
        fs::write(&answers.path, format!("{}\nnonsense\n", lines.join("\n"))).unwrap();
        answers.add(&answer(2 * KEPT)).unwrap();
        let kept = answers.read().unwrap();
        assert_eq!((kept.len(), kept.last()), (KEPT, Some(&answer(2 * KEPT))));
    }
}
