//! `wait`: the answer to a request that was asked with --detach.

use clap::Args;
use countersign_agents::{
    asking::{self, Attendance, again::Asker},
    hook::machine,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_ask,
        home::Home,
        moment,
        output::{object, out, say, short},
    },
};
use countersign_client::{enforcer::Enforcer, profile::Role, request::Request};
use countersign_wire::{id::RequestId, timestamp::Timestamp};
use serde_json::json;

use super::{
    ask,
    history::{self, HistoryEntry},
    options::{AskAgain, Options},
};

/// Wait for the answer to a request that was asked with --detach.
///
/// The exit code says what the answer was, as with `countersign ask`. If the same was asked again under another id, this
/// waits for the newer one. Without an id it lists the requests that have no answer yet.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The id that `ask --detach` printed, or the beginning of it.
    #[arg(value_name = "ID")]
    request: Option<String>,
    #[command(flatten)]
    again: AskAgain,
}

impl Wait {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        let enforcer = identity.enforcer()?;
        let open = enforcer.open_requests().await.map_err(|error| describe_ask(&error))?;
        let Some(start) = self.request else { return list(&open, enforcer.clock.now(), options) };
        let request = find(&enforcer, open, &start).await?;
        let mut interruption = asking::Interruption::watch()?;
        let (patience, capabilities) = (self.again.patience(), machine::capabilities(home.hooks_folder()));
        let asker = Asker { identity: &identity, enforcer: &enforcer, capabilities, patience };
        let taken = asker.wait(request, Attendance::Detached, &mut interruption).await?;
        let (taken, pins) = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
        ask::report(&enforcer, &pins, taken, options).await
    }
}

fn list(open: &[Request], now: Timestamp, options: &Options) -> Result<(), Failure> {
    if options.json {
        let item = |request: &Request| {
            let asked = HistoryEntry::of_open(request);
            json!({ "requestId": request.request_id, "sentence": asked.sentence, "expiresAt": request.expires_at })
        };
        return object(&json!({ "items": open.iter().map(item).collect::<Vec<_>>() }));
    }
    if open.is_empty() {
        say("Nothing is waiting for an answer.");
        return Ok(());
    }
    let entry = |request: &Request| {
        let until = match now < request.expires_at {
            true => format!("{} left", moment::left(request.expires_at.since(now))),
            false => format!("expired {}", moment::when(request.expires_at, now)),
        };
        format!("{}\n  {until} · {}", HistoryEntry::of_open(request).what, short(&request.request_id))
    };
    out(&open.iter().map(entry).collect::<Vec<_>>().join("\n"))
}

/// The request whose id begins like this, or the one that has taken its place.
async fn find(enforcer: &Enforcer, open: Vec<Request>, start: &str) -> Result<Request, Failure> {
    if let Ok(id) = start.parse::<RequestId>() {
        let newest = enforcer.newest(&id).await.map_err(|error| describe_ask(&error))?;
        if newest != id
            && let Some(request) = open.iter().find(|request| request.request_id == newest)
        {
            say(&format!("  This request was asked again. Waiting for {}.", short(&newest)));
            return Ok(request.clone());
        }
    }
    let begins = |request: &Request| request.request_id.as_str().starts_with(start);
    let mut found: Vec<Request> = open.into_iter().filter(begins).collect();
    match (found.pop(), found.is_empty()) {
        (Some(request), true) => Ok(request),
        (Some(_), false) => Err(Failure::new(Exit::Usage, format!("several requests begin with {start}"))
            .next("type more of the id; `countersign wait` lists them")),
        (None, _) => Err(not_waiting(enforcer, start).await),
    }
}

/// What is true of a request that has no answer to wait for.
async fn not_waiting(enforcer: &Enforcer, start: &str) -> Failure {
    let asked = history::asked(enforcer).await.unwrap_or_default();
    let begins = |asked: &&HistoryEntry| asked.request_id.as_str().starts_with(start);
    let named: Vec<&HistoryEntry> = asked.iter().filter(begins).collect();
    match named[..] {
        [] => {
            Failure::new(Exit::Failed, format!("this machine has asked nothing whose id begins with {start}"))
                .next("check the id and the profile; `countersign wait` lists what has no answer yet")
        }
        [only] => {
            let when = moment::when(only.at, enforcer.clock.now());
            Failure::new(
                Exit::Failed,
                format!("it was {} {when}, and that was already picked up: {}", only.end.word(), only.what),
            )
            .next("see `countersign history`")
            .detail(format!("request {}", only.request_id))
        }
        _ => Failure::new(Exit::Usage, format!("several requests begin with {start}, and all were answered"))
            .next("see `countersign history`"),
    }
}
