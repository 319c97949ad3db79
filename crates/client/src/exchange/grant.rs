//! What an approval for a time or a session covers (docs/grants.md). No I/O.
//!
//! A grant is a decision in the journal. It is checked again at each use, by the same checks as when it came: so it ends
//! when its signer is revoked, when it expires, and when it was changed on the disk.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim,
    artifact::Artifact,
    decision::{DecisionOutcome, Scope},
    hash::Sha256Hex,
    id::RequestId,
    timestamp::Timestamp,
};
use serde::Deserialize;

use crate::{
    content::{
        pattern::Pattern,
        payload::{Call, Command, CommandFile, FileRole, Invocation, Payload, State},
        shell,
    },
    exchange::{
        audience::Verify,
        effect_hash::{effect_hash, effect_of_draft},
        reply::{VerifiedDecision, Verifier},
        request::{Draft, Request, repo_name},
        taken::{Decided, Settled},
    },
    journal::Record,
};

/// What an enforcer allows of grants, whatever was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantRules {
    /// A grant ends this long after the decision came, if it does not end before. Zero turns grants off.
    pub longest: Duration,
}

impl Default for GrantRules {
    fn default() -> Self {
        Self { longest: Duration::from_hours(8) }
    }
}

/// An approval that covers more than one execution.
#[derive(Clone)]
pub struct Grant {
    /// The request that was approved.
    pub request_id: RequestId,
    /// Who approved it, for which scope, and which pattern.
    pub decision: VerifiedDecision,
    /// The time from which it covers nothing: the decision's own, or an earlier one by the enforcer's rule.
    pub ends_at: Timestamp,
    /// What was shown, in one line.
    pub headline: String,
    effect: Sha256Hex,
    repo_name: String,
    command: Option<Command>,
    pub(crate) decided: Decided,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Grant({} until {})", self.request_id, self.ends_at)
    }
}

impl Grant {
    /// The grant in a record of the journal; `None` if it is none, or has ended. Whether it was revoked here is a record of
    /// its own.
    pub(crate) fn read(
        record: &Record,
        verifier: &Verifier<'_>,
        rules: &GrantRules,
        now: Timestamp,
    ) -> Option<Self> {
        let Settled::Decided(decided) = Settled::read(record).ok()? else { return None };
        if !says_more_than_once(&decided.decision) {
            return None;
        }
        let request = Request::of_artifact(decided.artifact.clone(), String::new()).ok()?;
        let decision = verifier.check_kept(decided.decision.as_bytes(), &request, now).ok()?;
        let is_grant = decision.outcome == DecisionOutcome::Approve && decision.scope != Scope::Once;
        let taken_at: Timestamp = decided.taken_at.parse().ok()?;
        let ends_at = decision.valid_until.min(taken_at.plus(rules.longest));
        if !is_grant || now >= ends_at {
            return None;
        }
        let artifact: Verbatim<'_, Artifact<'_>> =
            countersign_wire::parse(decided.artifact.as_bytes()).ok()?;
        let payload = Payload::read(artifact.artifact_type, &artifact.payload);
        let repo_name = repo_name(&artifact).unwrap_or_default();
        let effect = effect_hash(artifact.artifact_type, artifact.payload, &repo_name).ok()?;
        let headline = payload.headline();
        let command = match payload {
            Payload::Command(command) => Some(command),
            _ => None,
        };
        drop(artifact);
        let request_id = request.request_id.clone();
        Some(Self { request_id, decision, ends_at, headline, effect, repo_name, command, decided: *decided })
    }

    /// Whether what is drafted may be done now without asking again.
    pub fn covers(&self, draft: &Draft, now: Timestamp) -> bool {
        let is_its_session = match self.decision.scope {
            Scope::Once => false,
            Scope::Timebox => true,
            Scope::Session => self.decision.session.is_some() && self.decision.session == draft.session,
        };
        let Ok(object) = RawObject::parse(draft.payload.as_bytes()) else { return false };
        let payload = Payload::read(draft.artifact_type, &object);
        if now >= self.ends_at || !is_its_session || payload.is_serious() {
            return false;
        }
        // Where a person has to be verified, the grant has to be that of one.
        if draft.to.verify == Verify::Person && self.decision.gesture.is_none() {
            return false;
        }
        // Who would not be asked about it has not approved it either.
        if !draft.to.includes(self.decision.approver.as_str()) {
            return false;
        }
        let is_same = effect_of_draft(draft).is_ok_and(|effect| effect == self.effect);
        is_same || self.pattern_covers(&payload, &draft.repo_name)
    }

    /// Whether the pattern covers another command: everything but the arguments must be as it was shown.
    fn pattern_covers(&self, payload: &Payload, repo_name: &str) -> bool {
        let (Some(pattern), Some(shown)) = (&self.decision.words.pattern, &self.command) else {
            return false;
        };
        let Payload::Command(command) = payload else { return false };
        let is_same_place = repo_name == self.repo_name
            && command.cwd == shown.cwd
            && command.env == shown.env
            && command.stdin == shown.stdin
            && around(command) == around(shown);
        // A program or script that was not shown is not covered, whatever it is called.
        let are_files_shown = executables(command).eq(executables(shown))
            && command.files.iter().all(|file| shown.files.contains(file));
        let is_examined = command.context.state == Some(State::Examined);
        let is_covered = |it| invocation_is_covered(pattern, it);
        is_same_place && are_files_shown && is_examined && is_covered(command) && is_covered(shown)
    }
}

/// Whether a pattern covers a program with its arguments, or every command in the text of a shell.
fn invocation_is_covered(pattern: &Pattern, command: &Command) -> bool {
    match &command.invocation {
        Invocation::Argv(argv) => pattern.covers(argv),
        Invocation::Shell(text) => shell::plain_commands(text, &command.cwd)
            .is_some_and(|commands| commands.iter().all(|argv| pattern.covers(argv))),
    }
}

/// Whether a decision claims to be for more than one execution. Most are not, and need not be verified to know it.
fn says_more_than_once(decision: &str) -> bool {
    #[derive(Deserialize)]
    struct Claim {
        scope: Scope,
    }
    serde_json::from_str::<Claim>(decision).is_ok_and(|claim| claim.scope != Scope::Once)
}

/// What of a call is not its command: who asks when, where, in which environment, with which program.
fn around(command: &Command) -> Option<Call> {
    command.context.call.as_deref().map(Call::without_command)
}

fn executables(command: &Command) -> impl Iterator<Item = &CommandFile> {
    command.files.iter().filter(|file| file.role == FileRole::Executable)
}

#[cfg(test)]
mod tests;
