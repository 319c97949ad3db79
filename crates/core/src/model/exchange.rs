//! The exchange state machine: what may happen to an exchange, and what the answer is. Pure.

use std::time::Duration;

use countersign_wire::{
    artifact::ArtifactType,
    exchange::ExchangeState,
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, MsgId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{
    notification::Notifying,
    turns::{self, Turn},
};
use crate::store::{Kind, Mailbox, PayloadId, Stored};

/// How long after its expiry an undelivered decision is kept for the enforcer.
pub const UNDELIVERED_RETENTION: Duration = Duration::from_hours(7 * 24);

/// One exchange as it is stored: everything but the bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub enforcer: EnforcerId,
    pub artifact_type: ArtifactType,
    /// A decision must name this hash.
    pub artifact_hash: Sha256Hex,
    /// The store's time of the submission.
    pub created_at: Timestamp,
    /// A decision is accepted only before this time.
    pub expires_at: Timestamp,
    /// The mailboxes of its approvers, or the shared one.
    pub mailboxes: Vec<Mailbox>,
    /// Approvers who are asked later than others. Before their turn they don't see it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The id of the `approval.request`, the same on every channel.
    pub request: MsgId,
    /// The body as approvers get it; `None` once only the tombstone is left.
    pub artifact: Option<PayloadId>,
    /// The trace as approvers get it; `None` where there was none.
    pub trace: Option<PayloadId>,
    /// Bytes of body and trace, so that an inbox page can end before it reads too many bodies.
    pub size: usize,
    /// When an approver last asked for a new submission; `None` if never.
    pub refreshed_at: Option<Timestamp>,
    /// The body of the last refresh request; `None` once the enforcer has acknowledged it.
    #[serde(default)]
    pub refresh: Option<PayloadId>,
    /// Approvers that removed it from their inbox: neither listed nor pushed to them again, also not when it expires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_by: Vec<ApproverId>,
    /// The last acknowledgement of each approver, for the enforcer to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// Who is notified of it outside of the protocol; `None` where nobody is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifying: Option<Notifying>,
    pub state: State,
}

/// An approver has acknowledged the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub approver: ApproverId,
    /// What the approver's client said: `received`, `seen`, or whatever it calls it; `None` if it said nothing.
    pub status: Option<String>,
    /// The store's time of the last acknowledgement.
    pub at: Timestamp,
    /// The store's time of the first one, whatever it said. `None` in a record from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Timestamp>,
    /// The store's time of the first one that said `seen`; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
}

impl Seen {
    /// What is known after another acknowledgement.
    pub(crate) fn next(
        known: Option<&Self>,
        approver: &ApproverId,
        status: Option<String>,
        now: Timestamp,
    ) -> Self {
        let is_seen = status.as_deref() == Some("seen");
        Self {
            approver: approver.clone(),
            status,
            at: now,
            received_at: Some(known.map_or(now, |known| known.received_at.unwrap_or(known.at))),
            seen_at: known.and_then(|known| known.seen_at).or_else(|| is_seen.then_some(now)),
        }
    }
}

/// At most so many approvers are named in [`Exchange::hidden_by`] and in [`Exchange::seen`], so that a record stays small.
pub const MAX_NAMED_APPROVERS: usize = 100;

impl Stored for Exchange {
    const KIND: Kind = Kind::Exchange;
}

/// The state of an exchange, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum State {
    Pending,
    /// The enforcer has not acknowledged the decision yet.
    Decided(Decided),
    /// The enforcer acknowledged the decision, at this time.
    Delivered {
        decided: Decided,
        at: Timestamp,
    },
    /// Nobody decided before `expires_at`.
    Expired {
        at: Timestamp,
    },
    /// The enforcer withdrew it.
    Withdrawn {
        at: Timestamp,
    },
    /// The operator ended it.
    Cancelled {
        at: Timestamp,
    },
}

/// A decision that was accepted. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision as it was submitted; `None` once only the tombstone is left.
    pub decision: Option<PayloadId>,
    /// The id of the `decision.deliver`, the same on every channel.
    pub msg_id: MsgId,
    /// SHA-256 of its canonical form: identifies a repeated submission of the same decision.
    pub digest: Sha256Hex,
    pub by: ApproverId,
    /// The store's time of the submission.
    pub at: Timestamp,
    /// The decision's own expiry, as the approver signed it.
    pub expires_at: Timestamp,
}

impl State {
    pub fn to_wire(&self) -> ExchangeState {
        match self {
            Self::Pending => ExchangeState::PendingApproval,
            Self::Decided(_) => ExchangeState::Decided,
            Self::Delivered { .. } => ExchangeState::Delivered,
            Self::Expired { .. } => ExchangeState::Expired,
            Self::Withdrawn { .. } => ExchangeState::Withdrawn,
            Self::Cancelled { .. } => ExchangeState::Cancelled,
        }
    }

    /// The decision; `None` in every state but decided and delivered.
    pub fn decided(&self) -> Option<&Decided> {
        match self {
            Self::Decided(decided) | Self::Delivered { decided, .. } => Some(decided),
            _ => None,
        }
    }
}

impl Exchange {
    /// Whether the record says pending although `expires_at` has passed. A writer commits [`Transition::Expire`]
    /// first; a reader treats it as expired.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == State::Pending && now >= self.expires_at
    }

    /// When somebody is asked next; `None` if everybody is.
    pub(crate) fn next_turn_at(&self) -> Option<Timestamp> {
        turns::next_at(&self.turns)
    }

    /// When a turn began last; `None` if none has.
    pub(crate) fn last_turn_at(&self) -> Option<Timestamp> {
        self.turns.iter().filter_map(|turn| turn.begun_at).max()
    }

    /// The exchange with everybody asked whose turn it is at `now`, and their mailboxes; `None` if it is nobody's.
    pub(crate) fn with_turns_begun(&self, now: Timestamp) -> Option<(Self, Vec<Mailbox>)> {
        let is_due = self.state_at(now) == State::Pending && self.next_turn_at().is_some_and(|at| at <= now);
        let mut next = is_due.then(|| self.clone())?;
        let begun = turns::begin(&mut next.turns, now);
        next.mailboxes.extend(begun.iter().cloned());
        Some((next, begun))
    }

    /// Whether only the tombstone is left: the id stays taken, bodies and messages are deleted.
    pub fn is_tombstone(&self) -> bool {
        self.artifact.is_none()
    }

    /// When retention starts to count; `None` while pending. An undelivered decision counts as not ended until
    /// [`UNDELIVERED_RETENTION`] after its own expiry.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Pending => None,
            State::Decided(decided) => Some(decided.expires_at.max(decided.at).plus(UNDELIVERED_RETENTION)),
            State::Delivered { at, .. }
            | State::Expired { at }
            | State::Withdrawn { at }
            | State::Cancelled { at } => Some(*at),
        }
    }

    /// The state at `now`: an overdue exchange is an expired one.
    pub fn state_at(&self, now: Timestamp) -> State {
        match self.is_overdue(now) {
            true => State::Expired { at: self.expires_at },
            false => self.state.clone(),
        }
    }
}

/// What a caller asks of an exchange. Whether the caller may see it has been checked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'c> {
    /// By an enforcer, under a request id of its choice.
    Submit { enforcer: &'c EnforcerId, artifact_hash: Sha256Hex, expires_at: Timestamp },
    /// By an approver that the request is addressed to.
    Decide {
        /// Identifies a repeated submission of the same decision.
        digest: Sha256Hex,
        /// The artifact that the decision names.
        artifact_hash: Sha256Hex,
        /// The decision's own expiry.
        expires_at: Timestamp,
        /// Whether the signature is valid, as far as the gateway can tell.
        signature_valid: bool,
    },
    /// By the enforcer that submitted it.
    Withdraw,
    /// By the operator of the tenant.
    Cancel,
    /// The enforcer acknowledges the decision.
    Acknowledge,
    /// The enforcer waits for the decision.
    Wait,
    /// An approver asks for a new submission.
    Refresh,
    /// Either side reads the state.
    Status,
    /// An approver removes it from their own inbox.
    Hide,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransitionResult {
    /// Commit this transition, then answer.
    Apply(Transition),
    /// Nothing changes; answer with success, as for an idempotent replay.
    Unchanged,
    /// No answer yet: wait for the next transition.
    NotYet,
    /// The exchange ended without what was asked for.
    EndedWithout,
    Rejected(TransitionError),
}

/// All transitions; there is no other way to change a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    Submit,
    Decide,
    /// The only one that does not start at pending.
    Deliver,
    Expire,
    Withdraw,
    Cancel,
}

/// Why a command is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// There is no such exchange, or it was withdrawn and the command is about deciding it.
    #[error("not found")]
    NotFound,
    #[error("the artifact had expired when it was submitted")]
    AlreadyPast,
    #[error("the request id belongs to another submission")]
    AlreadyExists,
    #[error("another decision was first, at {at}")]
    AlreadyDecided { at: Timestamp },
    #[error("the exchange expired at {at}")]
    Expired { at: Timestamp },
    #[error("the exchange has ended: {}", state.as_str())]
    Ended { state: ExchangeState },
    #[error("the decision names another artifact")]
    OtherArtifact,
    #[error("the decision itself has expired")]
    DecisionExpired,
    #[error("the signature is not valid")]
    BadSignature,
}

impl TransitionError {
    /// The failure that the client sees.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NotFound => Failure::NotFound,
            Self::AlreadyPast => Failure::ArtifactExpired,
            Self::AlreadyExists => Failure::AlreadyExists,
            Self::AlreadyDecided { .. } => Failure::AlreadyDecided,
            Self::Expired { .. } => Failure::ExchangeExpired,
            Self::Ended { .. } => Failure::State,
            Self::OtherArtifact => Failure::DecisionHashMismatch,
            Self::DecisionExpired => Failure::DecisionExpired,
            Self::BadSignature => Failure::SignatureInvalid,
        }
    }
}

/// What `command` comes to, given the exchange, if there is one, and the store's time.
pub fn evaluate(exchange: Option<&Exchange>, command: Command<'_>, now: Timestamp) -> TransitionResult {
    let Some(exchange) = exchange else {
        return match command {
            Command::Submit { expires_at, .. } if now < expires_at => {
                TransitionResult::Apply(Transition::Submit)
            }
            Command::Submit { .. } => TransitionResult::Rejected(TransitionError::AlreadyPast),
            _ => TransitionResult::Rejected(TransitionError::NotFound),
        };
    };
    if exchange.is_tombstone() && !matches!(command, Command::Submit { .. }) {
        return TransitionResult::Rejected(TransitionError::NotFound);
    }
    let state = exchange.state_at(now);
    match command {
        Command::Submit { enforcer, artifact_hash, .. } => {
            match *enforcer == exchange.enforcer && artifact_hash == exchange.artifact_hash {
                true => TransitionResult::Unchanged,
                false => TransitionResult::Rejected(TransitionError::AlreadyExists),
            }
        }
        Command::Decide { digest, artifact_hash, expires_at, signature_valid } => match &state {
            State::Withdrawn { .. } => TransitionResult::Rejected(TransitionError::NotFound),
            State::Decided(decided) | State::Delivered { decided, .. } => match decided.digest == digest {
                true => TransitionResult::Unchanged,
                false => TransitionResult::Rejected(TransitionError::AlreadyDecided { at: decided.at }),
            },
            // That an exchange has ended comes before anything that is wrong with a late decision.
            State::Expired { at } => TransitionResult::Rejected(TransitionError::Expired { at: *at }),
            State::Cancelled { .. } => TransitionResult::Rejected(ended(&state)),
            State::Pending if artifact_hash != exchange.artifact_hash => {
                TransitionResult::Rejected(TransitionError::OtherArtifact)
            }
            State::Pending if now >= expires_at => {
                TransitionResult::Rejected(TransitionError::DecisionExpired)
            }
            State::Pending if !signature_valid => TransitionResult::Rejected(TransitionError::BadSignature),
            State::Pending => TransitionResult::Apply(Transition::Decide),
        },
        Command::Withdraw => end_pending(&state, Transition::Withdraw),
        Command::Cancel if matches!(state, State::Cancelled { .. }) => TransitionResult::Unchanged,
        Command::Cancel => end_pending(&state, Transition::Cancel),
        Command::Acknowledge => match state {
            State::Decided(_) => TransitionResult::Apply(Transition::Deliver),
            _ => TransitionResult::Unchanged,
        },
        Command::Wait => match state {
            State::Pending => TransitionResult::NotYet,
            State::Decided(_) | State::Delivered { .. } => TransitionResult::Unchanged,
            _ => TransitionResult::EndedWithout,
        },
        Command::Refresh | Command::Status => TransitionResult::Unchanged,
        Command::Hide => match state {
            State::Pending | State::Expired { .. } => TransitionResult::Unchanged,
            _ => TransitionResult::Rejected(TransitionError::NotFound),
        },
    }
}

/// Withdrawing and cancelling end what is pending, and nothing else.
fn end_pending(state: &State, transition: Transition) -> TransitionResult {
    match state {
        State::Pending => TransitionResult::Apply(transition),
        State::Decided(decided) | State::Delivered { decided, .. } => {
            TransitionResult::Rejected(TransitionError::AlreadyDecided { at: decided.at })
        }
        State::Expired { at } => TransitionResult::Rejected(TransitionError::Expired { at: *at }),
        State::Withdrawn { .. } | State::Cancelled { .. } => TransitionResult::Rejected(ended(state)),
    }
}

fn ended(state: &State) -> TransitionError {
    TransitionError::Ended { state: state.to_wire() }
}
