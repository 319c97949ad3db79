//! `rules replay`: what would have been asked over recorded sessions.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use countersign_agents::{
    calls::call::{Action, Call},
    examine::repository,
    hosts::transcript::Transcript,
    rules::{Rules, Ruling, Verdict},
    tool::{
        exit::{Exit, Failure},
        home::Home,
        output::{columns, object, out, say},
    },
};
use countersign_client::payload::visible_code;
use serde_json::{Value, json};

use super::options::Options;

/// How much of a command is shown on its line.
const MAX_SHOWN_CHARS: usize = 80;

/// Say what would have been asked over recorded sessions.
///
/// Reads transcripts of Claude Code (JSON lines with the calls of tools) and of Codex CLI (rollout files). Nothing is run,
/// and files that were changed then are not looked at; what the repository has in it now decides what is inside.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Where calls happened that do not say so, instead of here.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The files of the sessions.
    #[arg(required = true, value_name = "TRANSCRIPT")]
    transcripts: Vec<PathBuf>,
}

struct Row {
    call: Call,
    ruling: Ruling,
}

impl Replay {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        let (home, cwd) = (Home::of_user()?, repository::folder(self.cwd)?);
        let (mut rows, mut unreadable) = (Vec::new(), 0);
        let mut known: BTreeMap<PathBuf, Rules> = BTreeMap::new();
        for file in &self.transcripts {
            let transcript = read(file, &cwd)?;
            unreadable += transcript.unreadable;
            for call in transcript.calls {
                let rules = match known.entry(call.cwd.clone()) {
                    Entry::Occupied(found) => found.into_mut(),
                    Entry::Vacant(place) => {
                        place.insert(Rules::load(&home, &call.cwd).map_err(|error| error.failure())?)
                    }
                };
                rows.push(Row { ruling: rules.decide(&call), call });
            }
        }
        if options.json { print_object(&rows, unreadable) } else { print(&rows, unreadable) }
    }
}

fn read(file: &Path, cwd: &Path) -> Result<Transcript, Failure> {
    let text = fs::read(file).map_err(|error| {
        Failure::new(Exit::Failed, format!("the transcript {} can't be read: {error}", file.display()))
            .next("Claude Code keeps transcripts in ~/.claude/projects, Codex CLI in ~/.codex/sessions")
    })?;
    Ok(Transcript::read(&String::from_utf8_lossy(&text), cwd))
}

fn count(rows: &[Row], verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.ruling.verdict == verdict).count()
}

fn print_object(rows: &[Row], unreadable: usize) -> Result<(), Failure> {
    let not_allowed = rows.iter().filter(|row| row.ruling.verdict != Verdict::Allow);
    let calls: Vec<Value> = not_allowed
        .map(|row| {
            json!({
                "verdict": row.ruling.verdict, "tool": row.call.tool, "cwd": row.call.cwd, "call": shown(&row.call),
                "reason": row.ruling.reason, "rule": row.ruling.rule,
            })
        })
        .collect();
    object(&json!({
        "calls": rows.len(), "allow": count(rows, Verdict::Allow), "ask": count(rows, Verdict::Ask),
        "deny": count(rows, Verdict::Deny), "unreadableLines": unreadable, "notAllowed": calls,
    }))
}

fn print(rows: &[Row], unreadable: usize) -> Result<(), Failure> {
    // The same call with the same reason is one line, the most frequent first.
    let mut lines: BTreeMap<(Verdict, &str, String, &str), usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.ruling.verdict != Verdict::Allow) {
        let key = (row.ruling.verdict, row.call.tool.as_str(), shown(&row.call), row.ruling.reason.as_str());
        *lines.entry(key).or_default() += 1;
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|((verdict, ..), times)| (std::cmp::Reverse(*verdict), std::cmp::Reverse(*times)));
    let row = |((verdict, tool, call, reason), times): &((Verdict, &str, String, &str), usize)| {
        vec![
            verdict.word().to_owned(),
            format!("{times}×"),
            visible_code(tool),
            call.clone(),
            visible_code(reason),
        ]
    };
    if !lines.is_empty() {
        out(&columns(&lines.iter().map(row).collect::<Vec<_>>()))?;
    }
    say(&format!(
        "{} calls: {} allowed, {} asked for, {} denied",
        rows.len(),
        count(rows, Verdict::Allow),
        count(rows, Verdict::Ask),
        count(rows, Verdict::Deny)
    ));
    if unreadable > 0 {
        say(&format!("{unreadable} lines are no JSON and were left out"));
    }
    Ok(())
}

/// A call on one line.
fn shown(call: &Call) -> String {
    let text = match &call.action {
        Action::Shell(text) | Action::Network(text) => text.clone(),
        Action::Edit(_) | Action::Read(_) => {
            let paths: Vec<String> = call.paths().iter().map(|path| path.display().to_string()).collect();
            paths.join(" ")
        }
        Action::Plan(text) => text.lines().next().unwrap_or_default().to_owned(),
        Action::Questions(questions) => {
            questions.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
        }
        Action::Own(arguments) | Action::Other(arguments) => arguments.to_string(),
    };
    let line = visible_code(&text);
    match line.chars().count() > MAX_SHOWN_CHARS {
        true => line.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect(),
        false => line,
    }
}
