//! Asking a keeper about a proposal. It says what happens meanwhile; whoever has asked acts, and says what became of it.

use std::time::Duration;

use countersign_client::{payload::BoundFile, receipt::Outcome};
use countersign_wire::hash::Sha256Hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::{Instant, timeout},
};

use super::Proposal;
use crate::{
    asking::Interruption,
    call_socket::{
        client::asked,
        frames::{
            FrameError, MAX_VERDICT, PARTS, PROPOSAL, part_bytes, question_bytes, question_of, read_part,
        },
        place::CallSocket,
    },
    execution::{Difference, Plan},
    hosts::output::Output,
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        output::{Said, StatusLine, is_live, say},
    },
};

/// How long it may take to call a keeper and to send a question.
const CALL_TIME: Duration = Duration::from_secs(5);

/// How long a keeper may take to take a request back, or to send a receipt.
const LAST_TIME: Duration = Duration::from_secs(7);

/// The longest word on what became of something, in bytes.
pub const MAX_OUTCOME: usize = 64 << 10;

/// How a command of the tool was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// The profile to ask with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether people see in a terminal what is said.
    pub is_live: bool,
}

/// What a keeper says about a proposal, one part after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// What people are shown meanwhile.
    Said(Said),
    /// The end: it may not be done.
    Failed(Failure),
    /// It may be done, and the keeper waits to hear what became of it.
    Approved(Approved),
}

/// What may be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approved {
    /// The decision, for programs.
    pub decision: Value,
    /// Every file that decides what runs, as it was shown.
    pub files: Vec<ApprovedFile>,
    /// Names of variables that rules pass to commands.
    pub env: Vec<String>,
    /// The command, if an approver has changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
}

/// A file as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedFile {
    path: String,
    role: String,
    digest: Option<Sha256Hex>,
}

impl Approved {
    /// What a command that was examined here has other than was approved.
    pub fn differences(&self, plan: &Plan) -> Vec<Difference> {
        let now: Vec<ApprovedFile> = plan.bound_files().iter().map(ApprovedFile::of).collect();
        let missing = |from: &[ApprovedFile], file: &&ApprovedFile| !from.contains(*file);
        let gone = self.files.iter().filter(|file| missing(&now, file)).map(|file| Difference {
            what: file.path.clone(),
            approved: file.content(),
            now: now
                .iter()
                .find(|it| it.path == file.path)
                .map_or_else(|| "no part of it".to_owned(), ApprovedFile::content),
        });
        let is_new = |file: &&ApprovedFile| {
            missing(&self.files, file) && !self.files.iter().any(|it| it.path == file.path)
        };
        let new = now.iter().filter(is_new).map(|file| Difference {
            what: file.path.clone(),
            approved: "no part of it".to_owned(),
            now: file.content(),
        });
        gone.chain(new).collect()
    }
}

impl ApprovedFile {
    /// The file as a call has bound it.
    pub fn of(file: &BoundFile) -> Self {
        Self { path: file.path.clone(), role: file.role.as_str().to_owned(), digest: file.digest }
    }

    /// Enough to tell two apart on a screen.
    fn content(&self) -> String {
        match self.digest {
            Some(digest) => format!("SHA-256 {}…", digest.to_string().chars().take(16).collect::<String>()),
            None => "no file".to_owned(),
        }
    }
}

/// The start, the caller and the proposal in the parts of a question.
pub fn proposed(parts: [Vec<u8>; PARTS]) -> Result<(Start, Caller, Proposal), FrameError> {
    let (start, caller, message) = question_of(parts)?;
    let proposal = serde_json::from_slice(&message).map_err(|_| FrameError::Malformed("the proposal"))?;
    Ok((start, caller, proposal))
}

/// An approval that a keeper has taken for this process.
#[derive(Debug)]
pub struct Kept {
    stream: UnixStream,
    /// What may be done.
    pub approved: Approved,
}

/// Asks the keeper at a socket. What it says for people is said here.
pub async fn ask(
    socket: &CallSocket,
    profile: Option<String>,
    proposal: &Proposal,
    interruption: &mut Interruption,
) -> Result<Kept, Failure> {
    let unsent = |error: FrameError| {
        Failure::new(Exit::Failed, format!("the keeper could not be asked: {error}")).next(NOTHING)
    };
    let message = serde_json::to_vec(proposal).map_err(|_| unsent(FrameError::Malformed("the proposal")))?;
    let start = Start { profile, is_live: is_live() };
    let question = question_bytes(PROPOSAL, &start, &Caller::this_process(), &message).map_err(unsent)?;
    let stream = asked(socket, &question, Instant::now() + CALL_TIME)
        .map_err(|words| Failure::new(Exit::Unreachable, words.trim_end_matches('.')).next(NOTHING))?;
    let mut stream = UnixStream::from_std(stream).map_err(|error| unsent(error.into()))?;
    let mut line = StatusLine::default();
    let answered = tokio::select! {
        answer = answer(&mut stream, &mut line) => Some(answer?),
        () = interruption.happens() => None,
    };
    if let Some(approved) = answered {
        return Ok(Kept { stream, approved });
    }
    // The keeper takes the request back, and says whether it could.
    drop(stream.shutdown().await);
    match timeout(LAST_TIME, answer(&mut stream, &mut line)).await {
        Ok(Err(failure)) => Err(failure),
        // It was approved in the same moment: nobody says that it was done.
        Ok(Ok(_)) | Err(_) => Err(Failure::new(Exit::TakenBack, "taken back; nothing was run")),
    }
}

const NOTHING: &str = "nothing was asked and nothing was run";

/// Says what the keeper says, until it says whether it may be done.
async fn answer(stream: &mut UnixStream, line: &mut StatusLine) -> Result<Approved, Failure> {
    let ended = |what: String| {
        Failure::new(Exit::Failed, format!("{what}, so nothing was run"))
            .next("if the keeper was updated or stopped, start it again")
    };
    loop {
        let part = read_part(stream, MAX_VERDICT).await;
        let part = part.map_err(|error| ended(format!("the keeper's answer can't be read: {error}")))?;
        let part = part.ok_or_else(|| ended("the keeper ended without an answer".to_owned()))?;
        match serde_json::from_slice(&part) {
            Ok(Reply::Said(Said::Line(text))) => {
                line.clear();
                say(&text);
            }
            Ok(Reply::Said(Said::Status(text))) if text.is_empty() => line.clear(),
            Ok(Reply::Said(Said::Status(text))) => line.show(&text),
            Ok(Reply::Failed(failure)) => return Err(failure),
            Ok(Reply::Approved(approved)) => return Ok(approved),
            Err(_) => {
                return Err(
                    refused(&part).unwrap_or_else(|| ended("the keeper's answer can't be read".to_owned()))
                );
            }
        }
    }
}

/// What a keeper says to whom it does not serve: the same as to a hook.
fn refused(part: &[u8]) -> Option<Failure> {
    let output: Output = serde_json::from_slice(part).ok()?;
    let words = output.stderr.trim().trim_end_matches('.').to_owned();
    Some(Failure::new(Exit::NotSetUp, words))
}

impl Kept {
    /// Says what became of it, and waits until whoever decided has heard it.
    pub async fn finish(mut self, outcome: &Outcome) {
        let ended = async {
            self.stream.write_all(&part_bytes(outcome).ok()?).await.ok()?;
            self.stream.read(&mut [0]).await.ok()
        };
        drop(timeout(LAST_TIME, ended).await);
    }
}
