//! Asking, with what the person who waits sees: whom was asked, who has seen it, how long is left, how to take it back.
//! What happens when it expires is in [`again`].

pub mod again;
pub mod bring;
mod interruption;

use std::{collections::HashSet, time::Duration};

use countersign_client::{
    audience::Addressee,
    authorize::Answer,
    enforcer::{AskError, Enforcer},
    grant::GrantRules,
    http::CallError,
    payload::visible,
    profile::{Pins, Profile},
    progress::Progress,
    receipt::Outcome,
    reply::{Rejected, VerifiedDecision},
    request::{Draft, Request},
    taken::Taken,
    waiting::GrantWatch,
};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::RequestId,
    timestamp::Timestamp,
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{interval, sleep, timeout},
};

pub use self::interruption::Interruption;
use crate::tool::{
    exit::{Exit, Failure},
    gateway_error::describe_ask,
    home::{Identity, failed},
    moment,
    output::{StatusLine, say, short},
};

/// How long the gateway may take to accept a request.
const SUBMIT_TIME: Duration = Duration::from_secs(10);

/// After this time without an answer of the gateway, whoever waits is told.
const LATE: Duration = Duration::from_secs(1);

/// How often the gateway is asked whether somebody has seen a request.
const PROGRESS_TIME: Duration = Duration::from_secs(1);

/// How long that may take before the gateway counts as away.
const PROGRESS_LIMIT: Duration = Duration::from_secs(3);

/// Lines about how far a request has come: a gateway must not fill the screen.
const MAX_STEPS: usize = 20;

/// The word for a request that somebody has on a screen.
const SEEN: &str = "seen";

/// What is said of a request that nobody sees any more, and of one that may have reached the gateway.
const TAKEN_BACK: &str = "taken back; nothing was run";
const MAY_BE_SEEN: &str =
    "nothing was run. The gateway does not answer: if it has the request, people see it until it expires";

/// How long it may take to take a request back.
const TAKE_BACK_TIME: Duration = Duration::from_secs(4);

/// How long a request that is on its way may take to arrive before it is taken back.
const ARRIVAL_TIME: Duration = Duration::from_secs(1);

/// How long a receipt may take.
const RECEIPT_TIME: Duration = Duration::from_secs(2);

/// Whether somebody waits for the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// This process does; when it ends, nobody does.
    Attended,
    /// Whoever comes later picks it up.
    Detached,
}

/// A rejection that was taken, with an edit.
pub struct Rejection {
    /// The request that was rejected.
    pub request_id: RequestId,
    /// What was decided, and by whom.
    pub decision: VerifiedDecision,
}

/// Whether somebody looks at what this process says while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watching {
    Somebody,
    Nobody,
}

/// Records a request and submits it.
pub async fn submit(
    enforcer: &Enforcer,
    pins: &Pins,
    draft: &Draft,
    attendance: Attendance,
    interruption: &mut Interruption,
) -> Result<Request, Failure> {
    let asking = async {
        match attendance {
            Attendance::Attended => enforcer.ask_attended(draft, pins).await,
            Attendance::Detached => enforcer.ask_detached(draft, pins).await,
        }
    };
    let request = submitted(enforcer, asking, interruption).await?;
    let now = enforcer.clock.now();
    say(&row("asked", &asked_people(&request, pins, now), now));
    Ok(request)
}

/// Records and submits what an approver's edit has made of a request that they have rejected.
pub async fn submit_edited(
    enforcer: &Enforcer,
    pins: &Pins,
    draft: &Draft,
    rejection: &Rejection,
    interruption: &mut Interruption,
) -> Result<Request, Failure> {
    let Rejection { request_id, decision: by } = rejection;
    let asking = enforcer.ask_edited(request_id, by, draft, pins);
    let request = submitted(enforcer, asking, interruption).await?;
    let now = enforcer.clock.now();
    say(&row("changed", &format!("by {}, who is asked about it now", by.approver), now));
    Ok(request)
}

/// Shows that somebody is being asked, until the gateway has the request or does not answer.
async fn submitted(
    enforcer: &Enforcer,
    asking: impl Future<Output = Result<Request, AskError>>,
    interruption: &mut Interruption,
) -> Result<Request, Failure> {
    let mut line = StatusLine::default();
    line.show("  asking …");
    let asking = timeout(SUBMIT_TIME, asking);
    tokio::pin!(asking);
    let mut is_late = false;
    let submitted = loop {
        tokio::select! {
            submitted = &mut asking => break submitted,
            () = sleep(LATE), if !is_late => {
                is_late = true;
                line.clear();
                say(&no_connection(enforcer));
                line.show("  trying again …");
            }
            () = interruption.happens() => {
                // The gateway may have it already, and people see it before this end hears of that.
                line.show("  taking it back …");
                let arrived = timeout(ARRIVAL_TIME, &mut asking).await;
                return Err(match arrived {
                    Ok(Ok(Ok(request))) => take_back(enforcer, &request, line).await,
                    Ok(Ok(Err(_))) => Failure::new(Exit::TakenBack, TAKEN_BACK),
                    Ok(Err(_)) | Err(_) => Failure::new(Exit::TakenBack, MAY_BE_SEEN),
                });
            }
        }
    };
    line.clear();
    let Ok(submitted) = submitted else {
        let gateway = enforcer.http.gateway().as_str();
        let what = format!("the gateway at {gateway} did not answer for {} s", SUBMIT_TIME.as_secs());
        let failure = Failure::new(Exit::Unreachable, what);
        return Err(not_asked(
            failure.next("check `countersign status`, or start your own with `countersign up`"),
        ));
    };
    submitted.map_err(|error| match error {
        AskError::AskedTooOften => describe_ask(&error),
        error => not_asked(describe_ask(&error)),
    })
}

/// What is said after a second in which the gateway has not taken a request.
fn no_connection(enforcer: &Enforcer) -> String {
    let rest = SUBMIT_TIME.saturating_sub(LATE).as_secs();
    format!(
        "! Can't connect to the gateway at {}. Trying for {rest} more seconds.\n  If it is yours, start it in another terminal with `countersign up`; `countersign status` says more.",
        enforcer.http.gateway().as_str()
    )
}

fn not_asked(failure: Failure) -> Failure {
    Failure {
        what: format!("{}. Nobody was asked, and nothing was run", failure.what.trim_end_matches('.')),
        ..failure
    }
}

/// Everybody who can answer a request, with the number of their devices; those who are asked later, with when.
fn asked_people(request: &Request, pins: &Pins, now: Timestamp) -> String {
    let person = |asked: Addressee| {
        let who = match asked.devices {
            1 => asked.person,
            count => format!("{} ({count} devices)", asked.person),
        };
        match asked.at.filter(|at| *at > now) {
            Some(at) => format!("{who} from {} on", moment::clock(at)),
            None => who,
        }
    };
    request.addressees(pins).into_iter().map(person).collect::<Vec<_>>().join(", ")
}

/// One line of what has happened, with its time.
fn row(step: &str, who: &str, at: Timestamp) -> String {
    format!("  {step:<8}{who:<30}  {}", moment::clock(at))
}

/// What is noticed while an answer is waited for.
enum Noticed {
    /// Something has become of the request: a word for it, with whom, and when.
    Step(&'static str, String, Timestamp),
    /// The gateway does not answer.
    Away,
    /// The gateway answers again.
    Back,
}

/// Why a request has no answer.
enum Unanswered {
    /// Nobody answered in time. It is still in the journal.
    Expired,
    /// The same is asked under another id, for a device that was connected meanwhile.
    Replaced,
    Failed(Failure),
}

impl Unanswered {
    fn of(error: &AskError, request: &Request) -> Self {
        match error {
            AskError::Expired => Self::Expired,
            AskError::Replaced => Self::Replaced,
            error => Self::Failed(nothing_ran(describe_ask(error), request)),
        }
    }
}

/// Waits for the answer to a request, or for a grant that covers it: the answer to another request of this machine may be
/// one. It counts as used when this returns. An interruption takes the request back. Nobody watches: the gateway is not asked
/// whether somebody has seen it, and when it has expired nobody asks again. When a device is connected meanwhile, it goes on
/// with the request that the device can open, and with the pins of then.
pub async fn wait_unwatched(
    identity: &Identity,
    enforcer: &Enforcer,
    mut request: Request,
    interruption: &mut Interruption,
) -> Result<Taken, Failure> {
    loop {
        let pins = identity.profile.pins().map_err(failed)?;
        match wait_and_show(enforcer, &pins, &request, interruption, Watching::Nobody).await {
            Ok(taken) => return Ok(taken),
            Err(Unanswered::Failed(failure)) => return Err(failure),
            Err(Unanswered::Replaced) => request = follow(identity, enforcer, &request).await?,
            Err(Unanswered::Expired) => {
                // If it stays, it is listed for a day and nothing else.
                drop(enforcer.abandon(&request.request_id).await);
                return Err(nothing_ran(describe_ask(&AskError::Expired), &request));
            }
        }
    }
}

/// The request to wait for in the place of one that was brought to a new device.
async fn follow(identity: &Identity, enforcer: &Enforcer, old: &Request) -> Result<Request, Failure> {
    let pins = identity.profile.pins().map_err(failed)?;
    match enforcer.follow(&old.request_id, &pins).await {
        Ok(request) => {
            let now = enforcer.clock.now();
            say(&row("asked", &format!("{}, also on a new device", asked_people(&request, &pins, now)), now));
            Ok(request)
        }
        Err(error) => {
            if let AskError::Expired = error {
                // If it stays, it is listed for a day and nothing else.
                drop(enforcer.abandon(&old.request_id).await);
            }
            Err(nothing_ran(describe_ask(&error), old))
        }
    }
}

async fn wait_and_show(
    enforcer: &Enforcer,
    pins: &Pins,
    request: &Request,
    interruption: &mut Interruption,
    watching: Watching,
) -> Result<Taken, Unanswered> {
    let mut line = StatusLine::default();
    let mut seconds = interval(Duration::from_secs(1));
    let mut grants = GrantWatch::new(enforcer, request).map_err(|error| Unanswered::of(&error, request))?;
    let answer = enforcer.pick_up_or_keep(&request.request_id, pins);
    let (notice, mut noticed) = unbounded_channel();
    let watched = watch(enforcer, request, watching, notice);
    tokio::pin!(answer, watched);
    let answer = loop {
        tokio::select! {
            Some(noticed) = noticed.recv() => {
                line.clear();
                say(&match noticed {
                    Noticed::Step(step, who, at) => row(step, &who, at),
                    Noticed::Away => "! The gateway can't be reached. Still waiting; nothing is lost.".to_owned(),
                    Noticed::Back => "  The gateway is back.".to_owned(),
                });
            }
            () = &mut watched => {}
            answer = &mut answer => break answer.map_err(|error| Unanswered::of(&error, request))?,
            _ = seconds.tick() => {
                // If the journal can't be read, taking the answer fails too, and says so.
                if let Ok(Some(taken)) = grants.look(pins, &GrantRules::default()).await {
                    line.clear();
                    say_covered(&taken);
                    return Ok(taken);
                }
                // Whoever has connected a device has said so in the journal. Other gateways than ours don't say it.
                let newest = enforcer.newest(&request.request_id).await;
                if newest.is_ok_and(|newest| newest != request.request_id) {
                    line.clear();
                    return Err(Unanswered::Replaced);
                }
                let left = moment::left(request.expires_at.since(enforcer.clock.now()));
                line.show(&format!("  waiting … {left} left · Ctrl-C takes it back"));
            }
            () = interruption.happens() => {
                return Err(Unanswered::Failed(take_back(enforcer, request, line).await));
            }
        }
    };
    line.clear();
    match answer {
        Answer::Approved(taken) | Answer::Rejected(taken) => Ok(taken),
    }
}

/// Says that nobody needs to be asked.
pub fn say_covered(taken: &Taken) {
    say(&format!(
        "  covered by an earlier approval, use {} of it · {}",
        taken.number,
        short(&taken.request_id)
    ));
}

/// A device that was revoked while its answer was waited for must not approve. The pins that the answer was checked against
/// are those of the beginning. Returns those of now, with which whoever was connected meanwhile gets the receipt.
pub async fn still_trusted(
    enforcer: &Enforcer,
    profile: &Profile,
    taken: Taken,
) -> Result<(Taken, Pins), Failure> {
    let pins = profile.pins().map_err(failed)?;
    let is_approval = taken.decision.outcome == DecisionOutcome::Approve;
    if !is_approval || pins.is_active(taken.decision.device, enforcer.clock.now()) {
        return Ok((taken, pins));
    }
    let reason = "the device that approved it was revoked on the machine".to_owned();
    finish(enforcer, &pins, taken, Outcome::Refused { reason }).await;
    Err(describe_ask(&AskError::Rejected(Rejected::UnknownSigner)))
}

/// Notices when the gateway is away, and how far the request has come: phones were rung, somebody sees it. That is only its
/// word, so nothing depends on it; other gateways than ours never say it. It never ends.
async fn watch(enforcer: &Enforcer, request: &Request, watching: Watching, notice: UnboundedSender<Noticed>) {
    let (mut said, mut is_away) = (HashSet::new(), false);
    if watching == Watching::Nobody {
        return std::future::pending().await;
    }
    loop {
        sleep(PROGRESS_TIME).await;
        let progress = match timeout(PROGRESS_LIMIT, enforcer.progress(&request.request_id)).await {
            Ok(Err(error)) if error.is_no_endpoint() => break,
            Ok(Err(CallError::Refused { .. })) => continue,
            Ok(Ok(progress)) => Some(progress),
            Ok(Err(_)) | Err(_) => None,
        };
        if progress.is_none() != is_away {
            is_away = progress.is_none();
            drop(notice.send(if is_away { Noticed::Away } else { Noticed::Back }));
        }
        for (step, who, at) in progress.iter().flat_map(steps) {
            // One person who sees it is enough to know; each device that rings is said.
            let whose = if step == SEEN { String::new() } else { who.clone() };
            if said.len() < MAX_STEPS && said.insert((step, whose)) {
                drop(notice.send(Noticed::Step(step, who, at)));
            }
        }
    }
    std::future::pending::<()>().await;
}

/// What is known of a request, each with a word for it: on which devices people were rung, which show it, and who sees it.
fn steps(progress: &Progress) -> Vec<(&'static str, String, Timestamp)> {
    let mut steps = Vec::new();
    for approver in &progress.approvers {
        for notified in &approver.notified {
            let who = format!("{}, {}", approver.approver_id, visible(&notified.label));
            steps.extend(notified.accepted.map(|at| ("rung", who.clone(), at)));
            steps.extend(notified.displayed.map(|at| ("shown", who, at)));
        }
    }
    let seen = progress.approvers.iter().find_map(|it| Some((it.approver_id.to_string(), it.seen?)));
    steps.extend(seen.map(|(who, at)| (SEEN, who, at)));
    steps
}

fn nothing_ran(failure: Failure, request: &Request) -> Failure {
    let detail = match failure.detail.is_empty() {
        true => format!("request {}", request.request_id),
        false => format!("{}, request {}", failure.detail, request.request_id),
    };
    failure.detail(detail)
}

async fn take_back(enforcer: &Enforcer, request: &Request, mut line: StatusLine) -> Failure {
    line.show("  taking it back …");
    let withdrawn = timeout(TAKE_BACK_TIME, enforcer.withdraw(request)).await;
    line.clear();
    let what = match withdrawn {
        Ok(Ok(())) => TAKEN_BACK.to_owned(),
        Ok(Err(error)) => format!("nothing was run; people may still see the request ({error})"),
        Err(_) => {
            "nothing was run; the gateway does not answer, so people may still see the request".to_owned()
        }
    };
    nothing_ran(Failure::new(Exit::TakenBack, what), request)
}

/// Says what was decided. A rejection is a failure with its reason.
pub fn announce(decision: &VerifiedDecision, now: Timestamp) -> Result<(), Failure> {
    let who = format!("{} (key {})", decision.approver, decision.device.short());
    let reason = decision.words.reason.as_deref().map(visible);
    match decision.outcome {
        DecisionOutcome::Approve => {
            say(&format!("✓ approved by {who} {}  {}", scope_word(decision.scope), moment::clock(now)));
            if let Some(reason) = reason {
                say(&format!("  “{reason}”"));
            }
            Ok(())
        }
        DecisionOutcome::Reject => {
            let words = reason.map(|reason| format!(": “{reason}”")).unwrap_or_default();
            Err(Failure::new(Exit::Rejected, format!("rejected by {who}{words}")))
        }
    }
}

/// Signs what became of a decision and sends it to whoever decided. If the gateway can't be reached, it is sent with a later
/// command.
pub async fn finish(enforcer: &Enforcer, pins: &Pins, taken: Taken, outcome: Outcome) {
    let sent = timeout(RECEIPT_TIME, async {
        enforcer.finish(taken, outcome, pins).await?;
        enforcer.send_receipts().await
    });
    if let Ok(Err(error)) = sent.await {
        say(&format!("  The receipt for the approver can't be made: {error}"));
    }
}

/// The scope as people say it.
pub fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Timebox => "for a time",
        Scope::Session => "for this session",
    }
}

#[cfg(test)]
mod tests {
    use countersign_wire::parse;

    use super::*;

    #[test]
    fn who_waits_is_told_which_devices_rang_and_which_show_it_and_labels_can_not_paint_the_screen() {
        let text = r#"{"requestId":"r","state":"pendingApproval","approvers":[
            {"approverId":"ada","rung":"2026-11-18T12:00:00Z","received":null,"seen":null,"notified":[
                {"channel":"a","label":"Ada's phone","sentAt":"2026-11-18T12:00:00Z","acceptedAt":"2026-11-18T12:00:01Z",
                    "displayedAt":"2026-11-18T12:00:02Z"},
                {"channel":"b","label":"\u001b[2Jlaptop","sentAt":"2026-11-18T12:00:00Z","failed":"gone"}]},
            {"approverId":"bob","rung":"2026-11-18T12:00:00Z","received":null,"seen":"2026-11-18T12:00:03Z"}]}"#;
        let progress: Progress = parse::<Progress>(text.as_bytes()).unwrap().into_view();
        let steps = steps(&progress);
        let said: Vec<(&str, &str)> = steps.iter().map(|(step, who, _)| (*step, who.as_str())).collect();
        assert_eq!(said, [("rung", "ada, Ada's phone"), ("shown", "ada, Ada's phone"), ("seen", "bob")]);
        assert!(!visible(&progress.approvers[0].notified[1].label).contains('\u{1b}'));
    }
}
