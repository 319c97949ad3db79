//! `approve` and `reject`.

use std::time::Duration;

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe_decide,
    moment,
    output::{object, say},
    terminal::Terminal,
};
use countersign_client::{
    pattern::Pattern,
    payload::{Payload, State, visible},
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    requested_actions::Action,
};
use serde_json::json;

use super::{
    inbox::{Desk, answers},
    options::Options,
};
use crate::{
    danger,
    review::{self, MAX_GRANT_TIME},
};

/// Approve a request that is waiting for you.
///
/// Shows all of it, asks for the passphrase of your keys, and then whether you approve. What you have seen is part of what
/// you sign.
#[derive(Debug, Args)]
pub(super) struct Approve {
    /// The id of the request, or the beginning of it. Not needed if only one is waiting.
    #[arg(value_name = "ID")]
    request: Option<String>,
    /// Tell the agent something, such as what to watch out for.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Approve for a time: the same, or what the pattern covers, runs without asking until then. At most 8h.
    #[arg(long = "for", value_name = "TIME", value_parser = moment::duration)]
    time: Option<Duration>,
    /// Approve for the rest of the agent's session, at most 8h or as long as --for says.
    #[arg(long)]
    session: bool,
    /// What a longer approval covers besides exactly this: words, `*` for one argument, `**` at the end for any number.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pattern: Option<Pattern>,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let words = countersign_client::shell::words(text)
        .ok_or("must be words as a shell reads them, with quotes around spaces")?;
    Pattern::new(words).map_err(|error| error.to_string())
}

impl Approve {
    /// What the approval covers, and until when it counts.
    fn scope(&self) -> Result<(Scope, Duration), Failure> {
        match (self.session, self.time) {
            (false, None) if self.pattern.is_some() => {
                Err(Failure::new(Exit::Usage, "--pattern needs a time").next("add --for 1h, or --session"))
            }
            (false, None) => Ok((Scope::Once, review::APPROVAL_VALID)),
            (false, Some(time)) => Ok((Scope::Timebox, time.min(MAX_GRANT_TIME))),
            (true, time) => Ok((Scope::Session, time.unwrap_or(MAX_GRANT_TIME).min(MAX_GRANT_TIME))),
        }
    }

    /// The scope in one sentence: what will run without asking.
    fn sentence(&self, scope: Scope, time: Duration, headline: &str) -> String {
        let what = match &self.pattern {
            Some(pattern) => format!("every `{}`", pattern.words().join(" ")),
            None => "exactly this".to_owned(),
        };
        let time = moment::left(time);
        match scope {
            Scope::Once => format!("Approve once: {headline}"),
            Scope::Timebox => format!(
                "Approve: {headline}\nFor {time}, {what} runs without asking you; dangerous effects always ask."
            ),
            Scope::Session => format!(
                "Approve: {headline}\nFor the rest of this session, at most {time}, {what} runs without asking you; dangerous effects always ask."
            ),
        }
    }
}

/// Reject a request that is waiting for you, and say why if you like.
///
/// Says what is rejected. Nothing more is asked: rejecting is always safe.
#[derive(Debug, Args)]
pub(super) struct Reject {
    /// The id of the request, or the beginning of it. Not needed if only one is waiting.
    #[arg(value_name = "ID")]
    request: Option<String>,
    /// Tell the agent why not, or what to do instead.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Approve {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let (scope, time) = self.scope()?;
        let desk = Desk::open(options)?;
        let request = desk.request(self.request.as_deref()).await?;
        if scope == Scope::Session && request.session.is_none() {
            return Err(Failure::new(Exit::Usage, "this request belongs to no session")
                .next("approve it once, or with --for 1h"));
        }
        if scope != Scope::Once && request.is_edited {
            return Err(Failure::new(Exit::Usage, "what you have changed can be approved once only")
                .next("approve it without --for and --session"));
        }
        let lines = review::lines(&request, desk.approver.clock.now());
        let headline = review::title(&review::payload(&request));
        say(&lines.join("\n"));
        let payload = review::payload(&request);
        if scope != Scope::Once && payload.is_serious() {
            return Err(no_grant(&payload));
        }
        if let Some(why) = review::needs_lock(&request) {
            return Err(Failure::new(Exit::Failed, why));
        }
        let mut terminal = Terminal::open("approving needs a terminal")?;
        let action = choose(&request, &mut terminal)?;
        let outcome = action.map_or(DecisionOutcome::Approve, |action| action.decision);
        let wanted = danger::word_for(&payload).unwrap_or_else(|| "yes".to_owned());
        // A choice is a confirmation, unless there is something to be careful about.
        if action.is_none() || (wanted != "yes" && outcome == DecisionOutcome::Approve) {
            let question = format!("\n{}\nType {wanted}: ", self.sentence(scope, time, &headline));
            if terminal.ask(&question)? != wanted {
                return Err(nothing_decided());
            }
        }
        let shown = format!("the whole request, {} lines", lines.len());
        let words = Words {
            reason: self.reason,
            shown: Some(shown),
            pattern: self.pattern,
            action: action.map(|it| it.id.clone()),
            edit: None,
        };
        let valid_until = desk.approver.clock.now().plus(time);
        let choice = Choice { outcome, scope, valid_until, words };
        decide(&desk, &request, &choice, options).await
    }
}

/// Machines honour no grant for what is serious, so none is signed.
fn no_grant(payload: &Payload) -> Failure {
    let why = match payload.state() {
        Some(State::NotExamined) => "a call that was not examined gets no grant",
        _ => "what is dangerous gets no grant: it always asks",
    };
    Failure::new(Exit::Usage, why).next("approve it once, without --for and --session")
}

/// Lets the person choose among the answers that the enforcer offers; `None` if it offers none.
fn choose<'a>(request: &'a OpenedRequest, terminal: &mut Terminal) -> Result<Option<&'a Action>, Failure> {
    if request.actions.is_empty() {
        return Ok(None);
    }
    let line = |(number, action): (usize, &Action)| format!("  {}  {}", number + 1, visible(&action.caption));
    let lines: Vec<String> = request.actions.iter().enumerate().map(line).collect();
    let answer = terminal.ask(&format!("\n{}\nType the number of your answer: ", lines.join("\n")))?;
    let number: usize = answer.parse().map_err(|_| nothing_decided())?;
    let action = number.checked_sub(1).and_then(|number| request.actions.get(number));
    action.map(Some).ok_or_else(nothing_decided)
}

fn nothing_decided() -> Failure {
    Failure::new(Exit::TakenBack, "nothing was decided").next("to reject it, run `countersign reject`")
}

impl Reject {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let request = desk.request(self.request.as_deref()).await?;
        let payload = review::payload(&request);
        say(&format!("Rejecting: {}\n  {}", review::title(&payload), review::who(&request, &payload)));
        let words = Words { reason: self.reason, ..Words::default() };
        let valid_until = desk.approver.clock.now().plus(review::APPROVAL_VALID);
        let choice = Choice { outcome: DecisionOutcome::Reject, scope: Scope::Once, valid_until, words };
        decide(&desk, &request, &choice, options).await
    }
}

async fn decide(
    desk: &Desk,
    request: &OpenedRequest,
    choice: &Choice,
    options: &Options,
) -> Result<(), Failure> {
    send(desk, request, choice, options).await?;
    let word = match choice.outcome {
        DecisionOutcome::Approve => "approved",
        DecisionOutcome::Reject => "rejected",
    };
    if options.json {
        let sentence = review::payload(request).sentence();
        return object(&json!({ "requestId": request.request_id, "decision": word, "sentence": sentence }));
    }
    say(&format!("✓ {word}, signed and accepted by the gateway"));
    Ok(())
}

/// Signs an answer, sends it, and keeps a line of it.
pub(super) async fn send(
    desk: &Desk,
    request: &OpenedRequest,
    choice: &Choice,
    options: &Options,
) -> Result<(), Failure> {
    desk.approver.decide(request, choice).await.map_err(|error| {
        describe_decide(&error, request).detail(format!("request {}", request.request_id))
    })?;
    // If it can't be kept, it counts all the same.
    if let Ok(answers) = answers(options) {
        answers.keep(request, choice, desk.approver.clock.now());
    }
    Ok(())
}
