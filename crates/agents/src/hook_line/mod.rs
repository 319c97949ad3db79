//! The command line that a host is given to run, and how it is recognised again.

pub mod deadlines;
pub mod host_name;
pub mod keeper;
pub mod mode;
pub mod place;

use std::{path::Path, time::Duration};

use countersign_client::shell;
use serde_json::Value;

use self::{host_name::HostName, keeper::KeeperPlace, mode::Mode, place::Place};

/// Ends a line that decides: whatever has become of the program, the answer is no. Hosts start a shell in any case.
const OTHERWISE_NO: &str = " || { echo 'Countersign gave no verdict, so the answer is no.' >&2; exit 2; }";

/// Ends a hook that hangs while there is still time to say no.
const TIMEOUT: &str = "/usr/bin/timeout";

/// `countersign hook HOST --home DIR --mode MODE --host-timeout SECONDS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    /// The absolute path of the program, as the host runs it.
    pub program: String,
    /// The host that runs it.
    pub host: HostName,
    /// Where rules and profiles are.
    pub place: Place,
    /// Who decides, if it is not the hook itself.
    pub keeper: Option<KeeperPlace>,
    /// When it asks a person.
    pub mode: Mode,
    /// How long the host waits before it goes on without an answer.
    pub host_timeout: Duration,
}

impl HookLine {
    /// The same line for an event of which the host waits another time.
    #[must_use]
    pub fn within(&self, host_timeout: Duration) -> Self {
        Self { host_timeout, ..self.clone() }
    }

    fn arguments(&self) -> Vec<String> {
        let seconds = self.host_timeout.as_secs().to_string();
        let how = ["--mode", self.mode.word(), "--host-timeout", &seconds].map(str::to_owned);
        let keeper = self.keeper.map(KeeperPlace::arguments).unwrap_or_default();
        [vec!["hook".to_owned(), self.host.word.to_owned()], self.place.arguments(), keeper, how.into()]
            .concat()
    }

    /// The line for hosts that give it to a shell.
    pub fn for_shell(&self) -> String {
        let words: Vec<String> = self.words().iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// The line for an event that decides: a program that is missing, killed or hangs means no.
    pub fn deciding(&self) -> String {
        let limit = deadlines::outer_limit(self.host_timeout).as_secs_f64();
        let timeout = match Path::new(TIMEOUT).exists() {
            true => format!("{TIMEOUT} -s KILL {limit} "),
            false => String::new(),
        };
        format!("{timeout}{}{OTHERWISE_NO}", self.for_shell())
    }

    /// The words of the line.
    pub fn words(&self) -> Vec<String> {
        [vec![self.program.clone()], self.arguments()].concat()
    }

    /// Reads a line for this host back. `None` if it is not one of ours.
    pub fn from_words(words: &[String], host: HostName) -> Option<Self> {
        let [program, hook, named, options @ ..] = words else { return None };
        let (place, keeper, mode, host_timeout) = line_options(options)?;
        let is_ours = is_our_name(program) && hook == "hook" && named == host.word;
        is_ours.then(|| Self { program: program.clone(), host, place, keeper, mode, host_timeout })
    }
}

/// The options of a line, after the name of its host.
pub fn line_options(words: &[String]) -> Option<(Place, Option<KeeperPlace>, Mode, Duration)> {
    let (place, words) = Place::from_words(words);
    let (keeper, words) = KeeperPlace::from_words(words);
    let [mode_flag, mode, timeout_flag, seconds] = words else { return None };
    (mode_flag == "--mode" && timeout_flag == "--host-timeout").then_some(())?;
    Some((place, keeper, Mode::named(mode)?, Duration::from_secs(seconds.parse().ok()?)))
}

/// The words of the command of a handler, with or without a shell.
pub fn words_of(handler: &Value) -> Option<Vec<String>> {
    let text = |key: &str| handler.get(key).and_then(Value::as_str);
    let program = text("exec").or_else(|| text("command")).or_else(|| text("bash"))?;
    let Some(arguments) = handler.get("args").and_then(Value::as_array) else {
        return shell::words(undecorated(program));
    };
    let arguments = arguments.iter().map(|word| word.as_str().map(str::to_owned));
    [Some(program.to_owned())].into_iter().chain(arguments).collect()
}

/// A line without what is around it to make it a no in any case.
fn undecorated(line: &str) -> &str {
    let line = line.strip_suffix(OTHERWISE_NO).unwrap_or(line);
    let inner = line.strip_prefix(TIMEOUT).and_then(|rest| rest.strip_prefix(" -s KILL "));
    inner.and_then(|rest| rest.split_once(' ')).map_or(line, |(_, line)| line)
}

/// Whether a handler runs our hook for this host, with whatever options. What was changed by hand is still ours.
pub fn is_ours(handler: &Value, host: HostName) -> bool {
    let words = words_of(handler).unwrap_or_default();
    matches!(&words[..], [program, hook, named, ..] if is_our_name(program) && hook == "hook" && named == host.word)
}

fn is_our_name(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "countersign" || name.starts_with("countersign-") || name.starts_with("countersign.")
}

/// The word in quotes that every POSIX shell reads as this word, if it needs any.
fn quoted(word: &str) -> String {
    let is_plain = |next: char| next.is_ascii_alphanumeric() || "/._-+@%".contains(next);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CODEX: HostName = HostName { word: "codex", name: "Codex CLI" };
    const CLAUDE: HostName = HostName { word: "claude", name: "Claude Code" };

    fn line(program: &str) -> HookLine {
        HookLine {
            program: program.to_owned(),
            host: CODEX,
            place: Place { home: Some("/home/a b/.local/share/countersign".to_owned()), profile_file: None },
            keeper: None,
            mode: Mode::Gate,
            host_timeout: Duration::from_mins(10),
        }
    }

    #[test]
    fn a_line_is_read_back_from_every_form() {
        for program in ["/usr/bin/countersign", "/home/a b/it's/countersign", "/opt/ä$(x)/countersign"] {
            let line = line(program);
            let shell = json!({ "command": line.for_shell() });
            assert_eq!(HookLine::from_words(&words_of(&shell).unwrap(), CODEX), Some(line.clone()));
            let exec = json!({ "command": program, "args": line.arguments() });
            let deciding = json!({ "command": line.deciding() });
            assert_eq!(HookLine::from_words(&words_of(&deciding).unwrap(), CODEX), Some(line.clone()));
            assert_eq!(HookLine::from_words(&words_of(&exec).unwrap(), CODEX), Some(line.clone()));
            assert!(is_ours(&shell, CODEX) && is_ours(&exec, CODEX));
            assert!(!is_ours(&shell, CLAUDE));
        }
        assert_eq!(
            line("/usr/bin/countersign").for_shell(),
            "/usr/bin/countersign hook codex --home '/home/a b/.local/share/countersign' --mode gate --host-timeout 600"
        );
        let with_file = Place { home: None, profile_file: Some("/run/secrets/profile".to_owned()) };
        for place in [Place::default(), with_file] {
            for keeper in [None, Some(KeeperPlace::User), Some(KeeperPlace::System)] {
                let line = HookLine { place: place.clone(), keeper, ..line("/usr/bin/countersign") };
                assert_eq!(HookLine::from_words(&line.words(), CODEX), Some(line));
            }
        }
    }

    /// The line itself, as a shell runs it: a program that is not there, is killed or hangs.
    #[test]
    fn whatever_becomes_of_the_program_the_answer_is_no() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("countersign");
        let line = HookLine { host_timeout: Duration::from_secs(2), ..line(program.to_str().unwrap()) };
        for script in [
            None,
            Some("kill -9 $$"),
            Some("exit 1"),
            Some("kill -STOP $$"),
            Some("sleep 20"),
            Some("echo no >&2; exit 2"),
        ] {
            if let Some(script) = script {
                std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
                let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(&program, executable).unwrap();
            }
            let output = std::process::Command::new("sh").arg("-c").arg(line.deciding()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{script:?}");
            assert!(!output.stderr.is_empty(), "{script:?}");
        }
        std::fs::write(&program, "#!/bin/sh\necho yes\n").unwrap();
        let output = std::process::Command::new("sh").arg("-c").arg(line.deciding()).output().unwrap();
        assert!(output.status.success() && output.stdout == b"yes\n");
    }

    #[test]
    fn what_was_changed_by_hand_is_ours_and_what_others_made_is_not() {
        let changed =
            json!({ "command": "/usr/bin/countersign hook codex --mode gate --host-timeout 5 --x" });
        assert!(is_ours(&changed, CODEX));
        assert_eq!(HookLine::from_words(&words_of(&changed).unwrap(), CODEX), None);
        for other in [
            json!({ "command": "/usr/bin/countersigned hook codex" }),
            json!({ "command": "echo countersign hook codex" }),
            json!({ "command": "/usr/bin/countersign status" }),
            json!({ "url": "http://x" }),
            json!("countersign hook codex"),
        ] {
            assert!(!is_ours(&other, CODEX), "{other}");
        }
    }
}
