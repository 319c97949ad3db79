//! `rules suggest`: rules that a person's own answers suggest.

use std::collections::HashSet;

use clap::Args;
use countersign_agents::{
    rules::{
        Rules,
        change::Change,
        suggest::{Answered, Suggested, Suggestion, Wanted, suggest},
    },
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::{Home, Identity, failed},
        moment,
        output::{object, out, say},
    },
};
use countersign_client::{
    bundle::{Bundle, Certainty, Claim},
    clock::{Clock as _, SystemClock},
    payload::{Payload, visible_code},
    profile::{Pins, Role},
};
use countersign_wire::{
    Verbatim, artifact::Artifact, decision::DecisionOutcome, parse, timestamp::Timestamp,
};
use serde_json::{Value, json};

use super::{options::Options, set_rules};

/// For how long answers are kept.
const DAYS: u16 = 30;

/// How often something must have been approved, unless it is said.
const TIMES: u32 = 5;

const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// What is looked for, and what to do with it.
#[derive(Debug, Args)]
pub(super) struct Suggest {
    /// Add the suggestion with this id to your rules; can be given more than once.
    #[arg(long, value_name = "ID")]
    add: Vec<String>,
    /// Ask a paired device before it is added.
    #[arg(long, requires = "add")]
    ask: bool,
    /// How many days to look back. What was rejected counts for as long as it is kept.
    #[arg(long, value_name = "DAYS", default_value_t = DAYS, value_parser = clap::value_parser!(u16).range(1..=30))]
    days: u16,
    /// How often something must have been approved.
    #[arg(long, value_name = "COUNT", default_value_t = TIMES, value_parser = clap::value_parser!(u32).range(2..))]
    times: u32,
    /// Also suggest what may run the project's own code, such as its tests, or write what an agent chooses.
    #[arg(long)]
    code: bool,
}

impl Suggest {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        // Said here, because a repository whose rules can't be read only has no suggestions.
        Rules::load(&home, home.folder(), &Caller::this_process()).map_err(|error| error.failure())?;
        let now = SystemClock.now();
        let answered = answered(&identity, self.since(now), now).await?;
        let found = self.found(&home, &answered, self.code)?;
        if !self.add.is_empty() {
            return self.add(&home, &found, options).await;
        }
        if options.json {
            let rules: Vec<Value> = found.rules.iter().map(as_json).collect();
            return object(&json!({ "rules": rules, "asked": found.asked, "answered": found.answered }));
        }
        self.print(&found)?;
        if !self.code {
            let with_code = self.found(&home, &answered, true)?;
            let left_out: Vec<&Suggestion> = with_code.rules.iter().filter(|it| it.runs_code).collect();
            if !left_out.is_empty() {
                let times: usize = left_out.iter().map(|it| it.times).sum();
                let rules = match left_out.len() {
                    1 => "1 more rule".to_owned(),
                    count => format!("{count} more rules"),
                };
                say(&format!(
                    "{rules} would let agents run code that they may have just written, or\n\
                     write what they choose (asked {times} times). Add them only where the agent is\n\
                     contained, as by `countersign run`. --code lists them."
                ));
            }
        }
        Ok(())
    }

    fn since(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_micros(now.unix_micros() - i64::from(self.days) * DAY_MICROS)
    }

    fn found(&self, home: &Home, answered: &[Answered], with_code: bool) -> Result<Suggested, Failure> {
        let wanted = Wanted { times: self.times as usize, with_code };
        let found = suggest(answered, wanted, &mut |cwd| Rules::load(home, cwd, &Caller::this_process()));
        found.map_err(|error| error.failure())
    }

    fn print(&self, found: &Suggested) -> Result<(), Failure> {
        let asked = match found.asked {
            1 => "1 question".to_owned(),
            asked => format!("{asked} questions"),
        };
        let Some(first) = found.rules.first() else {
            say(&format!(
                "Nothing to suggest. No rule answers {asked}; among these, no harmless\n\
                 command was approved {} times in one repository and never rejected.",
                self.times
            ));
            return Ok(());
        };
        let now = SystemClock.now();
        for suggestion in &found.rules {
            out(&described(suggestion, now))?;
        }
        say(&format!("Together they would have answered {} of {asked}.", found.answered));
        say(&format!("Add one to your rules: countersign rules suggest{} --add {}", self.again(), first.id));
        Ok(())
    }

    /// The options by which the same is found again.
    fn again(&self) -> String {
        let days = (self.days != DAYS).then(|| format!(" --days {}", self.days));
        let times = (self.times != TIMES).then(|| format!(" --times {}", self.times));
        let code = self.code.then(|| " --code".to_owned());
        [days, times, code].into_iter().flatten().collect()
    }

    async fn add(&self, home: &Home, found: &Suggested, options: &Options) -> Result<(), Failure> {
        let wanted = |id: &String| {
            found.rules.iter().find(|suggestion| suggestion.id == *id).ok_or_else(|| {
                Failure::new(Exit::Usage, format!("there is no suggestion {}", visible_code(id))).next(format!(
                    "list them with `countersign rules suggest{}`, and add one with the same options; nothing was changed",
                    self.again()
                ))
            })
        };
        let chosen = self.add.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
        let text: String = chosen.iter().map(|suggestion| with_reason(suggestion)).collect();
        let change = Change::adding(home, &text).map_err(|error| error.failure())?;
        if !options.json {
            out(text.trim())?;
        }
        Box::pin(set_rules::put_in_force(home, &change, self.ask, options)).await
    }
}

/// What agents on this machine asked, and was answered by paired devices: approvals since a time, and every rejection.
async fn answered(identity: &Identity, since: Timestamp, now: Timestamp) -> Result<Vec<Answered>, Failure> {
    let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
    let own_keys = enforcer.keys.bundle().to_string();
    let (mut answered, mut known) = (Vec::new(), HashSet::new());
    for name in enforcer.bundles().await.map_err(|error| Failure::new(Exit::Failed, error))? {
        let bundle = enforcer.bundle(&name).await;
        let bundle =
            bundle.map_err(|error| Failure::new(Exit::Failed, format!("the record {name}: {error}")))?;
        let own = bundle.filter(|bundle| bundle.enforcer.keys == own_keys);
        let Some((bundle, answer)) =
            own.and_then(|bundle| answer(&bundle, &pins, now).map(|it| (bundle, it)))
        else {
            continue;
        };
        if counts(&answer, since) && known.insert(bundle.receipt.request_id) {
            answered.push(answer);
        }
    }
    Ok(answered)
}

/// Whether an answer is looked at: a rejection for as long as it is kept.
fn counts(answer: &Answered, since: Timestamp) -> bool {
    !answer.is_approved || answer.at >= since
}

/// A question and its answer; `None` if nobody who is paired has signed it, or nobody was asked.
fn answer(bundle: &Bundle, pins: &Pins, now: Timestamp) -> Option<Answered> {
    let report = bundle.verify(Some(pins)).ok()?;
    let claims =
        [Claim::Artifact, Claim::About, Claim::Signature, Claim::Approver, Claim::Receipt, Claim::Decision];
    // Later uses are of a grant.
    let was_asked = bundle.receipt.number == 1;
    if !was_asked || claims.iter().any(|claim| report.certainty(*claim) != Certainty::Proven) {
        return None;
    }
    let is_approved = report.outcome == DecisionOutcome::Approve;
    // A device that was revoked since still says no.
    if is_approved && !pins.is_active(bundle.signer.bundle()?.1, now) {
        return None;
    }
    let artifact: Verbatim<'_, Artifact<'_>> = parse(bundle.artifact.as_deref()?.as_bytes()).ok()?;
    let payload = Payload::read(artifact.artifact_type, &artifact.payload);
    Answered::of(&payload, is_approved, bundle.receipt.at.parse().ok()?)
}

fn described(suggestion: &Suggestion, now: Timestamp) -> String {
    let days =
        if suggestion.days == 1 { "on one day".to_owned() } else { format!("on {} days", suggestion.days) };
    let asked = format!(
        "asked {} times {days}, always approved, last {}",
        suggestion.times,
        moment::when(suggestion.last, now)
    );
    let mut about = vec![format!("in {}", visible_code(&suggestion.repository.to_string_lossy())), asked];
    about.extend(suggestion.examples.iter().map(|example| format!("such as {}", visible_code(example))));
    if suggestion.runs_code {
        about.push("! it may run what the agent has just written, or write what it chooses".to_owned());
    }
    // Below the command.
    let column = " ".repeat(suggestion.id.len() + 2);
    let about: Vec<String> = about.iter().map(|line| format!("{column}{line}")).collect();
    format!("{}  {}\n{}\n", suggestion.id, visible_code(&suggestion.what), about.join("\n"))
}

/// The rule with why it is there, as it is written into the file.
fn with_reason(suggestion: &Suggestion) -> String {
    let Suggestion { times, days, last, rule, .. } = suggestion;
    let day: String = last.to_string().chars().take(10).collect();
    let days = if *days == 1 { "one day".to_owned() } else { format!("{days} days") };
    format!("\n# Asked {times} times on {days} until {day}, and always approved.\n{rule}")
}

fn as_json(suggestion: &Suggestion) -> Value {
    json!({
        "id": suggestion.id, "rule": suggestion.rule, "what": suggestion.what, "repository": suggestion.repository,
        "times": suggestion.times, "days": suggestion.days, "last": suggestion.last, "examples": suggestion.examples,
        "runsCode": suggestion.runs_code,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use countersign_agents::calls::call::Call;
    use countersign_client::payload::Weight;

    use super::*;

    #[test]
    fn a_rejection_counts_however_old_it_is() {
        let answer = |is_approved, at| Answered {
            call: Call::of_words(&["ls".to_owned()], Path::new("/")),
            alarm: Weight::Plain,
            is_approved,
            at: Timestamp::from_unix_micros(at),
        };
        let since = Timestamp::from_unix_micros(10);
        assert!(counts(&answer(true, 10), since) && !counts(&answer(true, 9), since));
        assert!(counts(&answer(false, 9), since));
    }
}
