//! `approve` and `reject`.

use clap::Args;
use countersign_client::{
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use serde_json::json;

use super::{Options, inbox::Desk};
use crate::{
    exit::{Exit, Failure},
    gateway_error::describe_decide,
    output::{object, say},
    review,
    terminal::Terminal,
};

/// Approve a request.
///
/// Shows all of it, asks for the passphrase of your keys, and then whether you approve. What you have seen is part of what
/// you sign.
#[derive(Debug, Args)]
pub(super) struct Approve {
    /// The id of the request, or the beginning of it.
    #[arg(value_name = "ID")]
    request: String,
    /// Words for the agent, such as what to mind.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Reject a request.
#[derive(Debug, Args)]
pub(super) struct Reject {
    /// The id of the request, or the beginning of it.
    #[arg(value_name = "ID")]
    request: String,
    /// Words for the agent: why not, or what to do instead.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Approve {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let request = desk.request(&self.request).await?;
        let lines = review::lines(&request, desk.approver.clock.now());
        let headline = lines[0].clone();
        say(&lines.join("\n"));
        let mut terminal = Terminal::open("an approval is confirmed in a terminal")?;
        let answer = terminal.ask(&format!("\nApprove once: {headline}\nType yes: "))?;
        if answer != "yes" {
            return Err(Failure::new(Exit::TakenBack, "nothing was decided")
                .next("reject it with `countersign reject`"));
        }
        let shown = format!("the whole request, {} lines", lines.len());
        let words = Words { reason: self.reason, shown: Some(shown), ..Words::default() };
        decide(&desk, &request, DecisionOutcome::Approve, words, options).await
    }
}

impl Reject {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let request = desk.request(&self.request).await?;
        let words = Words { reason: self.reason, ..Words::default() };
        decide(&desk, &request, DecisionOutcome::Reject, words, options).await
    }
}

async fn decide(
    desk: &Desk,
    request: &OpenedRequest,
    outcome: DecisionOutcome,
    words: Words,
    options: &Options,
) -> Result<(), Failure> {
    let valid_until = desk.approver.clock.now().plus(review::APPROVAL_VALID);
    let choice = Choice { outcome, scope: Scope::Once, valid_until, words };
    desk.approver
        .decide(request, &choice)
        .await
        .map_err(|error| describe_decide(&error).detail(format!("request {}", request.request_id)))?;
    let word = match outcome {
        DecisionOutcome::Approve => "approved",
        DecisionOutcome::Reject => "rejected",
    };
    if options.json {
        return object(&json!({ "requestId": request.request_id, "decision": word }));
    }
    say(&format!("✓ {word}: signed, and accepted by the gateway"));
    Ok(())
}
