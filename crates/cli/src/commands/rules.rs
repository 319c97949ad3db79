//! `rules`: what agents may do without asking, and what never.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use countersign_agents::{
    calls::call::{Action, Call, FileChange},
    examine::repository,
    hosts::claude::tools,
    rules::{Rules, Ruling, Verdict},
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::Home,
        moment,
        output::{columns, object, out, say},
    },
};
use countersign_client::{
    audience::{Audience, Turn, Verify},
    payload::visible_code,
};
use countersign_wire::artifact::Loudness;
use serde_json::{Value, json};

use super::{options::Options, replay, set_rules, suggest};

/// What `init` writes: every line that changes something is a comment.
const STARTING_FILE: &str = include_str!("rules.toml");

/// Rules: what agents may do without asking, and what they never may.
///
/// Rules are in rules.toml beside the profiles, and in .countersign/rules.toml of a repository, which can only tighten.
/// Every rule that matches counts, and the strictest wins: deny, ask, allow. What no rule allows is asked for. docs/rules.md
/// explains them.
#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// Say which rule decides about a call, and why.
    Test(Test),
    /// List all rules in force, with where they stand.
    Show(Show),
    /// Write a file of rules to begin with, in which everything is commented out.
    Init,
    /// Check a file of rules and put it in place of yours.
    Set(set_rules::Set),
    /// Suggest rules for what you always approve.
    ///
    /// Looks at what agents on this machine asked and how it was answered, for as long as that is kept. A suggestion is for
    /// one repository, and would have allowed nothing that was rejected, is dangerous or was not examined. Nothing changes
    /// until you add one.
    Suggest(suggest::Suggest),
    /// Say what would have been asked over recorded sessions.
    Replay(replay::Replay),
}

/// Say which rule decides about a call, and why.
///
/// The call is a command after `--`, a text for a shell, files that are read or changed, or an event of Claude Code.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// The tool as its host names it. For files, Read, Grep, Glob and LS read, all others change.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// A file that is read or changed; can be given more than once.
    #[arg(long = "path", value_name = "FILE", conflicts_with_all = ["shell", "command", "event"])]
    paths: Vec<PathBuf>,
    /// Where it happens, instead of here.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A text that a shell would interpret.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["command", "event"])]
    shell: Option<String>,
    /// An event of Claude Code before a tool is used, as JSON in a file; - for the standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "tool"])]
    event: Option<PathBuf>,
    /// The command and its arguments, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// List all rules in force, with where they stand.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Where they are to be in force, instead of here.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl RulesCommand {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Set(set) => set.run(options).await,
            Self::Suggest(suggest) => Box::pin(suggest.run(options)).await,
            Self::Test(test) => test.run(options),
            Self::Show(show) => show.run(options),
            Self::Init => init(options),
            Self::Replay(replay) => replay.run(options),
        }
    }
}

impl Test {
    fn run(self, options: &Options) -> Result<(), Failure> {
        self.say(options, false)
    }

    /// Says too what the policy of this machine says alone.
    pub(super) fn run_with_policy(self, options: &Options) -> Result<(), Failure> {
        self.say(options, true)
    }

    fn say(self, options: &Options, with_policy: bool) -> Result<(), Failure> {
        let call = self.call()?;
        let rules = Rules::load(&Home::of_user()?, &call.cwd, &Caller::this_process())
            .map_err(|error| error.failure())?;
        let ruling = rules.decide(&call);
        // If nobody may be asked, the ruling says so.
        let Audience { people, ring, verify } = rules.audience(&call).unwrap_or_default();
        let of_policy = rules.decide_by_policy(&call);
        if options.json {
            let people: Vec<Value> = people
                .iter()
                .map(|turn| json!({ "person": turn.person, "afterSeconds": turn.after.as_secs() }))
                .collect();
            let mut said = json!({
                "verdict": ruling.verdict, "reason": ruling.reason, "rule": ruling.rule, "people": people,
                "ring": ring.as_str(), "verify": (verify == Verify::Person).then_some("person"),
            });
            if with_policy {
                said["policy"] = json!(of_policy);
            }
            return object(&said);
        }
        out(&format!("{}: {}", ruling.verdict.word(), visible_code(&ruling.reason)))?;
        out(&format!("  by {}", ruling.rule))?;
        if ruling.verdict == Verdict::Ask {
            if !people.is_empty() {
                out(&format!("  asks {}", in_order(&people)))?;
            }
            match ring {
                Loudness::Quiet => out("  no phone rings")?,
                Loudness::Normal => {}
                Loudness::Loud => out("  phones ring also in quiet hours")?,
            }
            if verify == Verify::Person {
                out("  an approval needs the device lock")?;
            }
        }
        match (with_policy, of_policy) {
            (false, _) => Ok(()),
            (true, None) => out("  the policy of this machine leaves it to other rules, or there is none"),
            (true, Some(Ruling { verdict, rule, .. })) => {
                out(&format!("  the policy of this machine says {}, by {rule}", verdict.word()))
            }
        }
    }

    fn call(self) -> Result<Call, Failure> {
        let cwd = repository::folder(self.cwd)?;
        if let Some(file) = self.event {
            return of_event(&file, cwd);
        }
        let tool = |usual: &str| self.tool.clone().unwrap_or_else(|| usual.to_owned());
        let (tool, action) = if !self.paths.is_empty() {
            let tool = tool("Edit");
            let paths: Vec<PathBuf> = self.paths.iter().map(|path| cwd.join(path)).collect();
            let is_reading = matches!(tool.as_str(), "Read" | "Grep" | "Glob" | "LS");
            let change = |path: PathBuf| FileChange { path, before: None, after: Some(Vec::new()) };
            match is_reading {
                true => (tool, Action::Read(paths)),
                false => (tool, Action::Edit(paths.into_iter().map(change).collect())),
            }
        } else if let Some(text) = self.shell {
            (tool("Bash"), Action::Shell(text))
        } else if !self.command.is_empty() {
            (tool("Bash"), Call::of_words(&self.command, &cwd).action)
        } else if let Some(tool) = self.tool {
            (tool, Action::Other(json!({})))
        } else {
            return Err(Failure::new(Exit::Usage, "there is no call to test")
                .next("add a command after --, --shell TEXT, --path FILE, --tool NAME or --event FILE"));
        };
        Ok(Call { tool, cwd, action })
    }
}

fn of_event(file: &Path, cwd: PathBuf) -> Result<Call, Failure> {
    let failed = |what: String| {
        Failure::new(Exit::Usage, what).next("give one event as JSON, with tool_name and tool_input")
    };
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => io::stdin().read_to_string(&mut text),
        false => fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| failed(format!("the event can't be read: {error}")))?;
    let event: Value =
        serde_json::from_str(&text).map_err(|error| failed(format!("the event is no JSON: {error}")))?;
    let tool = event["tool_name"].as_str().ok_or_else(|| failed("the event names no tool".to_owned()))?;
    let cwd = event["cwd"].as_str().map_or(cwd, PathBuf::from);
    Ok(tools::call(tool, &event["tool_input"], &cwd))
}

/// Whom to ask, in a sentence.
fn in_order(people: &[Turn]) -> String {
    let turn = |turn: &Turn| match turn.after.is_zero() {
        true => turn.person.clone(),
        false => format!("{} after {} without an answer", turn.person, moment::whole(turn.after)),
    };
    people.iter().map(turn).collect::<Vec<_>>().join(", then ")
}

impl Show {
    fn run(self, options: &Options) -> Result<(), Failure> {
        let cwd = repository::folder(self.cwd)?;
        let rules =
            Rules::load(&Home::of_user()?, &cwd, &Caller::this_process()).map_err(|error| error.failure())?;
        let lines = rules.lines();
        if options.json {
            let lines: Vec<Value> = lines
                .iter()
                .map(|line| json!({ "verdict": line.verdict, "what": line.what, "place": line.place }))
                .collect();
            return object(&json!({ "rules": lines }));
        }
        let row = |line: &countersign_agents::rules::Line| {
            vec![line.verdict.word().to_owned(), visible_code(&line.what), line.place.clone()]
        };
        out(&columns(&lines.iter().map(row).collect::<Vec<_>>()))
    }
}

fn init(options: &Options) -> Result<(), Failure> {
    let path = Home::of_user()?.rules_file();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Failed, format!("{} is there already, and was left as it is", path.display()))
                .next("edit it, and look at the result with `countersign rules show`")
        }
        _ => Failure::new(Exit::Failed, format!("{} can't be written: {error}", path.display())),
    };
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    file.write_all(STARTING_FILE.as_bytes()).map_err(failed)?;
    if options.json {
        return object(&json!({ "file": path }));
    }
    say(&format!("✓ {} is written; everything in it is commented out", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starting_file_changes_nothing_and_what_it_suggests_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        let lines = |text: &str| {
            fs::write(&path, text).unwrap();
            Rules::of_folder(folder.path(), None, folder.path()).unwrap().lines().len()
        };
        let built_in = lines("");
        assert_eq!(lines(STARTING_FILE), built_in);
        let suggested: Vec<&str> =
            STARTING_FILE.lines().filter_map(|line| line.strip_prefix("#| ")).collect();
        assert!(lines(&suggested.join("\n")) >= built_in + 5);
    }
}
