//! From a proposal to a permission: a grant that covers it, or a person.

use std::{path::PathBuf, time::Duration};

use countersign_client::{
    edit::EditError, enforcer::Enforcer, profile::Pins, receipt::Outcome, request::Draft, taken::Taken,
};
use countersign_wire::decision::DecisionOutcome;
use serde_json::{Value, json};

use crate::{
    asking::{self, Interruption, Rejection, again::Asker},
    examine::environment::last::LastEnvironment,
    execution::{KIND, Plan},
    hook::{machine, stopped},
    tool::{
        exit::{Exit, Failure},
        home::Identity,
        output::say,
    },
};

/// A proposal that can be asked about.
pub struct Prepared {
    /// The profile that asks.
    pub identity: Identity,
    /// The same, with its keys.
    pub enforcer: Enforcer,
    /// The request as it will be submitted.
    pub draft: Draft,
    /// The command that would run, as it was examined.
    pub(super) plan: Option<Plan>,
    /// Names of variables that rules pass to commands.
    pub(super) env: Vec<String>,
    pub(super) patience: Duration,
    /// Where this machine keeps what it remembers between two calls.
    pub(super) kept: PathBuf,
}

/// How asking has ended, if not with a failure.
pub(super) enum Ending {
    Permitted(Box<Permission>),
    /// It was rejected, and this command is to be asked for in its place.
    Changed(Vec<String>, Box<Rejection>),
}

/// An approval that was taken: it counts as used, and [`Permission::finish`] says what became of it.
pub struct Permission {
    enforcer: Enforcer,
    pins: Pins,
    taken: Taken,
    /// The command that may run, as it was examined.
    pub plan: Option<Plan>,
    /// Names of variables that rules pass to commands.
    pub env: Vec<String>,
}

impl Prepared {
    /// A request that is no proposal of a command.
    pub fn new(identity: Identity, enforcer: Enforcer, draft: Draft, kept: PathBuf) -> Self {
        Self { identity, enforcer, draft, plan: None, env: Vec::new(), patience: Duration::ZERO, kept }
    }

    /// The permission. A rejection is a failure with its reason.
    pub async fn permission(self, interruption: &mut Interruption) -> Result<Permission, Failure> {
        match Box::pin(self.ask(None, interruption)).await? {
            Ending::Permitted(permission) => Ok(*permission),
            Ending::Changed(..) => {
                Err(Failure::new(Exit::Rejected, "rejected, with a change of what can't be changed"))
            }
        }
    }

    /// Asks everybody whom it is for; or whoever has made it of what was asked before, and nobody else.
    pub(super) async fn ask(
        self,
        of: Option<&Rejection>,
        interruption: &mut Interruption,
    ) -> Result<Ending, Failure> {
        let Self { identity, enforcer, draft, plan, env, patience, kept } = self;
        if let Some(note) = plan.as_ref().and_then(Plan::note) {
            say(&note);
        }
        let capabilities = machine::capabilities(kept.clone());
        let asker = Asker { identity: &identity, enforcer: &enforcer, capabilities, patience };
        let taken = match of {
            None => asker.permission(&draft, interruption).await?,
            Some(rejection) => asker.changed(&draft, rejection, interruption).await?,
        };
        let (taken, pins) = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
        if let Err(stopped) = stopped::refuse(&kept, draft.session.as_deref()) {
            let reason = stopped.what.clone();
            asking::finish(&enforcer, &pins, taken, Outcome::Refused { reason }).await;
            return Err(stopped);
        }
        if let Err(rejected) = asking::announce(&taken.decision, enforcer.clock.now()) {
            let (request_id, decision) = (taken.request_id.clone(), taken.decision.clone());
            let changed = decision.words.edit.as_ref().zip(plan.as_ref()).map(|(edit, plan)| {
                let changed = edit.apply(&json!({ "argv": plan.argv() }), &draft.edits)?;
                Ok::<_, EditError>(serde_json::from_value(changed["argv"].clone()).unwrap_or_default())
            });
            let outcome = match &changed {
                Some(Err(error)) => Outcome::Refused { reason: error.to_string() },
                _ => Outcome::Applied { exit_status: None },
            };
            asking::finish(&enforcer, &pins, taken, outcome).await;
            return match changed {
                None => Err(rejected),
                Some(Ok(argv)) => Ok(Ending::Changed(argv, Box::new(Rejection { request_id, decision }))),
                Some(Err(error)) => {
                    let what = format!("{}, with a change that can't be made: {error}", rejected.what);
                    Err(Failure { what, ..rejected })
                }
            };
        }
        if let Some(plan) = &plan {
            // If it can't be kept, the next one is compared with an earlier one.
            drop(LastEnvironment::keep(&kept, KIND, plan.bound_environment()));
        }
        Ok(Ending::Permitted(Box::new(Permission { enforcer, pins, taken, plan, env })))
    }
}

impl Permission {
    /// The decision, for programs.
    pub fn json(&self) -> Value {
        json_of(&self.taken)
    }

    /// Says what became of it to whoever decided.
    pub async fn finish(self, outcome: Outcome) {
        asking::finish(&self.enforcer, &self.pins, self.taken, outcome).await;
    }
}

/// A decision for programs.
pub fn json_of(taken: &Taken) -> Value {
    let decision = &taken.decision;
    json!({
        "outcome": match decision.outcome { DecisionOutcome::Approve => "approved", DecisionOutcome::Reject => "rejected" },
        "requestId": taken.request_id, "use": taken.number, "approver": decision.approver,
        "device": decision.device.to_string(), "scope": decision.scope, "validUntil": decision.valid_until,
        "reason": decision.words.reason, "action": decision.words.action,
    })
}
