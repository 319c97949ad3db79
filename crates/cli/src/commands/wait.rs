//! `wait`: the answer to a request that was asked with --detach.

use clap::Args;
use countersign_agents::{
    asking,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_ask,
        home::{Home, failed},
        output::{columns, out, say},
    },
};
use countersign_client::profile::Role;
use countersign_wire::id::RequestId;

use super::{ask, options::Options};

/// Wait for the answer to a request that was asked with --detach.
///
/// The exit code says what it was, as with `countersign ask`. Without an id it lists what was asked and not answered.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The id that `ask --detach` printed.
    #[arg(value_name = "ID")]
    request: Option<RequestId>,
}

impl Wait {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let open = enforcer.open_requests().await.map_err(|error| describe_ask(&error))?;
        let Some(id) = self.request else {
            let rows: Vec<Vec<String>> = open
                .iter()
                .map(|it| vec![it.request_id.to_string(), format!("until {}", it.expires_at)])
                .collect();
            if rows.is_empty() {
                say("Nothing waits for an answer.");
                return Ok(());
            }
            return out(&columns(&rows));
        };
        let request = open.into_iter().find(|request| request.request_id == id).ok_or_else(|| {
            Failure::new(Exit::Failed, format!("no request {id} waits for an answer here"))
                .next("it was answered and picked up, or asked with another profile; `countersign wait` lists what waits")
        })?;
        let mut interruption = asking::Interruption::watch()?;
        let taken = asking::wait(&enforcer, &pins, &request, &mut interruption).await?;
        let taken = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
        ask::report(&enforcer, &pins, taken, options).await
    }
}
