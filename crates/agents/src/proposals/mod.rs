//! What the tool's own commands ask about, `exec` and `ask`: decided by this process, or by a keeper.
//!
//! | to find | look in |
//! |---|---|
//! | what is proposed, and how it becomes a request | here |
//! | from a proposal to a permission | [`permission`] |
//! | how a keeper is asked, and what it says meanwhile | [`kept`] |
//! | who decides for this account | [`decider`] |

pub mod decider;
pub mod kept;
pub mod permission;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_client::{
    audience::Audience,
    enforcer::Enforcer,
    payload::{Checkpoint, Payload, Plan as PlanPayload, visible_code},
    profile::Role,
    request::Draft,
};
use countersign_wire::artifact::Loudness;
use serde::{Deserialize, Serialize};

use self::permission::{Ending, Permission, Prepared};
use crate::{
    asking::Interruption,
    call_socket::frames::MAX_TIME,
    calls::call::Call,
    examine::{environment::last::LastEnvironment, repository},
    execution::{KIND, Plan, Reads, RunAs, Wanted},
    hook::stopped,
    rules::{Rules, Verdict},
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::Home,
    },
};

/// Where the words of a command are in the message of its call.
const ARGV: &str = "/argv";

/// How often a command may be changed before it is approved.
const MAX_CHANGES: usize = 10;

/// Something that people are asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Proposal {
    /// What people are asked about.
    pub what: What,
    /// For how many milliseconds people can answer.
    pub valid_for: u64,
    /// For how many milliseconds it can be asked again after that.
    pub patience: u64,
    /// The word for how loudly people are asked; without it, as rules say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What a proposal is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum What {
    /// To run a command.
    Run(Command),
    /// A command that whoever asks does not run.
    Command(Command),
    /// A plan in Markdown.
    Plan(String),
    /// Where the work is: may it go on?
    Checkpoint(String),
}

/// A command, with all that whoever examines it can't find out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Names of variables that it gets besides the usual ones.
    pub env: Vec<String>,
    /// Folders that are bound with it.
    pub with: Vec<PathBuf>,
    /// What its standard input is.
    pub reads: Reads,
    /// As whom it runs.
    pub run_as: RunAs,
}

impl Proposal {
    /// For how long people can answer.
    fn valid_for(&self) -> Duration {
        Duration::from_millis(self.valid_for.min(MAX_TIME))
    }

    /// The command, if it is about one.
    pub fn command(&self) -> Option<&Command> {
        match &self.what {
            What::Run(command) | What::Command(command) => Some(command),
            What::Plan(_) | What::Checkpoint(_) => None,
        }
    }

    /// The permission to do what is proposed, or what an approver has made of it. A rejection is a failure with its reason.
    pub async fn permission(
        mut self,
        home: &Home,
        profile: Option<&str>,
        caller: &Caller,
        interruption: &mut Interruption,
    ) -> Result<Permission, Failure> {
        let mut rejection = None;
        for _ in 0..=MAX_CHANGES {
            let prepared = self.prepare(home, profile, caller)?;
            match Box::pin(prepared.ask(rejection.as_deref(), interruption)).await? {
                Ending::Permitted(permission) => return Ok(*permission),
                Ending::Changed(argv, by) => {
                    if let What::Run(command) = &mut self.what {
                        command.argv = argv;
                    }
                    rejection = Some(by);
                }
            }
        }
        Err(Failure::new(Exit::Rejected, "it was changed too often"))
    }

    /// Makes it a request of the enforcer of a home. What rules deny is not asked about.
    pub fn prepare(&self, home: &Home, profile: Option<&str>, caller: &Caller) -> Result<Prepared, Failure> {
        let identity = home.find(Role::Enforcer, profile)?;
        stopped::refuse(&home.hooks_folder(), self.session.as_deref())?;
        let enforcer = identity.enforcer()?;
        let cwd = caller.folder.clone().ok_or_else(|| {
            Failure::new(Exit::Failed, "the working directory is gone").next("change to one that exists")
        })?;
        let rules = Rules::load(home, &cwd, caller).map_err(|error| error.failure())?;
        rules.check_profile(identity.profile.facts())?;
        let call = self.command().map(|command| Call::of_words(&command.argv, &cwd));
        if let (What::Run(_), Some(call)) = (&self.what, &call) {
            refuse_denied(&rules, call)?;
        }
        let known = Known { home, cwd: &cwd, caller, rules: &rules, enforcer: &enforcer };
        let (payload, plan) = self.what.payload(&known)?;
        let audience = match &call {
            Some(call) => rules.audience(call)?,
            None => rules.usual_audience()?,
        };
        let ring = self.ring.as_deref().and_then(Loudness::of_word);
        let text = payload.to_json().map_err(|error| {
            Failure::new(Exit::Failed, error).next("show people less of it, or ask in parts")
        })?;
        let draft = Draft {
            artifact_type: payload.artifact_type(),
            payload: text,
            repo_name: repository::name_of(&cwd),
            valid_for: self.valid_for(),
            session: self.session.clone(),
            actions: Vec::new(),
            edits: match self.what {
                What::Run(_) => vec![ARGV.to_owned()],
                _ => Vec::new(),
            },
            to: Audience { ring: ring.unwrap_or(audience.ring), ..audience },
        };
        Ok(Prepared {
            identity,
            enforcer,
            draft,
            plan,
            env: rules.passed_variables().to_vec(),
            patience: Duration::from_millis(self.patience.min(MAX_TIME)),
            kept: home.hooks_folder(),
        })
    }
}

/// What is known before people are asked.
struct Known<'a> {
    home: &'a Home,
    cwd: &'a Path,
    caller: &'a Caller,
    rules: &'a Rules,
    enforcer: &'a Enforcer,
}

impl What {
    /// What people review, and the plan of a command that may run.
    fn payload(&self, known: &Known<'_>) -> Result<(Payload, Option<Plan>), Failure> {
        match self {
            Self::Plan(text) => Ok((Payload::Plan(PlanPayload::new(text.clone())), None)),
            Self::Checkpoint(summary) => Ok((Payload::Checkpoint(Checkpoint::new(summary.as_str())), None)),
            Self::Run(command) => {
                let env = [command.env.clone(), known.rules.passed_variables().to_vec()].concat();
                let last = LastEnvironment::read(&known.home.hooks_folder(), KIND);
                let plan = known.plan(command, (&env, &command.with), &last)?;
                Ok((plan.payload(command.reads, &command.run_as), Some(plan)))
            }
            Self::Command(command) => {
                let plan = known.plan(command, (&[], &[]), &LastEnvironment::default())?;
                Ok((plan.payload(command.reads, &command.run_as), None))
            }
        }
    }
}

impl Known<'_> {
    fn plan(
        &self,
        command: &Command,
        (env, with): (&[String], &[PathBuf]),
        last: &LastEnvironment,
    ) -> Result<Plan, Failure> {
        let mac = |name: &str, value: &[u8]| self.enforcer.keys.environment_mac(name, value);
        let wanted = Wanted { variables: &self.caller.variables, env, with, mac: &mac, last };
        Plan::examine(&command.argv, self.cwd, &wanted).map_err(|error| error.failure())
    }
}

/// What a rule denies is not asked for, here as in a hook. An allow rule does not replace the approval.
fn refuse_denied(rules: &Rules, call: &Call) -> Result<(), Failure> {
    let ruling = rules.decide(call);
    match ruling.verdict {
        Verdict::Deny => Err(Failure::new(
            Exit::Rejected,
            format!("a rule denies this, so nobody was asked: {}", visible_code(&ruling.reason)),
        )
        .next("see what rules say with `countersign rules test -- CMD`")
        .detail(&ruling.rule)),
        Verdict::Allow | Verdict::Ask => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_deny_is_refused_before_anybody_is_asked() {
        let (folder, cwd) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = "[[rule]]\nverdict = \"deny\"\ncommand = \"rm **\"\n";
        std::fs::write(folder.path().join("rules.toml"), text).unwrap();
        let rules = Rules::of_folder(folder.path(), None, cwd.path()).unwrap();
        let refuse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            refuse_denied(&rules, &Call::of_words(&words, cwd.path()))
        };
        refuse(&["make", "a b"]).unwrap();
        for words in [
            &["rm", "-rf", "x"][..],
            &["env", "rm", "x"],
            &["sh", "-c", "rm x"],
            &["touch", ".claude/settings.json"],
        ] {
            let failure = refuse(words).unwrap_err();
            assert_eq!(failure.exit, Exit::Rejected, "{words:?}");
            assert!(!failure.detail.is_empty(), "the rule is named");
        }
    }
}
