//! What happens to a call of an agent before anybody is asked (docs/rules.md).
//!
//! Every rule that matches counts, and the strictest wins: deny, ask, allow. What no rule allows is asked for. An allow rule
//! must cover all of a call, a rule that denies or asks any part of it. What the administrator has laid down, rules of others can
//! only tighten.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | verdicts | `ruling` |
//! | patterns of paths; what lies inside of the repository | `glob`, `site` |
//! | shell texts in parts | `texts` |
//! | one rule; files of them; the administrator's; a new text beside the one in force | `rule`, `file`, `policy`, [`change`] |
//! | a call with all that it names | `view` |
//! | what agents may never do | `own`, `protected` |
//! | what only reads; what asks by itself | `search`, `git_settings`, `git_config`, `harmless`, `asking_itself` |
//! | which rules are for a call; which allow it | `matching`, `covering` |
//! | rules that a person's answers suggest | [`suggest`] |

mod asking_itself;
pub mod change;
mod covering;
mod file;
mod git_config;
mod git_settings;
mod glob;
mod harmless;
mod matching;
mod own;
pub mod policy;
mod protected;
mod rule;
mod ruling;
mod search;
mod site;
pub mod suggest;
mod texts;
mod view;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use countersign_client::{
    audience::{Audience, Turn, Verify},
    profile::Facts,
};

use self::{
    asking_itself::OwnProgram,
    covering::Machine,
    file::Contents,
    git_config::UserFiles,
    policy::Policy,
    protected::Protected,
    rule::{Owner, Rule},
    texts::unquoted,
    view::View,
};
pub use self::{
    file::RulesError,
    own::{FOR_AGENTS, NOT_FOR_AGENTS},
    rule::Line,
    ruling::{Ruling, Verdict},
};
use crate::{
    calls::call::{Action, Call},
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        files,
        home::{Home, KEEPER_ACCOUNT},
    },
};

/// The rules in force in a folder: the administrator's, the user's, those of the repositories around it, and those that are
/// built in.
#[derive(Debug, Clone)]
pub struct Rules {
    policy: Option<Policy>,
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
        let policy = Policy::of_machine(tool.user())?;
        // Under a policy, nothing that should be stricter is left to the host's own prompt.
        let denies = policy.is_some();
        let under_policy = |error: RulesError| RulesError { denies, ..error };
        let user = files::of_this_process(|| file::read(&tool.rules_file(), Owner::User, tool.user()))
            .map_err(under_policy)?;
        // A repository in a repository is under the rules of both.
        let without_links = files::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
        let roots = cwd
            .ancestors()
            .chain(without_links.ancestors())
            .filter(|folder| files::exists(&folder.join(".git")));
        let roots: BTreeSet<&Path> = roots.collect();
        let read = |root: &Path| file::read(&file::of_repository(root), Owner::Repository, tool.user());
        let repositories = roots.into_iter().map(read).collect::<Result<_, _>>().map_err(under_policy)?;
        let has_cd_path = caller.variable("CDPATH").is_some_and(|path| !path.is_empty());
        let (variable, config) = (caller.variable("HOME").map(Path::new), caller.variable("XDG_CONFIG_HOME"));
        Ok(Self {
            policy,
            user,
            repositories,
            protected: Protected::new(tool, caller),
            git: UserFiles::of(variable, config.map(Path::new)),
            home: variable.filter(|folder| Some(*folder) == tool.user()).map(Path::to_owned),
            has_cd_path,
            path: caller.variable("PATH").map(OsStr::to_owned),
        })
    }

    /// The same with more rules of the user, as they stand in a file.
    pub fn with(&self, more: &str) -> Result<Self, RulesError> {
        let contents = file::parse(more, Path::new("more rules"), Owner::User, self.home.as_deref())?;
        let mut rules = self.clone();
        rules.user.rules.extend(contents.rules);
        Ok(rules)
    }

    /// What happens to a call, and by which rule: the strictest of what the policy and all other rules say.
    pub fn decide(&self, call: &Call) -> Ruling {
        let view = self.view(call);
        if let Some(ruling) = self.built_in_denial(&view) {
            return ruling;
        }
        let below = self.below(&view);
        let is_stricter =
            |ruling: &Ruling| ruling.verdict != Verdict::Allow && ruling.verdict >= below.verdict;
        let ruling = self.of_policy(&view).filter(is_stricter).unwrap_or(below);
        // What could not be seen may be another repository with rules, or lead to a file that decides.
        let ruling = match files::hidden().filter(|_| ruling.verdict == Verdict::Allow) {
            Some(path) => Ruling { verdict: Verdict::Ask, reason: closed(&path), rule: ruling.rule },
            None => ruling,
        };
        let nobody = match ruling.verdict {
            Verdict::Ask => self.people_to_ask(&view).err(),
            Verdict::Allow | Verdict::Deny => None,
        };
        match nobody {
            Some(reason) => Ruling { verdict: Verdict::Deny, reason, rule: policy::PEOPLE.to_owned() },
            None => ruling,
        }
    }

    /// What the administrator's policy alone says of a call; `None` if it leaves it to the other rules.
    pub fn decide_by_policy(&self, call: &Call) -> Option<Ruling> {
        self.of_policy(&self.view(call))
    }

    fn view<'a>(&self, call: &'a Call) -> View<'a> {
        View::of(call, self.home.as_deref(), self.has_cd_path)
    }

    fn of_policy(&self, view: &View<'_>) -> Option<Ruling> {
        let policy = self.policy.as_ref()?;
        if let Some(ruling) = stricter(&policy.rules.iter().collect::<Vec<_>>(), view) {
            return Some(ruling);
        }
        let allowing = allowing(&policy.rules);
        if allowing.is_empty() && !policy.asks_unlisted() {
            return None;
        }
        match (covering::covers(view, &allowing, self.machine()), policy.asks_unlisted()) {
            (Ok(places), _) => Some(allowed(&policy.rules, &places)),
            (Err(_), false) => None,
            (Err(reason), true) => Some(Ruling {
                verdict: Verdict::Ask,
                reason: policy::said(&reason),
                rule: policy::UNLISTED.to_owned(),
            }),
        }
    }

    /// What the rules of user and repositories say, and those that are built in.
    fn below(&self, view: &View<'_>) -> Ruling {
        if let Some(ruling) = stricter(&self.all_below().collect::<Vec<_>>(), view) {
            return ruling;
        }
        match covering::covers(view, &allowing(&self.user.rules), self.machine()) {
            Ok(places) => allowed(&self.user.rules, &places),
            Err(reason) => Ruling {
                verdict: Verdict::Ask,
                reason,
                rule: "built in: what no rule allows is asked for".to_owned(),
            },
        }
    }

    fn machine(&self) -> Machine<'_> {
        Machine {
            git: &self.git,
            protected: &self.protected,
            own: OwnProgram::running(),
            path: self.path.as_deref(),
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
    /// Where one of them wants a verified person, an approval needs one.
    /// The policy's rules come first, and nobody is asked whom it does not let be asked.
    pub fn audience(&self, call: &Call) -> Result<Audience, Failure> {
        let view = self.view(call);
        let rings = matching(self.all(), &view, Verdict::Ask).filter_map(|(rule, _)| rule.ring);
        let ring = rings.max().or(self.user.ring).unwrap_or_default();
        let must_verify =
            matching(self.all(), &view, Verdict::Ask).any(|(rule, _)| rule.verify == Verify::Person);
        let verify = if must_verify { Verify::Person } else { self.usual_verify() };
        Ok(Audience { people: self.people_to_ask(&view).map_err(nobody_to_ask)?, ring, verify })
    }

    /// Whether every approval needs a person whom their device has verified: the policy or the user says so.
    fn usual_verify(&self) -> Verify {
        let of_policy = self.policy.as_ref().map(Policy::verify).unwrap_or_default();
        if of_policy == Verify::Person { of_policy } else { self.user.verify }
    }

    /// Whom to ask about what is no call.
    pub fn usual_audience(&self) -> Result<Audience, Failure> {
        let people = self.may_be_asked(self.user.people.clone()).map_err(nobody_to_ask)?;
        let (ring, verify) = (self.user.ring.unwrap_or_default(), self.usual_verify());
        Ok(Audience { people, ring, verify })
    }

    fn people_to_ask(&self, view: &View<'_>) -> Result<Vec<Turn>, String> {
        let mut lists = matching(self.all(), view, Verdict::Ask).map(|(rule, _)| &rule.people);
        let people = lists.find(|people| !people.is_empty());
        self.may_be_asked(people.unwrap_or(&self.user.people).clone())
    }

    fn may_be_asked(&self, people: Vec<Turn>) -> Result<Vec<Turn>, String> {
        match &self.policy {
            Some(policy) => policy.allowed(people),
            None => Ok(people),
        }
    }

    /// Whether the policy lets anybody be asked with a profile.
    pub fn check_profile(&self, facts: &Facts) -> Result<(), Failure> {
        match self.policy.as_ref().and_then(|policy| policy.against_profile(facts)) {
            None => Ok(()),
            Some(reason) => Err(Failure::new(Exit::NotSetUp, reason).next(
                "join that gateway and tenant with `countersign join`, or name the profile with --profile",
            )),
        }
    }

    /// The variables that `exec` passes to commands, as the user's own file says.
    pub fn passed_variables(&self) -> &[String] {
        &self.user.passed
    }

    /// Every rule in force, the built-in ones last.
    pub fn lines(&self) -> Vec<Line> {
        let rules = self.all().map(Rule::line);
        let unlisted = self.policy.as_ref().and_then(Policy::unlisted_line);
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
        let verify = self.policy.as_ref().and_then(Policy::verify_line);
        let of_user = self.user.verify == Verify::Person;
        let of_user = of_user.then(|| Line::needs_lock(self.user.ask_place.clone()));
        rules.chain(unlisted).chain(verify).chain(of_user).chain(built_in).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Rule> {
        self.policy.iter().flat_map(|policy| &policy.rules).chain(self.all_below())
    }

    fn all_below(&self) -> impl Iterator<Item = &Rule> {
        self.user.rules.iter().chain(self.repositories.iter().flat_map(|contents| &contents.rules))
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
        true => format!("`setfacl -m u:{KEEPER_ACCOUNT}:x {shown}` lets it look paths up there"),
        false => "a person has to look".to_owned(),
    };
    format!("the keeper can't see what is in {shown}, so no rule allows this; {remedy}")
}

/// The rules that match a call, with what of it they match.
fn matching<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    view: &View<'_>,
    verdict: Verdict,
) -> impl Iterator<Item = (&'a Rule, String)> {
    let of_verdict = rules.into_iter().filter(move |rule| rule.verdict == verdict);
    of_verdict.filter_map(|rule| Some((rule, matching::matches(rule, view)?)))
}

/// What rules say that deny or ask.
fn stricter(rules: &[&Rule], view: &View<'_>) -> Option<Ruling> {
    [Verdict::Deny, Verdict::Ask].into_iter().find_map(|verdict| {
        let (rule, what) = matching(rules.iter().copied(), view, verdict).next()?;
        let word = if verdict == Verdict::Deny { "is denied" } else { "is asked for" };
        let reason = rule.reason.clone().unwrap_or_else(|| format!("{what} {word}"));
        Some(Ruling { verdict, reason: of_owner(rule, reason), rule: rule.place.clone() })
    })
}

fn allowing(rules: &[Rule]) -> Vec<&Rule> {
    rules.iter().filter(|rule| rule.verdict == Verdict::Allow).collect()
}

/// What rules say that stand in these places, and allow.
fn allowed(rules: &[Rule], places: &[String]) -> Ruling {
    let named = rules.iter().find(|rule| places.contains(&rule.place));
    let reason = named.and_then(|rule| Some(of_owner(rule, rule.reason.clone()?)));
    let reason = reason.unwrap_or_else(|| "every part of it is allowed".to_owned());
    Ruling { verdict: Verdict::Allow, reason, rule: places.join(", ") }
}

fn of_owner(rule: &Rule, reason: String) -> String {
    match rule.owner {
        Owner::Administrator => policy::said(&reason),
        Owner::User | Owner::Repository => reason,
    }
}

fn nobody_to_ask(reason: String) -> Failure {
    Failure::new(Exit::NotSetUp, reason).next("name somebody in your rules whom it lets be asked")
}
