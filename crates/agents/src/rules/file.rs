//! A file of rules: what stands in it, and whether it may be believed.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_client::{audience::Turn, pattern::Pattern, payload::EffectKind, shell};
use countersign_wire::{artifact::Loudness, id::ApproverId};
use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;

use super::{glob::Glob, ruling::Verdict, texts};
use crate::tool::{
    exit::{Exit, Failure},
    files, moment,
};

/// A longer file is a mistake.
pub(super) const MAX_BYTES: u64 = 256 * 1024;

/// Whose file it is, which decides what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's own, which may allow.
    User,
    /// A repository's, which can only tighten.
    Repository,
    /// The administrator's, which the others can only tighten.
    Administrator,
}

/// Why rules can't be used. Whoever gets this allows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    /// The file, and the line where one is known.
    pub place: String,
    /// What is wrong, and what to do about it.
    pub what: String,
    /// Whether everything is denied until it is right: what the administrator wants can't be said, or not be kept.
    pub denies: bool,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for RulesError {}

impl RulesError {
    /// What to say to the person at the terminal.
    pub fn failure(&self) -> Failure {
        let until = match self.denies {
            true => "until this is right, agents are denied everything",
            false => "until this is right, rules allow nothing to agents",
        };
        Failure::new(Exit::Failed, self).next(until)
    }
}

/// One rule, with everything in it checked.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// The file and the line.
    pub(super) place: String,
    /// Whose rule it is.
    pub(super) owner: Owner,
    pub(super) verdict: Verdict,
    /// Patterns of names; empty for every tool.
    pub(super) tools: Vec<String>,
    pub(super) command: Option<Pattern>,
    pub(super) path: Option<Glob>,
    /// For allow: dangerous effects that it covers. Otherwise effects of which the call must have one.
    pub(super) effects: Vec<EffectKind>,
    pub(super) reason: Option<String>,
    /// Whom to ask, if it is a rule that asks.
    pub(super) people: Vec<Turn>,
    /// How loudly; `None` if it does not say.
    pub(super) ring: Option<Loudness>,
}

/// One rule as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What the rule says.
    pub verdict: Verdict,
    /// What it is for.
    pub what: String,
    /// A file and a line, or `built in`.
    pub place: String,
}

impl Rule {
    /// As people read it.
    pub(super) fn line(&self) -> Line {
        Line { verdict: self.verdict, what: self.describe(), place: self.place.clone() }
    }

    fn describe(&self) -> String {
        let mut parts = Vec::new();
        if !self.tools.is_empty() {
            parts.push(format!("tool {}", self.tools.join(" or ")));
        }
        if let Some(pattern) = &self.command {
            parts.push(format!("command `{}`", pattern.words().join(" ")));
        }
        if let Some(glob) = &self.path {
            parts.push(format!("path {}", glob.text()));
        }
        if !self.effects.is_empty() {
            let names: Vec<&str> = self.effects.iter().map(|kind| kind.as_str()).collect();
            let word = if self.verdict == Verdict::Allow { "even if it" } else { "effect" };
            parts.push(format!("{word} {}", names.join(" or ")));
        }
        match parts.is_empty() {
            true => "every call".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// All that a file says.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pub(super) rules: Vec<Rule>,
    pub(super) people: Vec<Turn>,
    /// How loudly people are asked; `None` if it does not say.
    pub(super) ring: Option<Loudness>,
    /// Variables that `exec` passes.
    pub(super) passed: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
    ask: Option<Spanned<RawAsk>>,
    exec: Option<Spanned<RawExec>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExec {
    env: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAsk {
    people: Option<Vec<RawTurn>>,
    ring: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    person: String,
    after: Option<String>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    verdict: RawVerdict,
    tool: Option<OneOrMore>,
    command: Option<String>,
    path: Option<String>,
    effect: Option<OneOrMore>,
    reason: Option<String>,
    ask: Option<Vec<RawTurn>>,
    ring: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum RawVerdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::More(list) => list,
        }
    }
}

/// Reads a file; one that is not there says nothing.
pub(super) fn read(path: &Path, owner: Owner, home: Option<&Path>) -> Result<Contents, RulesError> {
    let fails = |what: String| RulesError { place: path.display().to_string(), what, denies: false };
    let unreadable = |error: io::Error| fails(format!("can't be read: {error}"));
    let facts = match files::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound && files::symlink_metadata(path).is_err() => {
            return Ok(Contents::default());
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !facts.is_file() || facts.len() > MAX_BYTES {
        return Err(fails(format!("is no file of at most {} KB", MAX_BYTES / 1024)));
    }
    let (mode, user) = (facts.mode(), rustix::process::geteuid().as_raw());
    if owner == Owner::User && facts.uid() != user && facts.uid() != 0 {
        return Err(fails(format!("belongs to another user; run `chown {user} {}`", path.display())));
    }
    // Who works on a repository in a group may have written its file; it can only tighten.
    let others = if owner == Owner::User { 0o022 } else { 0o002 };
    if mode & others != 0 {
        let option = if owner == Owner::User { "go-w" } else { "o-w" };
        return Err(fails(format!("can be changed by others; run `chmod {option} {}`", path.display())));
    }
    parse(&files::read_text(path, MAX_BYTES).map_err(unreadable)?, path, owner, home)
}

/// The text of a file, in which things have places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
    pub(super) owner: Owner,
}

impl Source<'_> {
    /// What stands in it, unchecked.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, RulesError> {
        toml::from_str(self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            self.wrong(start, error.message().trim_end().replace('\n', " "))
        })
    }

    /// The rules in it, checked one by one.
    pub(super) fn rules(
        self,
        list: Vec<Spanned<RawRule>>,
        home: Option<&Path>,
    ) -> Result<Vec<Rule>, RulesError> {
        let rule = |raw: Spanned<RawRule>| {
            let start = raw.span().start;
            check(raw.into_inner(), self.place(start), self.owner, home)
                .map_err(|what| self.wrong(start, what))
        };
        list.into_iter().map(rule).collect()
    }

    /// What is wrong at a place.
    pub(super) fn wrong(self, offset: usize, what: String) -> RulesError {
        RulesError { place: self.place(offset), what, denies: self.owner == Owner::Administrator }
    }

    /// The file and the line.
    fn place(self, offset: usize) -> String {
        let line = self.text[..offset.min(self.text.len())].matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }
}

fn parse(text: &str, path: &Path, owner: Owner, home: Option<&Path>) -> Result<Contents, RulesError> {
    let source = Source { text, path, owner };
    let at = |offset: usize, what: String| source.wrong(offset, what);
    let file: RawFile = source.read()?;
    let mut contents = Contents { rules: source.rules(file.rule, home)?, ..Contents::default() };
    if let Some(ask) = file.ask {
        let start = ask.span().start;
        if owner == Owner::Repository {
            return Err(at(start, NO_PEOPLE.to_owned()));
        }
        let RawAsk { people, ring } = ask.into_inner();
        contents.people = people.map_or(Ok(Vec::new()), turns).map_err(|what| at(start, what))?;
        contents.ring = loudness(ring).map_err(|what| at(start, what))?;
    }
    if let Some(exec) = file.exec {
        let start = exec.span().start;
        if owner == Owner::Repository {
            return Err(at(start, NO_VARIABLES.to_owned()));
        }
        contents.passed = exec.into_inner().env;
        if let Some(name) = contents.passed.iter().find(|name| name.is_empty() || name.contains(['=', '*'])) {
            return Err(at(start, format!("{name:?} is not the name of a variable")));
        }
    }
    Ok(contents)
}

const NO_VARIABLES: &str = "a repository can't say which variables a command gets; put it into your own file";

const NO_PEOPLE: &str = "a repository can't say whom to ask, or how loudly; put it into your own file";

fn check(raw: RawRule, place: String, owner: Owner, home: Option<&Path>) -> Result<Rule, String> {
    let verdict = match raw.verdict {
        RawVerdict::Allow => Verdict::Allow,
        RawVerdict::Ask => Verdict::Ask,
        RawVerdict::Deny => Verdict::Deny,
    };
    if owner == Owner::Repository && verdict == Verdict::Allow {
        return Err(
            "a repository's file can only tighten: `ask` and `deny`. Put what you allow into your own file"
                .to_owned(),
        );
    }
    if raw.ring.is_some() && owner == Owner::Repository {
        return Err(NO_PEOPLE.to_owned());
    }
    if raw.ring.is_some() && verdict != Verdict::Ask {
        return Err("only a rule with verdict `ask` says how loudly".to_owned());
    }
    let people = match raw.ask {
        None => Vec::new(),
        Some(_) if owner == Owner::Repository => return Err(NO_PEOPLE.to_owned()),
        Some(_) if verdict != Verdict::Ask => {
            return Err("only a rule with verdict `ask` says whom to ask".to_owned());
        }
        Some(list) => turns(list)?,
    };
    let tools = raw.tool.map(OneOrMore::into_list).unwrap_or_default();
    if tools.iter().any(String::is_empty) {
        return Err("a tool has a name, or `*`".to_owned());
    }
    let effects = raw.effect.map(OneOrMore::into_list).unwrap_or_default();
    let rule = Rule {
        place,
        owner,
        verdict,
        tools,
        command: raw.command.as_deref().map(pattern).transpose()?,
        path: raw
            .path
            .map(|text| Glob::new(&text, home).map_err(|why| format!("the path {text:?} {why}")))
            .transpose()?,
        effects: effects.iter().map(|name| effect(name)).collect::<Result<_, _>>()?,
        reason: raw.reason,
        people,
        ring: loudness(raw.ring)?,
    };
    if verdict == Verdict::Allow {
        check_allow(&rule)?;
    }
    Ok(rule)
}

/// What is allowed must be named.
fn check_allow(rule: &Rule) -> Result<(), String> {
    let names_nothing = rule.tools.iter().all(|tool| tool.chars().all(|char| char == '*'));
    if names_nothing && rule.command.is_none() && rule.path.is_none() {
        return Err(
            "an allow rule says what it allows: a `tool` that is not only `*`, a `command` or a `path`"
                .to_owned(),
        );
    }
    let words = rule.command.as_ref().map(Pattern::words).unwrap_or_default();
    let has_star = words.iter().any(|word| word.contains('*'));
    let is_text = words.iter().any(|word| word.starts_with('-') && word.contains('c'));
    if words.iter().any(|word| texts::is_shell(word)) && is_text && has_star {
        return Err("this allows any text of a shell; name the commands in it instead".to_owned());
    }
    Ok(())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let words = shell::words(text).ok_or_else(|| {
        format!("the command {text:?} is not plain words as a shell reads them, with `*` and `**`")
    })?;
    Pattern::new(words).map_err(|error| format!("the command {text:?}: {error}"))
}

/// The effects that rules ask for. People are told more exactly.
const EFFECTS: &[EffectKind] = &[
    EffectKind::Deletes,
    EffectKind::Overwrites,
    EffectKind::LeavesRepository,
    EffectKind::Network,
    EffectKind::Publishes,
    EffectKind::RewritesHistory,
    EffectKind::TouchesSecrets,
    EffectKind::EscalatesPrivileges,
    EffectKind::LoadsCode,
];

fn effect(name: &str) -> Result<EffectKind, String> {
    EFFECTS.iter().copied().find(|kind| kind.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = EFFECTS.iter().map(|kind| kind.as_str()).collect();
        format!("there is no effect {name:?}; there are {}", known.join(", "))
    })
}

fn loudness(word: Option<String>) -> Result<Option<Loudness>, String> {
    let parse = |word: String| {
        let known = || Loudness::ALL.map(Loudness::as_str).join(", ");
        Loudness::of_word(&word).ok_or_else(|| format!("`ring` is one of {}, and not {word:?}", known()))
    };
    word.map(parse).transpose()
}

fn turns(list: Vec<RawTurn>) -> Result<Vec<Turn>, String> {
    let mut turns: Vec<Turn> = Vec::new();
    for RawTurn { person, after } in list {
        ApproverId::new(person.as_str()).map_err(|rule| format!("the person {person:?} {rule}"))?;
        if turns.iter().any(|turn| turn.person == person) {
            return Err(format!("{person} is named twice"));
        }
        let after = after.map_or(Ok(Duration::ZERO), |text| {
            moment::duration(&text).map_err(|rule| format!("`after` {rule}"))
        })?;
        if turns.last().is_some_and(|last| last.after > after) {
            return Err(format!(
                "{person} would be asked before the person above; put people in the order of `after`"
            ));
        }
        turns.push(Turn { person, after });
    }
    match turns.is_empty() {
        true => Err("nobody is named; leave it out to ask everybody who is paired".to_owned()),
        false => Ok(turns),
    }
}

/// The file of a repository.
pub(super) fn of_repository(root: &Path) -> PathBuf {
    root.join(".countersign").join("rules.toml")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn of(text: &str, owner: Owner) -> Result<Contents, String> {
        parse(text, Path::new("rules.toml"), owner, Some(Path::new("/home/ada")))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_is_read_with_its_line() {
        let text = "# mine\n\n[[rule]]\nverdict = \"allow\"\ncommand = \"cargo test **\"\neffect = [\"network\"]\n\n[[rule]]\nverdict = \"deny\"\ntool = [\"Write\", \"mcp__*\"]\npath = \"~/x/**\"\nreason = \"no\"\n\n[ask]\npeople = [{ person = \"dana\" }, { person = \"lee\", after = \"5m\" }]\n";
        let contents = of(text, Owner::User).unwrap();
        assert_eq!(contents.rules[0].place, "rules.toml:3");
        assert_eq!(contents.rules[1].place, "rules.toml:8");
        assert_eq!(contents.rules[0].command.as_ref().unwrap().words(), ["cargo", "test", "**"]);
        assert_eq!(contents.rules[0].effects, [EffectKind::Network]);
        assert_eq!(contents.rules[1].tools, ["Write", "mcp__*"]);
        assert_eq!(contents.people[1], Turn { person: "lee".to_owned(), after: Duration::from_mins(5) });
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let rule = |body: &str| format!("[[rule]]\n{body}\n");
        for (text, expected) in [
            (rule("verdict = \"maybe\""), "maybe"),
            (rule("verdict = \"deny\"\ncolour = 1"), "colour"),
            ("[rules]\n".to_owned(), "rules"),
            (rule("tool = \"Bash\""), "verdict"),
            (rule("verdict = \"allow\""), "says what it allows"),
            (rule("verdict = \"allow\"\ntool = \"*\""), "says what it allows"),
            (rule("verdict = \"allow\"\ncommand = \"ls $X\""), "plain words"),
            (rule("verdict = \"allow\"\ncommand = \"**\""), "name of a program"),
            (rule("verdict = \"allow\"\ncommand = \"a && b\""), "plain words"),
            (rule("verdict = \"allow\"\ncommand = \"sh -c *\""), "any text of a shell"),
            (rule("verdict = \"allow\"\ncommand = \"sudo bash -lc **\""), "any text of a shell"),
            (rule("verdict = \"deny\"\npath = \"../x\""), ".."),
            (rule("verdict = \"deny\"\neffect = [\"explodes\"]"), "there is no effect"),
            (rule("verdict = \"deny\"\nask = [{ person = \"dana\" }]"), "only a rule with verdict `ask`"),
            (rule("verdict = \"ask\"\nask = []"), "nobody is named"),
            (rule("verdict = \"ask\"\nask = [{ person = \"a\" }, { person = \"a\" }]"), "twice"),
            (rule("verdict = \"ask\"\nask = [{ person = \"a\", after = \"soon\" }]"), "whole number"),
            (
                rule("verdict = \"ask\"\nask = [{ person = \"a\", after = \"5m\" }, { person = \"b\" }]"),
                "order",
            ),
            (rule("verdict = \"ask\"\nring = \"shrill\""), "quiet, normal, loud"),
            (rule("verdict = \"deny\"\nring = \"loud\""), "only a rule with verdict `ask`"),
            (rule("verdict = \"ask\"\ntool = \"\""), "a name"),
            ("[ask]\npeople = []".to_owned(), "nobody is named"),
            ("x".to_owned(), "rules.toml:1"),
        ] {
            let error = of(&text, Owner::User).unwrap_err();
            assert!(error.contains(expected) && error.starts_with("rules.toml:"), "{text}: {error}");
        }
    }

    #[test]
    fn a_repository_can_only_tighten() {
        let error = of("[[rule]]\nverdict = \"allow\"\ntool = \"Read\"\n", Owner::Repository).unwrap_err();
        assert!(error.contains("only tighten"), "{error}");
        for text in [
            "[ask]\npeople = [{ person = \"a\" }]",
            "[[rule]]\nverdict = \"ask\"\nask = [{ person = \"a\" }]",
            "[[rule]]\nverdict = \"ask\"\nring = \"quiet\"",
            "[ask]\nring = \"quiet\"",
        ] {
            assert!(of(text, Owner::Repository).unwrap_err().contains("can't say whom"), "{text}");
        }
        of("[[rule]]\nverdict = \"deny\"\ntool = \"Read\"\n[[rule]]\nverdict = \"ask\"\n", Owner::Repository)
            .unwrap();
    }

    #[test]
    fn only_a_person_says_which_variables_are_passed() {
        let text = "[exec]\nenv = [\"CARGO_HOME\", \"HTTPS_PROXY\"]\n";
        assert_eq!(of(text, Owner::User).unwrap().passed, ["CARGO_HOME", "HTTPS_PROXY"]);
        assert!(of(text, Owner::Repository).unwrap_err().contains("which variables"));
        assert!(of("[exec]\nenv = [\"A=1\"]\n", Owner::User).unwrap_err().contains("name of a variable"));
    }

    #[test]
    fn a_file_that_others_can_change_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        let read = |owner| read(&path, owner, None);
        assert!(read(Owner::User).unwrap().rules.is_empty(), "no file");
        fs::write(&path, "[[rule]]\nverdict = \"deny\"\n").unwrap();
        for (mode, user, repository) in [
            (0o600, true, true),
            (0o644, true, true),
            (0o664, false, true),
            (0o602, false, false),
            (0o666, false, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(Owner::User).is_ok(), user, "{mode:o}");
            assert_eq!(read(Owner::Repository).is_ok(), repository, "{mode:o}");
        }
        assert!(read(Owner::User).unwrap_err().what.contains("chmod"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        read(Owner::User).unwrap_err();
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/nonexistent", &path).unwrap();
        read(Owner::User).unwrap_err();
    }
}
