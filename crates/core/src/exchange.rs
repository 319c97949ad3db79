//! The exchange machine: what may happen to an exchange, and what the answer is. Pure.

use std::time::Duration;

use countersign_wire::{
    artifact::ArtifactType,
    exchange::State as WireState,
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, MsgId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Mailbox, PayloadId};

/// For how long after its expiry a decision that nobody fetched is kept for the enforcer.
pub const UNDELIVERED_LIFE: Duration = Duration::from_hours(7 * 24);

/// One exchange as it is stored: everything but the bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Who asked.
    pub enforcer: EnforcerId,
    /// What kind of thing is to be reviewed.
    pub artifact_type: ArtifactType,
    /// What a decision has to name.
    pub artifact_hash: Sha256Hex,
    /// When the store took it in.
    pub created_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// Where the request lies: its approvers' mailboxes, or the shared one.
    pub mailboxes: Vec<Mailbox>,
    /// The message that carries the request.
    pub request: MsgId,
    /// The body as approvers get it; gone with the retention.
    pub artifact: Option<PayloadId>,
    /// The trace as approvers get it, where there was one.
    pub trace: Option<PayloadId>,
    /// Bytes of both, so that a page of an inbox can be cut before its bodies are read.
    pub size: usize,
    /// When an approver last asked for it anew.
    pub refreshed_at: Option<Timestamp>,
    /// The body of that.
    #[serde(default)]
    pub refresh: Option<PayloadId>,
    /// Where it stands.
    pub state: State,
}

/// Where an exchange stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum State {
    /// Waiting for a person.
    Pending,
    /// Decided; the enforcer has not acknowledged it.
    Decided(Decided),
    /// The enforcer has acknowledged the decision.
    Delivered {
        /// What was decided.
        decided: Decided,
        /// When it was acknowledged.
        at: Timestamp,
    },
    /// Nobody decided in time.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The enforcer took it back.
    Withdrawn {
        /// When.
        at: Timestamp,
    },
    /// The operator ended it.
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

/// A decision that was accepted. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision as it was submitted; gone with the retention.
    pub decision: Option<PayloadId>,
    /// The message that carries it.
    pub msg_id: MsgId,
    /// SHA-256 of its canonical form, by which the same decision is known again.
    pub digest: Sha256Hex,
    /// Who decided.
    pub by: ApproverId,
    /// When the store took it in.
    pub at: Timestamp,
    /// From when on the decision itself is void.
    pub expires_at: Timestamp,
}

impl State {
    /// The state's name on the wire.
    pub fn on_the_wire(&self) -> WireState {
        match self {
            Self::Pending => WireState::PendingApproval,
            Self::Decided(_) => WireState::Decided,
            Self::Delivered { .. } => WireState::Delivered,
            Self::Expired { .. } => WireState::Expired,
            Self::Withdrawn { .. } => WireState::Withdrawn,
            Self::Cancelled { .. } => WireState::Cancelled,
        }
    }

    /// The decision, once there is one.
    pub fn decided(&self) -> Option<&Decided> {
        match self {
            Self::Decided(decided) | Self::Delivered { decided, .. } => Some(decided),
            _ => None,
        }
    }
}

impl Exchange {
    /// Says whether it still stands as pending although its time is up. Whoever is about to write meets
    /// this first and writes [`Edge::Expire`]; whoever only reads takes it as expired.
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        self.state == State::Pending && now >= self.expires_at
    }

    /// Says whether only the memory of it is left: its id stays taken, everything else is gone.
    pub fn is_tombstone(&self) -> bool {
        self.artifact.is_none()
    }

    /// When it ended, or will have if nothing more happens. An undelivered decision counts as not ended
    /// for some time after its own expiry.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Pending => None,
            State::Decided(decided) => Some(decided.expires_at.max(decided.at).plus(UNDELIVERED_LIFE)),
            State::Delivered { at, .. }
            | State::Expired { at }
            | State::Withdrawn { at }
            | State::Cancelled { at } => Some(*at),
        }
    }

    /// The state at `now`: a lapsed exchange is an expired one.
    pub fn state_at(&self, now: Timestamp) -> State {
        match self.has_lapsed(now) {
            true => State::Expired { at: self.expires_at },
            false => self.state.clone(),
        }
    }
}

/// What somebody wants of an exchange. Whether they may see it at all has been settled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'c> {
    /// An enforcer submits under this request id.
    Submit {
        /// Who.
        enforcer: &'c EnforcerId,
        /// What.
        artifact_hash: Sha256Hex,
        /// Until when.
        expires_at: Timestamp,
    },
    /// An approver decides.
    Decide {
        /// By which the same decision is known again.
        digest: Sha256Hex,
        /// The artifact that the decision names.
        artifact_hash: Sha256Hex,
        /// From when on the decision itself is void.
        expires_at: Timestamp,
        /// Whether its signature stands, as far as the gateway can tell.
        signature_stands: bool,
    },
    /// The enforcer takes it back.
    Withdraw,
    /// The operator ends it.
    Cancel,
    /// The enforcer acknowledges the decision.
    Acknowledge,
    /// The enforcer waits for the decision.
    Wait,
    /// An approver wants it anew.
    Refresh,
    /// Somebody looks.
    Status,
    /// An approver takes it out of their inbox.
    Hide,
}

/// What is to be done about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go along this edge, then say so.
    Go(Edge),
    /// Nothing changes; say that it is done, as it may have been before.
    Done,
    /// Nothing to say yet.
    Hold,
    /// It has ended without what was asked for.
    Nothing,
    /// It can't be done.
    Refuse(Refusal),
}

/// The edges, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Nothing → pending.
    Submit,
    /// Pending → decided.
    Decide,
    /// Decided → delivered.
    Deliver,
    /// Pending → expired.
    Expire,
    /// Pending → withdrawn.
    Withdraw,
    /// Pending → cancelled.
    Cancel,
}

/// Why something can't be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such exchange, or it was withdrawn and the command is about deciding it.
    NotFound,
    /// The artifact was past when it came.
    AlreadyPast,
    /// The request id belongs to another submission.
    AlreadyExists,
    /// Another decision was first.
    AlreadyDecided {
        /// When.
        at: Timestamp,
    },
    /// Its time was up.
    Expired {
        /// When.
        at: Timestamp,
    },
    /// It has ended otherwise.
    Ended {
        /// How it stands.
        state: WireState,
    },
    /// The decision names another artifact.
    OtherArtifact,
    /// The decision is void already.
    DecisionVoid,
    /// The decision's signature does not stand.
    BadSignature,
}

impl Refusal {
    /// What the client is told.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NotFound => Failure::NotFound,
            Self::AlreadyPast => Failure::ArtifactExpired,
            Self::AlreadyExists => Failure::AlreadyExists,
            Self::AlreadyDecided { .. } => Failure::AlreadyDecided,
            Self::Expired { .. } => Failure::ExchangeExpired,
            Self::Ended { .. } => Failure::State,
            Self::OtherArtifact => Failure::DecisionHashMismatch,
            Self::DecisionVoid => Failure::DecisionExpired,
            Self::BadSignature => Failure::SignatureInvalid,
        }
    }
}

/// Decides about `command`, given the exchange, if there is one, and the store's time.
pub fn judge(exchange: Option<&Exchange>, command: Command<'_>, now: Timestamp) -> Verdict {
    let Some(exchange) = exchange else {
        return match command {
            Command::Submit { expires_at, .. } if now < expires_at => Verdict::Go(Edge::Submit),
            Command::Submit { .. } => Verdict::Refuse(Refusal::AlreadyPast),
            _ => Verdict::Refuse(Refusal::NotFound),
        };
    };
    if exchange.is_tombstone() && !matches!(command, Command::Submit { .. }) {
        return Verdict::Refuse(Refusal::NotFound);
    }
    let state = exchange.state_at(now);
    match command {
        Command::Submit { enforcer, artifact_hash, .. } => {
            match *enforcer == exchange.enforcer && artifact_hash == exchange.artifact_hash {
                true => Verdict::Done,
                false => Verdict::Refuse(Refusal::AlreadyExists),
            }
        }
        Command::Decide { digest, artifact_hash, expires_at, signature_stands } => match &state {
            State::Withdrawn { .. } => Verdict::Refuse(Refusal::NotFound),
            State::Decided(decided) | State::Delivered { decided, .. } => match decided.digest == digest {
                true => Verdict::Done,
                false => Verdict::Refuse(Refusal::AlreadyDecided { at: decided.at }),
            },
            _ if artifact_hash != exchange.artifact_hash => Verdict::Refuse(Refusal::OtherArtifact),
            _ if now >= expires_at => Verdict::Refuse(Refusal::DecisionVoid),
            _ if !signature_stands => Verdict::Refuse(Refusal::BadSignature),
            State::Pending => Verdict::Go(Edge::Decide),
            State::Expired { at } => Verdict::Refuse(Refusal::Expired { at: *at }),
            State::Cancelled { .. } => Verdict::Refuse(ended(&state)),
        },
        Command::Withdraw => end_pending(&state, Edge::Withdraw),
        Command::Cancel if matches!(state, State::Cancelled { .. }) => Verdict::Done,
        Command::Cancel => end_pending(&state, Edge::Cancel),
        Command::Acknowledge => match state {
            State::Decided(_) => Verdict::Go(Edge::Deliver),
            _ => Verdict::Done,
        },
        Command::Wait => match state {
            State::Pending => Verdict::Hold,
            State::Decided(_) | State::Delivered { .. } => Verdict::Done,
            _ => Verdict::Nothing,
        },
        Command::Refresh | Command::Status => Verdict::Done,
        Command::Hide => match state {
            State::Pending | State::Expired { .. } => Verdict::Done,
            _ => Verdict::Refuse(Refusal::NotFound),
        },
    }
}

/// Withdrawing and cancelling end what is pending, and nothing else.
fn end_pending(state: &State, edge: Edge) -> Verdict {
    match state {
        State::Pending => Verdict::Go(edge),
        State::Decided(decided) | State::Delivered { decided, .. } => {
            Verdict::Refuse(Refusal::AlreadyDecided { at: decided.at })
        }
        State::Expired { at } => Verdict::Refuse(Refusal::Expired { at: *at }),
        State::Withdrawn { .. } | State::Cancelled { .. } => Verdict::Refuse(ended(state)),
    }
}

fn ended(state: &State) -> Refusal {
    Refusal::Ended { state: state.on_the_wire() }
}
