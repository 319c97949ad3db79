//! What a request does to the world, in words that a person understands at a glance and a rule can match.

use countersign_wire::{Error, FromMembers, Members};
use serde::Serialize;

use super::part::Text;
use crate::json::vocabulary;

vocabulary! {
    /// The kinds of effects. The list is closed: an enforcer that knows more says it in the detail of one of these.
    pub enum EffectKind {
        /// Removes files or data.
        Deletes = "deletes",
        /// Replaces files or data that are not kept elsewhere.
        Overwrites = "overwrites",
        /// Reads or writes outside of the repository.
        LeavesRepository = "leavesRepository",
        /// Opens connections to other machines.
        Network = "network",
        /// Makes something available to others: a package, a release, a message, a branch.
        Publishes = "publishes",
        /// Changes commits that others may have.
        RewritesHistory = "rewritesHistory",
        /// Reads or writes credentials, keys or files that usually hold them.
        TouchesSecrets = "touchesSecrets",
        /// Acts with more rights than the agent has.
        EscalatesPrivileges = "escalatesPrivileges",
        /// Makes programs load other code, by a variable.
        LoadsCode = "loadsCode",
        /// Removes what runs elsewhere: machines, clusters, deployments.
        DestroysInfrastructure = "destroysInfrastructure",
        /// Removes tables or databases, or everything in them.
        DropsTables = "dropsTables",
        /// Removes branches where others have them.
        DeletesBranches = "deletesBranches",
        /// Sends commits to where others have them.
        Pushes = "pushes",
        /// Sends data to another machine.
        Sends = "sends",
        /// Changes a service that others use.
        Deploys = "deploys",
        /// Runs what is fetched first.
        RunsFetched = "runsFetched",
        /// Runs what another command prints.
        RunsInput = "runsInput",
        /// Installs what others have written.
        Installs = "installs",
        /// Runs the project's tests.
        Tests = "tests",
        /// Builds the project from its sources.
        Builds = "builds",
        /// Checks or formats the project's code.
        Checks = "checks",
        /// Runs code of the project.
        RunsCode = "runsCode",
        /// Runs code that is an argument.
        RunsGiven = "runsGiven",
        /// Runs a program of which no effects are known.
        RunsProgram = "runsProgram",
        /// Commits changes to the repository.
        Commits = "commits",
        /// Changes who may use files.
        ChangesModes = "changesModes",
        /// Only reads, outside of the repository.
        ReadsOutside = "readsOutside",
        /// Reads files inside of the repository.
        Reads = "reads",
        /// Runs a program whose effects are known.
        Runs = "runs",
    }
}

impl EffectKind {
    /// Whether a person is asked each time: it can't be undone, or reaches what the agent should not. A connection to
    /// another machine alone is not dangerous; what is sent over it may be, and has an effect of its own.
    pub fn is_dangerous(self) -> bool {
        match self {
            Self::Network
            | Self::RunsFetched
            | Self::RunsInput
            | Self::Installs
            | Self::Tests
            | Self::Builds
            | Self::Checks
            | Self::RunsCode
            | Self::RunsGiven
            | Self::RunsProgram
            | Self::Commits
            | Self::ChangesModes
            | Self::ReadsOutside
            | Self::Reads
            | Self::Runs => false,
            Self::Deletes
            | Self::Overwrites
            | Self::LeavesRepository
            | Self::Publishes
            | Self::RewritesHistory
            | Self::TouchesSecrets
            | Self::EscalatesPrivileges
            | Self::LoadsCode
            | Self::DestroysInfrastructure
            | Self::DropsTables
            | Self::DeletesBranches
            | Self::Pushes
            | Self::Sends
            | Self::Deploys => true,
        }
    }

    /// The effect as the words of a chip beside the first line.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Deletes => "deletes",
            Self::Overwrites => "overwrites",
            Self::LeavesRepository => "leaves the repository",
            Self::Network => "network",
            Self::Publishes => "publishes",
            Self::RewritesHistory => "rewrites history",
            Self::TouchesSecrets => "touches secrets",
            Self::EscalatesPrivileges => "escalates privileges",
            Self::LoadsCode => "loads other code",
            Self::DestroysInfrastructure => "destroys infrastructure",
            Self::DropsTables => "deletes data",
            Self::DeletesBranches => "deletes branches",
            Self::Pushes => "pushes",
            Self::Sends => "sends data",
            Self::Deploys => "changes a service",
            Self::RunsFetched => "runs what it fetches",
            Self::RunsInput => "runs what is printed",
            Self::Installs => "installs",
            Self::Tests => "runs tests",
            Self::Builds => "builds",
            Self::Checks => "checks code",
            Self::RunsCode => "runs this project's code",
            Self::RunsGiven => "runs code in the command",
            Self::Commits => "commits",
            Self::ChangesModes => "changes permissions",
            Self::ReadsOutside => "reads outside the repository",
            Self::Reads => "reads",
            Self::RunsProgram | Self::Runs => "runs",
        }
    }
}

/// One effect. The enforcer derives it itself, never the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// What it does, in one of the words above.
    #[serde(rename = "effect")]
    pub kind: EffectKind,
    /// To what, such as a path or a host; absent if the kind says it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Effect {
    /// An effect without a detail.
    pub fn new(kind: EffectKind) -> Self {
        Self { kind, detail: None }
    }

    /// An effect on something.
    pub fn on(kind: EffectKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: Some(detail.into()) }
    }
}

impl FromMembers<'_> for Effect {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let detail: Option<Text> = members.optional("detail")?;
        let effect = Self { kind: members.required("effect")?, detail: detail.map(|text| text.0) };
        members.close()?;
        Ok(effect)
    }
}
