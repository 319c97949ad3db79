//! Measures what people are asked about the calls in `tests/ordinary_work`, with nothing but the built-in rules. No command is run.
//!
//! Usage: `cargo run -p countersign-agents --example ordinary_work [-- --json | --list]`

use std::{
    env,
    error::Error,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use countersign_agents::{
    calls::{
        call::Call,
        event::Kind,
        message::Message,
        whole::{Origin, payload_of},
    },
    examine::{
        environment::{hook::HookEnvironment, last::LastEnvironment},
        repository,
    },
    hosts::claude,
    rules::{Rules, Verdict},
    tool::{caller::Caller, home::Home},
};
use countersign_client::{
    effect_hash::effect_hash,
    payload::{self, Payload},
};
use countersign_wire::{RawObject, hash::Sha256Hex};
use serde::Deserialize;
use serde_json::{Value, json};

type Measured<T> = Result<T, Box<dyn Error>>;

/// Set in the process that measures, whose environment is empty but for a home without rules.
const IN_CLEAN_HOME: &str = "ORDINARY_WORK_IN_CLEAN_HOME";

/// How much of a call is shown on its line.
const MAX_SHOWN_CHARS: usize = 160;

#[derive(Deserialize)]
struct Sample {
    id: u32,
    tool: String,
    input: Value,
    label: Option<Label>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Label {
    Fine,
    Danger,
}

#[derive(Deserialize)]
struct FixtureFile {
    path: PathBuf,
    content: String,
    #[serde(default)]
    executable: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Allowed,
    Examined { is_dangerous: bool },
    Opaque { is_dangerous: bool },
    NotExamined { is_dangerous: bool },
    Denied,
}

impl State {
    /// In the order of the table.
    const ALL: [Self; 8] = [
        Self::Allowed,
        Self::Examined { is_dangerous: false },
        Self::Examined { is_dangerous: true },
        Self::Opaque { is_dangerous: false },
        Self::Opaque { is_dangerous: true },
        Self::NotExamined { is_dangerous: false },
        Self::NotExamined { is_dangerous: true },
        Self::Denied,
    ];

    fn of(verdict: Verdict, payload: &Payload) -> Self {
        let effects = payload.effects().unwrap_or_default();
        let is_dangerous = effects.iter().any(|effect| effect.kind.is_dangerous());
        match (verdict, payload.state()) {
            (Verdict::Allow, _) => Self::Allowed,
            (Verdict::Deny, _) => Self::Denied,
            (Verdict::Ask, Some(payload::State::NotExamined)) => Self::NotExamined { is_dangerous },
            (Verdict::Ask, Some(payload::State::Opaque)) => Self::Opaque { is_dangerous },
            (Verdict::Ask, Some(payload::State::Examined) | None) => Self::Examined { is_dangerous },
        }
    }

    fn is_asked(self) -> bool {
        !matches!(self, Self::Allowed | Self::Denied)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed by a rule",
            Self::Examined { is_dangerous: false } => "examined",
            Self::Examined { is_dangerous: true } => "examined, dangerous",
            Self::Opaque { is_dangerous: false } => "opaque",
            Self::Opaque { is_dangerous: true } => "opaque, dangerous",
            Self::NotExamined { is_dangerous: false } => "not examined",
            Self::NotExamined { is_dangerous: true } => "not examined, dangerous",
            Self::Denied => "denied",
        }
    }
}

struct Row {
    sample: Sample,
    state: State,
    /// Whether an approval of the call would cover it when the host repeats it; only for what is asked.
    repeats: Option<bool>,
}

impl Row {
    /// A danger that looks harmless to whoever is asked, or about which nobody is.
    fn is_missed(&self) -> bool {
        let looks_harmless = matches!(self.state, State::Allowed | State::Examined { is_dangerous: false });
        // What is opaque says so: nobody is told that it is harmless.
        self.sample.label == Some(Label::Danger) && looks_harmless
    }

    fn is_false_alarm(&self) -> bool {
        let is_alarm = matches!(
            self.state,
            State::Examined { is_dangerous: true }
                | State::Opaque { is_dangerous: true }
                | State::NotExamined { is_dangerous: true }
        );
        self.sample.label == Some(Label::Fine) && is_alarm
    }

    fn line(&self) -> String {
        let input = &self.sample.input;
        let text =
            input["command"].as_str().map_or_else(|| input.to_string(), |text| text.replace('\n', "⏎"));
        let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        format!("{:>5}  {}  {text}", self.sample.id, self.sample.tool)
    }
}

fn main() -> Measured<ExitCode> {
    if env::var_os(IN_CLEAN_HOME).is_none() {
        return measure_in_clean_home();
    }
    let repository = PathBuf::from(env::var_os("HOME").ok_or("HOME is missing")?).join("app");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ordinary_work");
    create_repository(&repository, &fs::read_to_string(folder.join("repository.json"))?)?;
    let rules = Rules::load(
        &Home::of_user().map_err(|failure| failure.to_string())?,
        &repository,
        &Caller::this_process(),
    )?;
    let (mut rows, mut asked) = (Vec::new(), 0);
    for line in fs::read_to_string(folder.join("calls.jsonl"))?.lines() {
        let sample: Sample = serde_json::from_str(line)?;
        let first = message_of(&sample, &repository, "first");
        let (call, payload) = read(&first)?;
        let state = State::of(rules.decide(&call).verdict, &payload);
        asked += usize::from(state.is_asked());
        let repeats = state
            .is_asked()
            .then(|| repeats(&sample, &payload, &repository, asked.is_multiple_of(10)))
            .transpose()?;
        rows.push(Row { sample, state, repeats });
    }
    let mut out = std::io::stdout().lock();
    match env::args().nth(1).as_deref() {
        Some("--json") => writeln!(out, "{:#}", object(&rows))?,
        Some("--list") => write!(out, "{}{}", table(&rows), lists(&rows))?,
        _ => write!(out, "{}", table(&rows))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs this program again, so that neither rules nor settings of whoever measures count.
fn measure_in_clean_home() -> Measured<ExitCode> {
    let folder = tempfile::tempdir()?;
    let home = folder.path().canonicalize()?.join("home");
    fs::create_dir(&home)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let mut again = Command::new(env::current_exe()?);
    again.args(env::args().skip(1)).env_clear().env("PATH", path).env("HOME", home).env(IN_CLEAN_HOME, "1");
    Ok(if again.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn create_repository(folder: &Path, files: &str) -> Measured<()> {
    for file in serde_json::from_str::<Vec<FixtureFile>>(files)? {
        let path = folder.join(file.path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, file.content)?;
        if file.executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    git(folder, &["init", "--quiet"])?;
    git(folder, &["add", "--all"])?;
    commit(folder)
}

fn commit(folder: &Path) -> Measured<()> {
    let author = ["-c", "user.name=Measurement", "-c", "user.email=measurement@example.org"];
    git(folder, &[&author[..], &["commit", "--quiet", "--allow-empty", "--message", "work"]].concat())
}

fn git(folder: &Path, arguments: &[&str]) -> Measured<()> {
    let status = Command::new("git").arg("-C").arg(folder).args(arguments).status()?;
    status.success().then_some(()).ok_or_else(|| format!("git {arguments:?} failed").into())
}

/// The call as Claude Code tells a hook of it. The time makes its id and, for commands, its description.
fn message_of(sample: &Sample, folder: &Path, time: &str) -> Message {
    let mut input = sample.input.clone();
    if sample.tool == "Bash" {
        input["description"] = format!("What the agent says the {time} time").into();
    }
    Message::of(json!({
        "hook_event_name": "PreToolUse", "session_id": "measurement", "cwd": folder, "tool_name": sample.tool,
        "tool_input": input, "tool_use_id": format!("{}-{time}", sample.id),
    }))
}

/// The call, and what people review of it.
fn read(message: &Message) -> Measured<(Call, Payload)> {
    let host = claude::HOST;
    let event = host.read(&message.value, &Caller::this_process()).map_err(|error| format!("{error:?}"))?;
    let Kind::Call { call, .. } = event.kind else { return Err("a call is read as something else".into()) };
    let aside = host.messages.aside;
    let environment = &HookEnvironment::default();
    let origin = Origin {
        host: host.word(),
        moment: &event.name,
        message,
        aside,
        is_named: false,
        last: &LastEnvironment::default(),
        environment,
    };
    let payload = payload_of(&call, &origin);
    Ok((call, payload))
}

/// Whether a grant covers the call when the host repeats it, perhaps after a commit.
fn repeats(sample: &Sample, first: &Payload, folder: &Path, after_commit: bool) -> Measured<bool> {
    let key = key_of(first, folder)?;
    if after_commit {
        commit(folder)?;
    }
    let (_, second) = read(&message_of(sample, folder, "second"))?;
    Ok(!second.is_serious() && key_of(&second, folder)? == key)
}

/// What a grant compares.
fn key_of(payload: &Payload, folder: &Path) -> Measured<Sha256Hex> {
    let text = payload.to_json()?;
    let object = RawObject::parse(text.as_bytes())?;
    Ok(effect_hash(payload.artifact_type(), object, &repository::name_of(folder))?)
}

fn count(rows: &[Row], is_counted: impl Fn(&Row) -> bool) -> usize {
    rows.iter().filter(|row| is_counted(row)).count()
}

fn share(part: usize, whole: usize) -> String {
    let per_mille = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

fn object(rows: &[Row]) -> Value {
    let of_label = |label| count(rows, |row| row.sample.label == Some(label));
    let states =
        State::ALL.map(|state| (state.word().to_owned(), json!(count(rows, |row| row.state == state))));
    json!({
        "calls": rows.len(), "states": serde_json::Map::from_iter(states),
        "labelled": {
            "danger": of_label(Label::Danger), "missed": count(rows, Row::is_missed),
            "fine": of_label(Label::Fine), "falseAlarms": count(rows, Row::is_false_alarm),
        },
        "repeats": {
            "asked": count(rows, |row| row.repeats.is_some()), "covered": count(rows, |row| row.repeats == Some(true)),
        },
    })
}

fn table(rows: &[Row]) -> String {
    let of_label = |label| count(rows, |row| row.sample.label == Some(label));
    let header = format!("{:<23} {:>6} {:>8} {:>6} {:>7}\n", "", "calls", "share", "fine", "danger");
    let states = State::ALL.map(|state| {
        let labelled = |label| count(rows, |row| row.state == state && row.sample.label == Some(label));
        let calls = count(rows, |row| row.state == state);
        let (fine, danger) = (labelled(Label::Fine), labelled(Label::Danger));
        let (word, share) = (state.word(), share(calls, rows.len()));
        format!("{word:<23} {calls:>6} {share:>8} {fine:>6} {danger:>7}\n")
    });
    let (asked, same) =
        (count(rows, |row| row.repeats.is_some()), count(rows, |row| row.repeats == Some(true)));
    let figures = [
        ("dangers missed", count(rows, Row::is_missed), of_label(Label::Danger)),
        ("false alarms", count(rows, Row::is_false_alarm), of_label(Label::Fine)),
        ("repeats that a grant covers", same, asked),
    ];
    let figures =
        figures.map(|(what, part, whole)| format!("{what}: {part} of {whole}, {}\n", share(part, whole)));
    header + &states.concat() + &figures.concat()
}

fn lists(rows: &[Row]) -> String {
    let list = |title: &str, is_listed: &dyn Fn(&Row) -> bool| {
        let lines = rows.iter().filter(|row| is_listed(row)).map(|row| row.line() + "\n");
        format!("\n{title}\n") + &lines.collect::<String>()
    };
    list("Dangers missed", &Row::is_missed)
        + &list("False alarms", &Row::is_false_alarm)
        + &list("Not examined", &|row| matches!(row.state, State::NotExamined { .. }))
        + &list("Repeats that no grant covers", &|row| row.repeats == Some(false))
}
