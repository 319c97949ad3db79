//! `ask-again`: an approver wants to answer what has expired.

use std::time::Duration;

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    moment,
    output::{object, out, say, short},
};
use countersign_client::{approver::InboxItem, request::OpenedRequest};
use countersign_wire::{id::RequestId, timestamp::Timestamp};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{inbox::Desk, options::Options};
use crate::review;

/// How long machines keep what has expired, and gateways what was asked for.
const KEPT: Duration = Duration::from_hours(24);

/// How long the machine has to answer before this command ends.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The pause between two looks at the inbox.
const PAUSE: Duration = Duration::from_millis(500);

/// Ask again for a request that expired before you answered.
///
/// The machine shows you the same once more, as a new request: if the command that asked still waits there, or if it was asked
/// with `ask --detach` and `countersign wait` or `countersign listen` runs. Without an id it lists what has expired in the
/// last day.
#[derive(Debug, Args)]
pub(super) struct AskAgain {
    /// The id of the request, or the beginning of it.
    #[arg(value_name = "ID")]
    request: Option<String>,
}

impl AskAgain {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let now = desk.approver.clock.now();
        let expired = desk.approver.expired(&desk.pins).await.map_err(|error| describe(&error))?;
        let is_kept = |item: &InboxItem| match &item.opened {
            Ok(request) => request.expires_at.plus(KEPT) > now,
            Err(_) => false,
        };
        let expired: Vec<OpenedRequest> =
            expired.into_iter().filter(is_kept).filter_map(|item| item.opened.ok()).collect();
        let Some(start) = self.request else { return list(&expired, now, options) };
        let waiting = waiting(&desk).await?;
        let request = chosen(&expired, &waiting, &start)?;
        if let Some(newer) = newer(&expired, &waiting, &request.request_id) {
            return report(&request.request_id, Some(newer), options);
        }
        let asked = desk.approver.refresh(&request.request_id, None).await;
        asked.map_err(|error| describe(&error).detail(format!("request {}", request.request_id)))?;
        let until = Instant::now() + ANSWER_TIME;
        while Instant::now() < until {
            sleep(PAUSE).await;
            // Only the machine itself can say that a request takes the place of another.
            if let Some(newer) = newer(&expired, &self::waiting(&desk).await?, &request.request_id) {
                return report(&request.request_id, Some(newer), options);
            }
        }
        report(&request.request_id, None, options)
    }
}

async fn waiting(desk: &Desk) -> Result<Vec<OpenedRequest>, Failure> {
    let items = desk.approver.inbox(&desk.pins).await.map_err(|error| describe(&error))?;
    Ok(items.into_iter().filter_map(|item| item.opened.ok()).collect())
}

/// The expired request whose id begins like this.
fn chosen<'a>(
    expired: &'a [OpenedRequest],
    waiting: &[OpenedRequest],
    start: &str,
) -> Result<&'a OpenedRequest, Failure> {
    let begins = |request: &&OpenedRequest| request.request_id.as_str().starts_with(start);
    let found: Vec<&OpenedRequest> = expired.iter().filter(begins).collect();
    match found[..] {
        [only] => Ok(only),
        [] if waiting.iter().any(|request| begins(&request)) => {
            Err(Failure::new(Exit::Usage, "this request is still waiting for you").next(format!(
                "answer it with `countersign approve {start}` or `countersign reject {start}`"
            )))
        }
        [] => Err(Failure::new(
            Exit::Failed,
            format!("no request that begins with {start} has expired in the last day"),
        )
        .next("it may be answered or taken back; `countersign ask-again` lists what has expired")),
        _ => Err(Failure::new(Exit::Usage, format!("several requests begin with {start}"))
            .next("type more of the id")),
    }
}

/// The request that waits in the place of this one, also if those between have expired too.
fn newer(expired: &[OpenedRequest], waiting: &[OpenedRequest], id: &RequestId) -> Option<RequestId> {
    let mut place = id.clone();
    // Of what names itself in a circle, each is followed once.
    for _ in 0..=expired.len() {
        let takes = |request: &&OpenedRequest| request.supersedes.as_ref() == Some(&place);
        if let Some(request) = waiting.iter().find(takes) {
            return Some(request.request_id.clone());
        }
        place = expired.iter().find(takes)?.request_id.clone();
    }
    None
}

fn report(id: &RequestId, newer: Option<RequestId>, options: &Options) -> Result<(), Failure> {
    if options.json {
        return object(&json!({ "requestId": id, "askedAgainAs": newer }));
    }
    match newer {
        Some(newer) => say(&format!("✓ asked again as {newer}\n  Next: countersign approve {newer}")),
        None => say(
            "✓ told the machine, which has not asked again yet. If it is still waiting, the request appears\n  in your inbox as soon as it connects.",
        ),
    }
    Ok(())
}

fn list(expired: &[OpenedRequest], now: Timestamp, options: &Options) -> Result<(), Failure> {
    if options.json {
        let items: Vec<Value> = expired.iter().map(json_of).collect();
        return object(&json!({ "items": items }));
    }
    if expired.is_empty() {
        say("Nothing expired in the last day.");
        return Ok(());
    }
    let row = |request: &OpenedRequest| {
        let payload = review::payload(request);
        let (who, when) = (review::who(request, &payload), moment::when(request.expires_at, now));
        format!("{}\n  {who} · expired {when} · {}", review::title(&payload), short(&request.request_id))
    };
    out(&expired.iter().map(row).collect::<Vec<_>>().join("\n"))?;
    say("\nAsk for one again with `countersign ask-again ID`; the id is at the end of each entry.");
    Ok(())
}

fn json_of(request: &OpenedRequest) -> Value {
    json!({
        "requestId": request.request_id, "enforcer": request.enforcer, "expiresAt": request.expires_at,
        "headline": review::payload(request).headline(),
    })
}
