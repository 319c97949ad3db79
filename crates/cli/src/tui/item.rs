//! A request in the list, and what became of it.

use std::sync::Arc;

use countersign_agents::tool::{moment, output::short};
use countersign_client::{approver::InboxItem, payload::visible, request::OpenedRequest};
use countersign_wire::{
    decision::DecisionOutcome,
    exchange::ExchangeState,
    id::{EnforcerId, RequestId},
    timestamp::Timestamp,
};

use crate::review;

/// Why a request can't be answered any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It is not in the inbox any more; the gateway has not said why yet.
    Gone,
    /// Somebody has answered, or this device has in an attempt whose end was not seen.
    Answered,
    /// Its time was up.
    Expired,
    /// The machine that asked took it back.
    Withdrawn,
    /// The operator of the gateway cancelled it.
    Cancelled,
    /// Under the same id there is another content now.
    Replaced,
    /// It does not pass the checks any more, such as after its sender was revoked.
    Unchecked(String),
}

impl End {
    /// What a state of an exchange means for somebody who waits; `None` while it can be answered.
    pub fn of(state: ExchangeState) -> Option<Self> {
        match state {
            ExchangeState::PendingApproval => None,
            ExchangeState::Decided | ExchangeState::Delivered => Some(Self::Answered),
            ExchangeState::Expired => Some(Self::Expired),
            ExchangeState::Withdrawn => Some(Self::Withdrawn),
            ExchangeState::Cancelled => Some(Self::Cancelled),
        }
    }

    /// What happened, in a few words.
    pub fn words(&self) -> String {
        match self {
            Self::Gone => "no longer waiting".to_owned(),
            Self::Answered => "answered elsewhere".to_owned(),
            Self::Expired => "expired".to_owned(),
            Self::Withdrawn => "taken back by the machine that asked".to_owned(),
            Self::Cancelled => "cancelled by whoever runs the gateway".to_owned(),
            Self::Replaced => "the gateway changed the content under the same id; don't trust it".to_owned(),
            Self::Unchecked(why) => format!("can't be answered: {why}"),
        }
    }
}

/// What became of a request that has expired, beyond that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Again {
    /// The gateway is being told that it is wanted again.
    Sending,
    /// The gateway has taken that, at this time as it was seen here.
    Wanted(Timestamp),
    /// That did not arrive, and why.
    Failed(String),
    /// The machine has asked for the same under this id: it says so in what it has sealed.
    Replaced(RequestId),
}

impl Again {
    /// What is said behind that it has expired.
    fn words(&self, now: Timestamp) -> String {
        match self {
            Self::Sending => "asking for it again …".to_owned(),
            Self::Wanted(at) => format!("asked for again {}", moment::when(*at, now)),
            Self::Failed(_) => "not asked for again".to_owned(),
            Self::Replaced(by) => format!("replaced by {}", short(by)),
        }
    }

    /// The same as a sentence.
    pub fn sentence(&self, now: Timestamp) -> String {
        match self {
            Self::Sending => "Asking for it again …".to_owned(),
            Self::Wanted(at) => {
                let at = moment::when(*at, now);
                format!("Asked for again {at}: it appears in the list if the machine still waits.")
            }
            Self::Failed(why) => format!("It was not asked for again: {why}"),
            Self::Replaced(by) => {
                format!("The machine has asked again: request {} is in the list.", short(by))
            }
        }
    }
}

/// What this device has answered, step by step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub outcome: DecisionOutcome,
    /// Whether it is a rejection with which another call is asked for.
    pub is_change: bool,
    /// When it was signed here.
    pub signed_at: Timestamp,
    /// Whether the gateway has taken it.
    pub accepted: Step,
    /// Whether the machine that asked has acknowledged it, as the gateway says.
    pub delivered: Step,
    /// What the machine says that it did; absent before it has.
    pub report: Option<Report>,
}

/// What has come as the report of a machine about an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The machine that asked has signed it.
    Signed {
        /// Whether it obeyed the answer.
        is_done: bool,
        /// What it did, in a few words.
        words: String,
        /// When, by the machine's clock.
        at: Option<Timestamp>,
    },
    /// It fails a check, and why.
    Unproven(String),
}

impl Report {
    /// The last step after an answer, as a line.
    fn line(&self, now: Timestamp) -> String {
        match self {
            Self::Signed { is_done, words, at } => {
                let mark = if *is_done { '✓' } else { '✗' };
                let at = at.map(|at| format!(" {}", moment::when(at, now))).unwrap_or_default();
                format!("{mark} {words}{at}")
            }
            Self::Unproven(why) => format!("✗ don't trust what came as the machine's report: {why}"),
        }
    }
}

/// A step after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It may still happen.
    Waiting,
    /// It happened; seen here at this time.
    Done(Timestamp),
    /// It did not happen, and why.
    Failed(String),
}

impl Answer {
    /// The steps as lines, each with its time, and from yesterday on with its date; a step that did not happen says so.
    pub fn timeline(&self, now: Timestamp) -> Vec<String> {
        let word = match self.outcome {
            DecisionOutcome::Approve => "approval",
            DecisionOutcome::Reject if self.is_change => "change",
            DecisionOutcome::Reject => "rejection",
        };
        let step = |name: &str, step: &Step, waiting: &str| match step {
            Step::Done(at) => format!("✓ {name} {}", moment::when(*at, now)),
            Step::Waiting => format!("· {waiting}"),
            Step::Failed(why) => format!("✗ not {name}: {why}"),
        };
        let mut lines = vec![
            format!("✓ {word} signed {}", moment::when(self.signed_at, now)),
            step("accepted by the gateway", &self.accepted, "sending it to the gateway …"),
        ];
        if matches!(self.accepted, Step::Done(_)) {
            // Whoever has signed what they did with it has got it.
            let delivered = match &self.report {
                Some(Report::Signed { .. }) => "delivered to the machine",
                Some(Report::Unproven(_)) | None => "delivered to the machine, by the gateway's word,",
            };
            lines.push(step(delivered, &self.delivered, "waiting for the machine to pick it up"));
            lines.push(match &self.report {
                Some(report) => report.line(now),
                None => "· not confirmed yet by the machine".to_owned(),
            });
        }
        lines
    }

    /// The last step in a few words, for the list.
    pub fn words(&self) -> String {
        let word = match self.outcome {
            DecisionOutcome::Approve => "approved",
            DecisionOutcome::Reject if self.is_change => "changed",
            DecisionOutcome::Reject => "rejected",
        };
        match (&self.accepted, &self.delivered, &self.report) {
            (Step::Waiting, ..) => format!("{word}, sending …"),
            (Step::Failed(_), ..) => format!("not {word}: the answer did not arrive"),
            (Step::Done(_), _, Some(Report::Signed { is_done: true, .. })) => match self.outcome {
                DecisionOutcome::Approve => format!("{word}, applied"),
                DecisionOutcome::Reject => format!("{word}, stopped"),
            },
            (Step::Done(_), _, Some(Report::Signed { is_done: false, .. })) => format!("{word}, not applied"),
            (Step::Done(_), _, Some(Report::Unproven(_))) => format!("{word}, a wrong report came"),
            (Step::Done(_), Step::Done(_), None) => format!("{word}, delivered"),
            (Step::Done(_), _, None) => format!("{word}, accepted"),
        }
    }
}

/// A request in the list.
#[derive(Debug)]
pub struct Item {
    /// The id of the exchange.
    pub id: RequestId,
    /// What was opened and checked; `None` if it can't be shown, or has ended and is not open.
    pub request: Option<Arc<OpenedRequest>>,
    pub headline: String,
    pub chips: String,
    pub who: String,
    /// The machine that asks, as its keys have proven; `None` if it can't be shown.
    pub enforcer: Option<EnforcerId>,
    /// The request whose place it takes, which expired.
    pub supersedes: Option<RequestId>,
    /// From when it can't be answered; `None` if that is not known.
    pub expires_at: Option<Timestamp>,
    /// Whether it arrived after the list was opened and was never selected.
    pub is_new: bool,
    /// Why it can't be answered any more.
    pub end: Option<End>,
    /// What this device has answered.
    pub answer: Option<Answer>,
    /// What became of it after it had expired; `None` if nobody wanted it again.
    pub again: Option<Again>,
}

impl Item {
    /// A request as it arrives.
    pub fn of(arrived: InboxItem, is_new: bool) -> Self {
        let id = arrived.request_id;
        match arrived.opened {
            Ok(request) => {
                let payload = review::payload(&request);
                Self {
                    id,
                    headline: review::title(&payload),
                    chips: review::chips(&payload),
                    who: review::who(&request, &payload),
                    enforcer: Some(request.enforcer.clone()),
                    supersedes: request.supersedes.clone(),
                    expires_at: Some(request.expires_at),
                    request: Some(Arc::new(request)),
                    is_new,
                    end: None,
                    answer: None,
                    again: None,
                }
            }
            Err(error) => Self {
                headline: format!("a request that can't be shown: {}", visible(&error.to_string())),
                chips: String::new(),
                who: format!("request {}", short(&id)),
                id,
                enforcer: None,
                supersedes: None,
                expires_at: None,
                request: None,
                is_new,
                end: None,
                answer: None,
                again: None,
            },
        }
    }

    /// Whether an answer of this device is on its way or has arrived.
    pub fn is_answered(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| !matches!(answer.accepted, Step::Failed(_)))
    }

    /// Whether it can be answered now, or why not.
    pub fn answerable(&self, now: Timestamp) -> Result<&Arc<OpenedRequest>, String> {
        if self.is_answered() {
            return Err("you have answered it already".to_owned());
        }
        if let Some(end) = &self.end {
            return Err(end.words());
        }
        match &self.request {
            None => Err("it can't be shown, so it can't be answered".to_owned()),
            Some(request) if now >= request.expires_at => Err(End::Expired.words()),
            Some(request) => Ok(request),
        }
    }

    /// Whether it can be asked for again, or why not.
    pub fn renewable(&self) -> Result<(), String> {
        match (&self.end, &self.again) {
            (Some(End::Expired), None | Some(Again::Failed(_) | Again::Wanted(_))) if !self.is_answered() => {
                Ok(())
            }
            (_, Some(Again::Sending)) => Err("that is on its way".to_owned()),
            (_, Some(Again::Replaced(by))) => Err(format!("the machine has, as request {}", short(by))),
            _ => Err("it has not expired".to_owned()),
        }
    }

    /// Whether nothing more will happen to it that a person could change.
    pub fn is_settled(&self) -> bool {
        self.end.is_some() || self.is_answered()
    }

    /// Where it stands, in a few words, with when it was answered.
    pub fn status(&self, now: Timestamp) -> String {
        let answered = |answer: &Answer| match self.is_answered() {
            true => format!("{} · {}", answer.words(), moment::when(answer.signed_at, now)),
            false => answer.words(),
        };
        match (&self.answer, &self.end, self.expires_at) {
            (Some(answer), None, _) => answered(answer),
            (Some(answer), Some(_), _) if self.is_answered() => answered(answer),
            (_, Some(end), _) => match &self.again {
                Some(again) => format!("{}, {}", end.words(), again.words(now)),
                None => end.words(),
            },
            (None, None, Some(at)) => format!("{} left", moment::left(at.since(now))),
            (None, None, None) => "can't be answered here".to_owned(),
        }
    }
}
