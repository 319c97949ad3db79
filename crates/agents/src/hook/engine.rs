//! The way from an event to a verdict: rules, then a grant, then a person.

use std::{ops::ControlFlow, time::Duration};

use countersign_client::{
    audience::Audience,
    enforcer::Enforcer,
    grant::GrantRules,
    payload::{About, Payload, visible},
    profile::Pins,
    receipt::Outcome,
    reply::VerifiedDecision,
    request::{Draft, Request},
    taken::Taken,
};
use countersign_wire::{decision::DecisionOutcome, id::RequestId};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    about, canary,
    desk::{Desk, Presence},
    inquiry::{Asker, Inquiry},
    news, said,
    settings::Settings,
    stopped,
    subject::Subject,
};
use crate::{
    asking,
    calls::{
        answers,
        call::{Action, Call, Question},
        event::{Event, Kind, Moment},
        message::Message,
        verdict::Verdict,
        whole::{Origin, payload_of},
    },
    examine::{
        environment::{hook::of_hook, last::LastEnvironment},
        repository,
    },
    rules::{self, Rules},
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_ask,
        home::failed,
    },
};

/// How long the person at the desk has before others are asked, where prompt and hook are side by side.
const DESK_FIRST: Duration = Duration::from_secs(20);

/// A host that asks a second time about what was just approved is answered without a person.
const SAME_CALL: Duration = Duration::from_secs(30);

/// How long a deferred request is waited for before the run ends again.
const DEFER_AFTER: Duration = Duration::from_secs(20);

/// The verdict on a message of a host. There is always one.
pub async fn verdict(settings: &Settings, message: &Message) -> Verdict {
    let event = match settings.host.read(&message.value, &settings.caller) {
        Ok(event) => event,
        Err(error) => return Verdict::failed(error.to_string()),
    };
    let desk = Desk::new(settings.home.hooks_folder());
    if let (Kind::Call { .. }, Some(verdict)) =
        (&event.kind, canary::verdict(desk.folder(), &event.name, &settings.caller))
    {
        return verdict;
    }
    let hook = Hook { settings, message, event: &event, desk };
    if let (Kind::Call { .. }, Some(reason)) = (&event.kind, hook.stopped()) {
        return Verdict::deny(reason);
    }
    match &event.kind {
        Kind::Call { call, moment, .. } => match Box::pin(hook.decide(call, *moment)).await {
            Ok(verdict) => verdict,
            Err(failure) => settings.on_failure(&event.kind, &failure),
        },
        Kind::News(news) => news::take(settings, &event, news, &hook.desk).await,
        Kind::Other => Verdict::silent(),
    }
}

/// One call of a hook.
struct Hook<'a> {
    settings: &'a Settings,
    message: &'a Message,
    event: &'a Event,
    desk: Desk,
}

/// What this machine knows of a call before it asks.
struct Known {
    /// Whether the person's rules name the tool.
    names_tool: bool,
    last: LastEnvironment,
    /// Who asks, and why.
    about: About,
}

/// An answer that was taken, and what was asked.
struct Answered {
    payload: Payload,
    taken: Taken,
    /// The pins of the moment at which it came.
    pins: Pins,
}

/// How asking ended, if it did not fail.
enum End {
    Taken(Box<Taken>),
    /// The person at the desk was faster.
    AnsweredAtDesk,
    /// An approver has stopped the agent, for this reason.
    Stopped(String),
    /// The run ends, and the request goes on.
    Deferred,
}

impl Hook<'_> {
    /// Why nothing is done in this session any more, if an approver has stopped it.
    fn stopped(&self) -> Option<String> {
        stopped::reason(&self.desk, self.event.session.as_deref()?)
    }

    async fn decide(&self, call: &Call, moment: Moment) -> Result<Verdict, Failure> {
        let rules = match Rules::load(&self.settings.home, &call.cwd, &self.settings.caller) {
            Ok(rules) => rules,
            Err(error) if error.denies => {
                return Ok(Verdict::failed(format!("{} It was not done.", error.failure())));
            }
            Err(error) => {
                let failure = Failure::new(Exit::NotSetUp, format!("the rules can't be used: {error}"));
                return Err(failure.next("mend the file, and check it with `countersign rules show`"));
            }
        };
        let ruling = rules.decide(call);
        let is_gate = self.settings.is_gate();
        match ruling.verdict {
            rules::Verdict::Deny => Ok(Verdict::deny(format!("{} ({})", ruling.reason, ruling.rule))),
            _ if moment == Moment::EveryCall && !is_gate => Ok(Verdict::silent()),
            rules::Verdict::Allow => Ok(Verdict::allow(format!("{} ({})", ruling.reason, ruling.rule))),
            rules::Verdict::Ask if self.was_approved(moment) => {
                Ok(Verdict::allow("it was approved a moment ago"))
            }
            rules::Verdict::Ask => self.ask(call, moment, &rules).await,
        }
    }

    /// A gate asks before every call, and some hosts ask again about the same call. That is answered once, and only if the
    /// host says itself that it is the same: another question about the same command may be to leave the sandbox.
    fn was_approved(&self, moment: Moment) -> bool {
        let Some(of) = self.joined().filter(|_| moment == Moment::WouldAsk) else { return false };
        self.desk.take("approved", &of.each_ref().map(String::as_str), SAME_CALL).is_some()
    }

    fn remember_approval(&self, moment: Moment) {
        if let Some(of) = self.joined().filter(|_| moment == Moment::EveryCall) {
            // Without it somebody is asked twice.
            drop(self.desk.keep("approved", &of.each_ref().map(String::as_str), ""));
        }
    }

    /// The names under which an approval is kept for the host's other question about the same call.
    fn joined(&self) -> Option<[String; 2]> {
        let join = (self.settings.host.messages.join)(&self.message.value)?;
        Some([self.event.session.clone()?, join])
    }

    async fn ask(&self, call: &Call, moment: Moment, rules: &Rules) -> Result<Verdict, Failure> {
        if !self.settings.is_gate() && !self.is_turn_of_phone().await {
            return Ok(Verdict::silent());
        }
        let identity = self.settings.identity()?;
        if let Err(failure) = rules.check_profile(identity.profile.facts()) {
            return Ok(Verdict::deny(failure.to_string()));
        }
        let (enforcer, mut pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let kind = format!("hook.{}", self.settings.host.word());
        let known = Known {
            names_tool: rules.names_tool(&call.tool),
            last: LastEnvironment::read(self.desk.folder(), &kind),
            about: about::of(self.settings.host, self.message, self.event, call, &self.desk),
        };
        let mut subject = Subject::of_host(self.message, call);
        let Answered { payload, taken, pins } = loop {
            let payload = self.payload(&subject, &known, &enforcer);
            let asker = Asker { identity: &identity, enforcer: &enforcer, pins: &pins };
            let answered = match self.answered(asker, &subject, payload, rules).await? {
                ControlFlow::Continue(answered) => answered,
                ControlFlow::Break(verdict) => return Ok(verdict),
            };
            let Some(changed) = subject.changed(&answered.taken, self.settings) else { break answered };
            let Answered { taken, pins: newest, .. } = answered;
            subject = match begin_again(&enforcer, (taken, &newest), changed, rules).await {
                Ok(changed) => changed,
                Err(verdict) => return Ok(verdict),
            };
            pins = newest;
        };
        let verdict =
            self.verdict_of(&subject, &payload, &taken, |changed| self.payload(changed, &known, &enforcer));
        let outcome = match &verdict {
            Verdict::Deny { failed: true, .. } => Outcome::Drifted,
            _ => Outcome::Applied { exit_status: None },
        };
        asking::finish(&enforcer, &pins, taken, outcome).await;
        if let Verdict::Allow { input, .. } = &verdict {
            // Of a call that was changed, the host's other question is asked: it may be about the call as it was.
            if input.is_none() {
                self.remember_approval(moment);
            }
            if let Some(whole) = payload.call().filter(|whole| !whole.environment.is_empty()) {
                // If it can't be kept, the next one is compared with an earlier one.
                drop(LastEnvironment::keep(self.desk.folder(), &kind, &whole.environment));
            }
        }
        Ok(verdict)
    }

    /// Asks once, and takes the answer; or the verdict that there is without one.
    async fn answered(
        &self,
        asker: Asker<'_>,
        subject: &Subject<'_>,
        payload: Payload,
        rules: &Rules,
    ) -> Result<ControlFlow<Verdict, Answered>, Failure> {
        let Asker { identity, enforcer, .. } = asker;
        let draft = self.draft(subject, &payload, rules.audience(&subject.call)?)?;
        let (taken, pins) = match self.permission(asker, &draft, subject.of.as_ref()).await? {
            End::Taken(taken) => asking::still_trusted(enforcer, &identity.profile, *taken).await?,
            End::AnsweredAtDesk => return Ok(ControlFlow::Break(Verdict::silent())),
            End::Stopped(reason) => return Ok(ControlFlow::Break(Verdict::deny(reason))),
            End::Deferred => {
                let reason = "it waits for its approver".to_owned();
                return Ok(ControlFlow::Break(Verdict::Defer { reason }));
            }
        };
        if let Some(reason) = self.stopped() {
            asking::finish(enforcer, &pins, taken, Outcome::Refused { reason: reason.clone() }).await;
            return Ok(ControlFlow::Break(Verdict::deny(reason)));
        }
        Ok(ControlFlow::Continue(Answered { payload, taken, pins }))
    }

    /// Whether it is time to ask a person who is not at the desk. Where the host's prompt is beside the hook, it comes first
    /// for some seconds; elsewhere a hook that waits would keep it from appearing.
    async fn is_turn_of_phone(&self) -> bool {
        if self.desk.presence() == Presence::Away {
            return true;
        }
        if !self.settings.host.messages.asks_beside_hook {
            return false;
        }
        let until = Instant::now() + DESK_FIRST;
        timeout_at(until, self.desk_answers()).await.is_err()
    }

    /// Waits until the person at the desk has answered the host's own prompt.
    async fn desk_answers(&self) {
        let Kind::Call { moment: Moment::WouldAsk, key, .. } = &self.event.kind else {
            return std::future::pending().await;
        };
        match &self.event.session {
            Some(session) => self.desk.answered(session, key.as_deref()).await,
            None => std::future::pending().await,
        }
    }

    fn draft(&self, subject: &Subject<'_>, payload: &Payload, to: Audience) -> Result<Draft, Failure> {
        let call = &subject.call;
        let text = payload.to_json().map_err(|error| {
            Failure::new(Exit::Failed, error).next("let the agent do it in smaller parts")
        })?;
        let left = self.settings.deadline.saturating_duration_since(Instant::now());
        Ok(Draft {
            artifact_type: payload.artifact_type(),
            payload: text,
            repo_name: repository::name_of(&call.cwd),
            valid_for: self.settings.defer_for.unwrap_or(left),
            session: self.event.session.clone(),
            actions: answers::actions(&call.action),
            edits: subject.edits(self.settings),
            to,
        })
    }

    /// By a grant, by a request that was deferred, or by asking. What an approver has changed is asked of that approver.
    async fn permission(
        &self,
        asker: Asker<'_>,
        draft: &Draft,
        changed: Option<&asking::Rejection>,
    ) -> Result<End, Failure> {
        let Asker { identity, enforcer, pins } = asker;
        if changed.is_none() {
            let by_grant = enforcer.by_grant(draft, pins, &GrantRules::default()).await;
            if let Some(taken) = by_grant.map_err(|error| describe_ask(&error))? {
                return Ok(End::Taken(Box::new(taken)));
            }
        }
        let inquiry = Inquiry::new(asker, draft, changed);
        let before = self.deferred(enforcer).await?;
        let mut answer = Box::pin(inquiry.ask(before, self.settings.interruption()?));
        let defer_at =
            self.settings.defer_for.map(|_| self.settings.deadline.min(Instant::now() + DEFER_AFTER));
        let deadline = defer_at.unwrap_or(self.settings.deadline);
        let mut listening = Box::pin(async {
            // Without a connection nothing is heard. The answer comes another way.
            if said::listen(identity, enforcer, pins, &self.desk).await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let end = tokio::select! {
            taken = timeout_at(deadline, &mut answer) => match taken {
                Ok(taken) => Ok(End::Taken(Box::new(taken?))),
                Err(_) if defer_at.is_some() && inquiry.request().is_some() => {
                    return self.defer(inquiry.request());
                }
                Err(_) => Err(nobody_answered()),
            },
            () = self.desk_answers() => Ok(End::AnsweredAtDesk),
            reason = said::stopped(&self.desk, self.event.session.as_deref()) => Ok(End::Stopped(reason)),
            () = &mut listening => Err(nobody_answered()),
        };
        if matches!(end, Ok(End::Stopped(_))) {
            // What has heard of it has still to say so: to the person, and at the end of the session.
            drop(timeout(said::CONFIRMATION_TIME, listening).await);
        }
        match &end {
            Ok(End::Taken(taken)) => inquiry.withdraw(Some(&taken.request_id)).await,
            _ => inquiry.take_back(answer).await,
        }
        end
    }

    /// The names under which a deferred request is kept.
    fn deferred_of(&self) -> Option<[&str; 2]> {
        let Kind::Call { call_id: Some(call_id), .. } = &self.event.kind else { return None };
        Some([self.event.session.as_deref()?, call_id])
    }

    fn defer(&self, request: Option<&Request>) -> Result<End, Failure> {
        let (of, request) = self.deferred_of().zip(request).ok_or_else(nobody_answered)?;
        self.desk
            .keep("deferred", &of, request.request_id.as_str())
            .map_err(|error| Failure::new(Exit::Failed, format!("the request can't be kept: {error}")))?;
        Ok(End::Deferred)
    }

    /// The request that an earlier run has asked about this call.
    async fn deferred(&self, enforcer: &Enforcer) -> Result<Option<Request>, Failure> {
        let (Some(of), Some(time)) = (self.deferred_of(), self.settings.defer_for) else { return Ok(None) };
        let kept = self.desk.take("deferred", &of, time);
        let Some(id) = kept.and_then(|id| id.parse::<RequestId>().ok()) else { return Ok(None) };
        // It may have been brought to a device that was connected meanwhile.
        let id = enforcer.newest(&id).await.map_err(|error| describe_ask(&error))?;
        let open = enforcer.open_requests().await.map_err(|error| describe_ask(&error))?;
        Ok(open.into_iter().find(|request| request.request_id == id))
    }

    fn verdict_of(
        &self,
        subject: &Subject<'_>,
        asked: &Payload,
        taken: &Taken,
        now: impl FnOnce(&Subject<'_>) -> Payload,
    ) -> Verdict {
        let decision = &taken.decision;
        let who = who(decision);
        let said = decision.words.reason.as_deref().map(visible);
        if decision.outcome == DecisionOutcome::Reject {
            let words = said.map(|words| format!(": “{words}”")).unwrap_or_default();
            return Verdict::deny(format!("rejected by {who}{words}"));
        }
        if self.has_changed(subject, asked, now) {
            return Verdict::failed(format!(
                "{who} approved it, but the files that it concerns have changed since. It was not done; ask again."
            ));
        }
        let said = said.map(|words| format!("{} approved it and says: “{words}”", decision.approver));
        let words: Vec<String> = subject.note().into_iter().chain(said).collect();
        match &subject.call.action {
            Action::Questions(questions) => self.answer(questions, decision, &who),
            _ => Verdict::Allow {
                reason: format!("approved by {who}"),
                words: (!words.is_empty()).then(|| words.join("\n")),
                answers: Map::new(),
                input: subject.input(self.settings),
            },
        }
    }

    /// The answers to an agent's questions. A host that takes none gets them as the reason why its own prompt is not needed.
    fn answer(&self, questions: &[Question], decision: &VerifiedDecision, who: &str) -> Verdict {
        let words = decision.words.reason.as_deref();
        match answers::chosen(questions, decision.words.action.as_deref(), words) {
            Some(answers) if self.settings.host.messages.takes_answers => {
                Verdict::Allow { reason: format!("answered by {who}"), words: None, answers, input: None }
            }
            Some(answers) => {
                let answers: Vec<&str> = answers.values().filter_map(Value::as_str).collect();
                Verdict::deny(format!("answered by {who}: “{}”", visible(&answers.join("; "))))
            }
            None => Verdict::deny(format!(
                "{who} has seen the questions and has chosen nothing{}",
                words.map(|words| format!(", but says: “{}”", visible(words))).unwrap_or_default()
            )),
        }
    }

    /// Whether what the call would do is not what was shown any more.
    fn has_changed(
        &self,
        subject: &Subject<'_>,
        asked: &Payload,
        now: impl FnOnce(&Subject<'_>) -> Payload,
    ) -> bool {
        let event = self.settings.host.read(&subject.message.value, &self.settings.caller);
        match event.map(|event| event.kind) {
            Ok(Kind::Call { call, .. }) => now(&Subject::of_host(&subject.message, &call)) != *asked,
            _ => true,
        }
    }

    /// What people review: a view of the call, and all of it.
    fn payload(&self, subject: &Subject<'_>, known: &Known, enforcer: &Enforcer) -> Payload {
        let call = &subject.call;
        let mac = |name: &str, value: &[u8]| enforcer.keys.environment_mac(name, value);
        payload_of(
            call,
            &Origin {
                host: self.settings.host.word(),
                moment: &self.event.name,
                message: &subject.message,
                aside: self.settings.host.messages.aside,
                is_named: known.names_tool,
                last: &known.last,
                environment: &of_hook(&self.settings.caller.variables, &call.cwd, &mac),
            },
        )
        .with_about(known.about.clone())
    }
}

/// Says that a call was rejected as it was, and what is to be asked for in its place; or the verdict, if that can't be.
async fn begin_again<'a>(
    enforcer: &Enforcer,
    (rejected, pins): (Taken, &Pins),
    changed: Result<Subject<'a>, String>,
    rules: &Rules,
) -> Result<Subject<'a>, Verdict> {
    let changed = changed.and_then(|changed| {
        let ruling = rules.decide(&changed.call);
        match ruling.verdict {
            rules::Verdict::Deny => Err(format!("{} ({})", ruling.reason, ruling.rule)),
            _ => Ok(changed),
        }
    });
    let who = who(&rejected.decision);
    let outcome = match &changed {
        Ok(_) => Outcome::Applied { exit_status: None },
        Err(why) => Outcome::Refused { reason: why.clone() },
    };
    asking::finish(enforcer, pins, rejected, outcome).await;
    changed.map_err(|why| {
        Verdict::deny(format!("rejected by {who}, who has changed it to what can't be asked for: {why}"))
    })
}

/// Who has decided, for the agent and its person.
fn who(decision: &VerifiedDecision) -> String {
    format!("{} (key {})", decision.approver, decision.device.short())
}

fn nobody_answered() -> Failure {
    Failure::new(Exit::Expired, "nobody answered in time").next("try again when somebody is there")
}
