//! What happens to a call of an agent before anybody is asked (docs/rules.md).
//!
//! Every rule that matches counts, and the strictest wins: deny, ask, allow. What no rule allows is asked for. An allow rule
//! must cover all of a call, a rule that denies or asks any part of it.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | verdicts | `ruling` |
//! | patterns of paths; what lies inside of the repository | `glob`, `site` |
//! | shell texts in parts | `texts` |
//! | files of rules | `file` |
//! | a call with all that it names | `view` |
//! | what agents may never do | `own`, `protected` |
//! | what only reads; what asks by itself | `search`, `git_settings`, `git_config`, `harmless`, `asking_itself` |
//! | which rules are for a call; which allow it | `matching`, `covering` |

mod asking_itself;
mod covering;
mod file;
mod git_config;
mod git_settings;
mod glob;
mod harmless;
mod matching;
mod own;
mod protected;
mod ruling;
mod search;
mod site;
mod texts;
mod view;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use countersign_client::audience::Audience;

use self::{
    asking_itself::OwnProgram,
    covering::Machine,
    file::{Contents, Owner, Rule},
    git_config::UserFiles,
    protected::Protected,
    texts::unquoted,
    view::View,
};
pub use self::{
    file::RulesError,
    own::{FOR_AGENTS, NOT_FOR_AGENTS},
    ruling::{Ruling, Verdict},
};
use crate::{
    calls::call::{Action, Call},
    tool::{caller::Caller, files, home::Home},
};

/// The rules in force in a folder: the user's, those of the repositories around it, and those that are built in.
#[derive(Debug, Clone)]
pub struct Rules {
    user: Contents,
    repositories: Vec<Contents>,
    protected: Protected,
    /// The settings of Git that are not a repository's.
    git: UserFiles,
    /// The folder of the user, for paths that begin with `~`; `None` if shells may take another.
    home: Option<PathBuf>,
    /// Whether `cd` looks for folders elsewhere too.
    has_cd_path: bool,
    /// Where shells look for programs.
    path: Option<OsString>,
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

impl Rules {
    /// With the folder of the tool and that of the user, and no other variable than HOME.
    pub fn of_folder(folder: &Path, home: Option<PathBuf>, cwd: &Path) -> Result<Self, RulesError> {
        let variables = home.iter().map(|home| ("HOME".into(), home.into())).collect();
        Self::load(&Home::at(folder).with_user(home), cwd, &Caller { variables, folder: None })
    }

    /// The rules for calls of a caller in a folder. On an error nothing may be allowed.
    ///
    /// Shells and Git go by the caller's HOME. Where it is not the user's folder, `~` is not understood.
    pub fn load(tool: &Home, cwd: &Path, caller: &Caller) -> Result<Self, RulesError> {
        let user = files::of_this_process(|| file::read(&tool.rules_file(), Owner::User, tool.user()))?;
        // A repository in a repository is under the rules of both.
        let without_links = files::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
        let roots = cwd
            .ancestors()
            .chain(without_links.ancestors())
            .filter(|folder| files::exists(&folder.join(".git")));
        let roots: BTreeSet<&Path> = roots.collect();
        let read = |root: &Path| file::read(&file::of_repository(root), Owner::Repository, tool.user());
        let repositories = roots.into_iter().map(read).collect::<Result<_, _>>()?;
        let has_cd_path = caller.variable("CDPATH").is_some_and(|path| !path.is_empty());
        let (variable, config) = (caller.variable("HOME").map(Path::new), caller.variable("XDG_CONFIG_HOME"));
        Ok(Self {
            user,
            repositories,
            protected: Protected::new(tool, caller),
            git: UserFiles::of(variable, config.map(Path::new)),
            home: variable.filter(|folder| Some(*folder) == tool.user()).map(Path::to_owned),
            has_cd_path,
            path: caller.variable("PATH").map(OsStr::to_owned),
        })
    }

    /// What happens to a call, and by which rule.
    pub fn decide(&self, call: &Call) -> Ruling {
        let view = View::of(call, self.home.as_deref(), self.has_cd_path);
        if let Some(ruling) = self.built_in_denial(&view) {
            return ruling;
        }
        for verdict in [Verdict::Deny, Verdict::Ask] {
            if let Some((rule, what)) = self.matching(&view, verdict).next() {
                let word = if verdict == Verdict::Deny { "is denied" } else { "is asked for" };
                let reason = rule.reason.clone().unwrap_or_else(|| format!("{what} {word}"));
                return Ruling { verdict, reason, rule: rule.place.clone() };
            }
        }
        let allowing: Vec<&Rule> = self.user.rules.iter().filter(|it| it.verdict == Verdict::Allow).collect();
        let machine = Machine {
            git: &self.git,
            protected: &self.protected,
            own: OwnProgram::running(),
            path: self.path.as_deref(),
        };
        let covered = covering::covers(&view, &allowing, machine);
        // What could not be seen may be another repository with rules, or lead to a file that decides.
        match covered.and_then(|places| files::hidden().map_or(Ok(places), |path| Err(closed(&path)))) {
            Ok(places) => {
                let named = self.user.rules.iter().find(|rule| places.contains(&rule.place));
                let reason = named.and_then(|rule| rule.reason.clone());
                let reason = reason.unwrap_or_else(|| "every part of it is allowed".to_owned());
                Ruling { verdict: Verdict::Allow, reason, rule: places.join(", ") }
            }
            Err(reason) => Ruling {
                verdict: Verdict::Ask,
                reason,
                rule: "built in: what no rule allows is asked for".to_owned(),
            },
        }
    }

    /// Whether the user's own rules name the tool of a call, and do not only mean every tool.
    pub fn names_tool(&self, tool: &str) -> bool {
        let patterns = self.user.rules.iter().flat_map(|rule| &rule.tools);
        patterns
            .filter(|pattern| pattern.contains(|char| char != '*'))
            .any(|pattern| glob::wildcard(pattern, tool))
    }

    /// Whom to ask about a call, and how loudly: as the first rule says that asks and names people, and as the loudest of them.
    pub fn audience(&self, call: &Call) -> Audience {
        let view = View::of(call, self.home.as_deref(), self.has_cd_path);
        let rules: Vec<&Rule> = self.matching(&view, Verdict::Ask).map(|(rule, _)| rule).collect();
        let people = rules.iter().map(|rule| &rule.people).find(|people| !people.is_empty());
        let ring = rules.iter().filter_map(|rule| rule.ring).max();
        Audience {
            people: people.unwrap_or(&self.user.people).clone(),
            ring: ring.or(self.user.ring).unwrap_or_default(),
        }
    }

    /// Whom to ask about what is no call.
    pub fn usual_audience(&self) -> Audience {
        Audience { people: self.user.people.clone(), ring: self.user.ring.unwrap_or_default() }
    }

    /// The variables that `exec` passes to commands, as the user's own file says.
    pub fn passed_variables(&self) -> &[String] {
        &self.user.passed
    }

    /// Every rule in force, the built-in ones last.
    pub fn lines(&self) -> Vec<Line> {
        let rules = self.all().map(|rule| Line {
            verdict: rule.verdict,
            what: describe(rule),
            place: rule.place.clone(),
        });
        let built_in =
            |verdict, what: &str| Line { verdict, what: what.to_owned(), place: "built in".to_owned() };
        let built_in = [
            built_in(
                Verdict::Deny,
                "commands of countersign that decide, grant, or change rules, keys and hooks",
            ),
            built_in(Verdict::Deny, "the folders of profiles and rules, and the settings of agents' hosts"),
            built_in(Verdict::Allow, "reading files inside of the repository that hold no secrets"),
            built_in(Verdict::Allow, "the host's own notes and subagents, whose calls are asked about"),
            built_in(
                Verdict::Allow,
                "commands that only read, with options that keep them so (docs/rules.md)",
            ),
            built_in(Verdict::Ask, "everything else"),
        ];
        rules.chain(built_in).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Rule> {
        self.user.rules.iter().chain(self.repositories.iter().flat_map(|contents| &contents.rules))
    }

    fn matching<'a>(
        &'a self,
        view: &'a View<'_>,
        verdict: Verdict,
    ) -> impl Iterator<Item = (&'a Rule, String)> {
        let of_verdict = self.all().filter(move |rule| rule.verdict == verdict);
        of_verdict.filter_map(|rule| Some((rule, matching::matches(rule, view)?)))
    }

    /// What agents may never do, whatever files say.
    fn built_in_denial(&self, view: &View<'_>) -> Option<Ruling> {
        let deny =
            |rule: &str, reason: String| Ruling { verdict: Verdict::Deny, reason, rule: rule.to_owned() };
        if let Some(reason) = own::against(&view.texts) {
            return Some(deny("built in: commands that decide are not for agents", reason));
        }
        let of_targets = view.targets.iter().find_map(|target| match view.call.action {
            Action::Read(_) => self.protected.against_reading(target),
            _ => self.protected.against_writing(target),
        });
        let named = || view.texts.parts.iter().flat_map(|part| view.named_by(part));
        let words = || view.texts.parts.iter().flat_map(|part| &part.words);
        let reason = of_targets
            .or_else(|| named().find_map(|target| self.protected.against_naming(&target)))
            .or_else(|| words().find_map(|word| self.protected.against_text(word)))
            .or_else(|| {
                let texts = view.texts.unclear.iter().flat_map(|text| unquoted(text));
                texts.into_iter().find_map(|text| self.protected.against_text(&text))
            });
        reason.map(|reason| deny("built in: what decides about agents is not for agents", reason))
    }
}

/// Why no rule allows what is not certain.
fn closed(path: &Path) -> String {
    let shown = path.display();
    let remedy = match files::is_dir(path) {
        true => format!("`setfacl -m u:countersign:x {shown}` lets it look paths up there"),
        false => "a person has to look".to_owned(),
    };
    format!("the keeper can't see what is in {shown}, so no rule allows this; {remedy}")
}

fn describe(rule: &Rule) -> String {
    let mut parts = Vec::new();
    if !rule.tools.is_empty() {
        parts.push(format!("tool {}", rule.tools.join(" or ")));
    }
    if let Some(pattern) = &rule.command {
        parts.push(format!("command `{}`", pattern.words().join(" ")));
    }
    if let Some(glob) = &rule.path {
        parts.push(format!("path {}", glob.text()));
    }
    if !rule.effects.is_empty() {
        let names: Vec<&str> = rule.effects.iter().map(|kind| kind.as_str()).collect();
        let word = if rule.verdict == Verdict::Allow { "even if it" } else { "effect" };
        parts.push(format!("{word} {}", names.join(" or ")));
    }
    match parts.is_empty() {
        true => "every call".to_owned(),
        false => parts.join(", "),
    }
}
