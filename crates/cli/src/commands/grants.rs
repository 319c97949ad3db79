//! `grants`: what may run without asking again.

use clap::{Args, Subcommand};
use countersign_agents::{
    asking::scope_word,
    tool::{
        exit::Failure,
        gateway_error::describe_ask,
        home::{Home, failed},
        moment,
        output::{columns, object, out, say},
    },
};
use countersign_client::{
    grant::{Grant, GrantRules},
    profile::Role,
};
use countersign_wire::id::RequestId;
use serde_json::{Value, json};

use super::options::Options;

/// List or revoke approvals that last for a while.
///
/// A grant is an approval for a time or a session (`countersign approve --for 1h`). It ends by itself, when the device that
/// signed it is revoked, and when it is taken back here. What is dangerous always asks.
#[derive(Debug, Args)]
pub(super) struct Grants {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List them. This is the default.
    List,
    /// Revoke one. What is already running continues.
    Revoke {
        /// The id of the request that was approved, as `list` shows it.
        #[arg(value_name = "ID")]
        request: RequestId,
    },
}

impl Grants {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        if let Some(Command::Revoke { request }) = self.command {
            enforcer.revoke_grant(&request).await.map_err(|error| describe_ask(&error))?;
            if options.json {
                return object(&json!({ "revoked": request }));
            }
            say(&format!("✓ revoked: {request} no longer allows anything"));
            return Ok(());
        }
        let found =
            enforcer.grants(&pins, &GrantRules::default()).await.map_err(|error| describe_ask(&error))?;
        if options.json {
            return object(&json!({ "grants": found.iter().map(json_of).collect::<Vec<_>>() }));
        }
        if found.is_empty() {
            say("No lasting approvals: everything is asked.");
            return Ok(());
        }
        let now = enforcer.clock.now();
        let row = |grant: &Grant| {
            vec![
                grant.request_id.to_string(),
                format!("{} left", moment::left(grant.ends_at.since(now))),
                format!("by {}", grant.decision.approver),
                scope_word(grant.decision.scope).to_owned(),
                covers(grant),
            ]
        };
        out(&columns(&found.iter().map(row).collect::<Vec<_>>()))
    }
}

/// What a grant covers, as one reads it.
fn covers(grant: &Grant) -> String {
    match &grant.decision.words.pattern {
        Some(pattern) => pattern.words().join(" "),
        None => format!("exactly: {}", grant.headline),
    }
}

fn json_of(grant: &Grant) -> Value {
    json!({
        "requestId": grant.request_id, "approver": grant.decision.approver, "scope": grant.decision.scope,
        "session": grant.decision.session, "endsAt": grant.ends_at, "headline": grant.headline,
        "pattern": grant.decision.words.pattern.as_ref().map(|pattern| pattern.words().to_vec()),
    })
}
