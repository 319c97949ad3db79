//! What this device has answered, one line for each answer in the folder of its profile, and what it was asked, for the proofs
//! of its newest answers. It is only for people to look back: nothing is decided by it.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use countersign_client::{
    edit::Edit,
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::{
    base64url,
    decision::{DecisionOutcome, Scope},
    id::{EnforcerId, RequestId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::review;

const FILE: &str = "answers.jsonl";

/// How many answers are kept. Twice as many may be in the file before the older half is removed.
const KEPT: usize = 1_000;

/// The folder with what was asked, one file for each answer, whose names begin with the time.
const ASKED: &str = "asked";

/// Of so many answers it is kept what was asked, and of none whose artifact has more bytes.
const ASKED_KEPT: usize = 200;
const MAX_ARTIFACT: usize = 64 << 10;

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

/// What was asked and said, as it was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequest {
    /// The artifact in the clear.
    pub artifact: Zeroizing<String>,
    /// The words of the decision.
    pub words: Words,
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
        if request.artifact.len() <= MAX_ARTIFACT {
            let asked = KeptRequest { artifact: request.artifact.clone(), words: choice.words.clone() };
            drop(self.keep_asked(&request.request_id, &asked, at));
        }
    }

    /// What was asked in a request that was answered here, if it is kept.
    pub fn asked(&self, request_id: &RequestId) -> Option<KeptRequest> {
        let ending = file_ending(request_id);
        let name = self.asked_names().ok()?.into_iter().rfind(|name| name.ends_with(&ending))?;
        let text = Zeroizing::new(fs::read_to_string(self.asked_folder().join(name)).ok()?);
        serde_json::from_str(&text).ok()
    }

    fn asked_folder(&self) -> PathBuf {
        self.path.with_file_name(ASKED)
    }

    /// The names of the files, oldest first.
    fn asked_names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(self.asked_folder())?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let mut names: Vec<String> = names.filter_map(io::Result::transpose).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }

    fn keep_asked(&self, request_id: &RequestId, asked: &KeptRequest, at: Timestamp) -> io::Result<()> {
        let folder = self.asked_folder();
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let name = format!("{:020}{}", at.unix_micros().max(0), file_ending(request_id));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(Zeroizing::new(serde_json::to_string(asked)?).as_bytes())?;
        let names = self.asked_names()?;
        let old = names.len().saturating_sub(ASKED_KEPT);
        names.iter().take(old).try_for_each(|name| fs::remove_file(folder.join(name)))
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

/// How the name of the file ends that has what was asked in a request.
fn file_ending(request_id: &RequestId) -> String {
    format!("-{}.json", base64url::encode(request_id.as_str().as_bytes()))
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
    fn what_was_asked_is_kept_for_its_owner_and_for_the_newest_answers() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::of(folder.path());
        let id = |number: usize| -> RequestId { format!("r-{number}").parse().unwrap() };
        assert_eq!(answers.asked(&id(0)), None);
        let asked = |number: usize| KeptRequest {
            artifact: format!("{{\"number\":{number}}}").into(),
            words: Words { reason: Some("go".to_owned()), ..Words::default() },
        };
        let noon: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for number in 0..ASKED_KEPT + 2 {
            let at = noon.plus(std::time::Duration::from_secs(number.try_into().unwrap()));
            answers.keep_asked(&id(number), &asked(number), at).unwrap();
        }
        let kept = |number: usize| answers.asked(&id(number)).map(|found| found == asked(number));
        assert_eq!([kept(1), kept(2), kept(ASKED_KEPT + 1)], [None, Some(true), Some(true)]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let names = answers.asked_names().unwrap();
        assert_eq!((names.len(), mode(&answers.asked_folder())), (ASKED_KEPT, 0o700));
        assert_eq!(mode(&answers.asked_folder().join(&names[0])), 0o600);
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
