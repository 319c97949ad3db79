//! `wait`: the answer to a request that was asked with --detach.

use clap::Args;
use countersign_agents::{
    asking::{self, Attendance, again::Asker},
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_ask,
        home::{Home, failed},
        output::{columns, out, say},
    },
};
use countersign_client::{enforcer::Enforcer, profile::Role, request::Request};
use countersign_wire::{id::RequestId, timestamp::Timestamp};

use super::{
    ask,
    options::{AskAgain, Options},
};

/// Wait for the answer to a request that was asked with --detach.
///
/// The exit code says what it was, as with `countersign ask`. If it has expired and was asked again, the newer request is
/// waited for. Without an id it lists what was asked and not answered.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The id that `ask --detach` printed.
    #[arg(value_name = "ID")]
    request: Option<RequestId>,
    #[command(flatten)]
    again: AskAgain,
}

impl Wait {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let open = enforcer.open_requests().await.map_err(|error| describe_ask(&error))?;
        let Some(id) = self.request else { return list(&open, enforcer.clock.now()) };
        let request = find(&enforcer, open, &id).await?;
        let mut interruption = asking::Interruption::watch()?;
        let asker = Asker { identity: &identity, enforcer: &enforcer, patience: self.again.patience() };
        let taken = asker.wait(request, Attendance::Detached, &mut interruption).await?;
        let taken = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
        ask::report(&enforcer, &pins, taken, options).await
    }
}

fn list(open: &[Request], now: Timestamp) -> Result<(), Failure> {
    if open.is_empty() {
        say("Nothing waits for an answer.");
        return Ok(());
    }
    let row = |request: &Request| {
        let word = if now < request.expires_at { "until" } else { "expired at" };
        vec![request.request_id.to_string(), format!("{word} {}", request.expires_at)]
    };
    out(&columns(&open.iter().map(row).collect::<Vec<_>>()))
}

/// The request of this id, or the one that has taken its place.
async fn find(enforcer: &Enforcer, open: Vec<Request>, id: &RequestId) -> Result<Request, Failure> {
    let newest = enforcer.newest(id).await.map_err(|error| describe_ask(&error))?;
    let request = open.into_iter().find(|request| request.request_id == newest).ok_or_else(|| {
        Failure::new(Exit::Failed, format!("no request {id} waits for an answer here"))
            .next("it was answered and picked up, or asked with another profile; `countersign wait` lists what waits")
    })?;
    if newest != *id {
        say(&format!("  {id} expired and was asked again.\n  Waiting for {newest} instead."));
    }
    Ok(request)
}
