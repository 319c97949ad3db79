//! A file of rules: what stands in it, and whether it may be believed.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use countersign_client::audience::{Turn, Verify};
use countersign_wire::artifact::Loudness;
use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;

use super::rule::{NO_PEOPLE, Owner, RawRule, RawTurn, Rule, check, loudness, turns, verify};
use crate::tool::{
    exit::{Exit, Failure},
    files,
};

/// A longer file is a mistake.
pub(super) const MAX_BYTES: u64 = 256 * 1024;

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

/// All that a file says.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pub(super) rules: Vec<Rule>,
    pub(super) people: Vec<Turn>,
    /// How loudly people are asked; `None` if it does not say.
    pub(super) ring: Option<Loudness>,
    /// Whether every approval needs a person whom their device has verified.
    pub(super) verify: Verify,
    /// The file and the line where it says whom to ask, and how; empty if it does not.
    pub(super) ask_place: String,
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
    verify: Option<String>,
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

pub(super) fn parse(
    text: &str,
    path: &Path,
    owner: Owner,
    home: Option<&Path>,
) -> Result<Contents, RulesError> {
    let source = Source { text, path, owner };
    let at = |offset: usize, what: String| source.wrong(offset, what);
    let file: RawFile = source.read()?;
    let mut contents = Contents { rules: source.rules(file.rule, home)?, ..Contents::default() };
    if let Some(ask) = file.ask {
        let start = ask.span().start;
        if owner == Owner::Repository {
            return Err(at(start, NO_PEOPLE.to_owned()));
        }
        let RawAsk { people, ring, verify: word } = ask.into_inner();
        contents.ask_place = source.place(start);
        contents.verify = verify(word.as_deref()).map_err(|what| at(start, what))?;
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

/// The file of a repository.
pub(super) fn of_repository(root: &Path) -> PathBuf {
    root.join(".countersign").join("rules.toml")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

    use countersign_client::payload::EffectKind;

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
            (rule("verdict = \"deny\"\nrepository = \"/srv/shop\""), "only a rule with verdict `allow`"),
            (rule("verdict = \"allow\"\ntool = \"Read\"\nrepository = \"shop\""), "absolute path"),
            (rule("verdict = \"allow\"\ntool = \"Read\"\nrepository = \"/srv/../shop\""), "absolute path"),
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
