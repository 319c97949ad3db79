//! The model: which response each command must get in each state.

use std::collections::{BTreeMap, BTreeSet};

use countersign_wire::{exchange::ExchangeState, timestamp::Timestamp};

use super::ops::{APPROVERS, Op, decision_text};
use crate::gateway_suite::world::minutes;

/// One exchange, with only the fields that responses depend on.
#[derive(Debug, Clone)]
pub(super) struct ModelExchange {
    pub(super) enforcer: usize,
    pub(super) about: usize,
    pub(super) to: Option<usize>,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) order: usize,
    pub(super) state: ExchangeState,
    pub(super) decision: Option<String>,
    pub(super) hidden: BTreeSet<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) exchanges: BTreeMap<usize, ModelExchange>,
    pub(super) now: u64,
}

impl ModelExchange {
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == ExchangeState::PendingApproval && now >= self.expires_at
    }

    pub(super) fn state_at(&self, now: Timestamp) -> ExchangeState {
        if self.is_overdue(now) { ExchangeState::Expired } else { self.state }
    }

    /// Every writing command first stores the expiry of an exchange past its time.
    pub(super) fn expire_if_due(&mut self, now: Timestamp) {
        if self.is_overdue(now) {
            self.state = ExchangeState::Expired;
        }
    }

    pub(super) fn seen_by(&self, by: usize) -> bool {
        self.to.is_none_or(|to| to == by)
    }
}

impl Model {
    pub(super) fn now(&self) -> Timestamp {
        minutes(self.now)
    }

    pub(super) fn column(&self, id: usize) -> &'static str {
        match self.exchanges.get(&id) {
            None => "none",
            Some(exchange) if exchange.is_overdue(self.now()) => "P!",
            Some(exchange) => match exchange.state {
                ExchangeState::PendingApproval => "P",
                ExchangeState::Decided => "D",
                ExchangeState::Delivered => "V",
                ExchangeState::Expired => "X",
                ExchangeState::Withdrawn => "W",
                ExchangeState::Cancelled => "C",
            },
        }
    }

    pub(super) fn of_enforcer(&mut self, id: usize, enforcer: usize) -> Option<&mut ModelExchange> {
        self.exchanges.get_mut(&id).filter(|exchange| exchange.enforcer == enforcer)
    }

    pub(super) fn seen(&mut self, id: usize, by: usize) -> Option<&mut ModelExchange> {
        self.exchanges.get_mut(&id).filter(|exchange| exchange.seen_by(by))
    }

    /// The HTTP status that the gateway must return; applies the command to the model.
    #[expect(clippy::too_many_lines, reason = "a table: the model must be readable as a whole")]
    pub(super) fn answer(&mut self, op: &Op) -> u16 {
        let now = self.now();
        match *op {
            Op::Submit { id, enforcer, about, minutes: life, to } => {
                let order = self.exchanges.len();
                let expires_at = minutes(self.now + life);
                match self.exchanges.get_mut(&id) {
                    Some(known) => {
                        known.expire_if_due(now);
                        if known.enforcer == enforcer && known.about == about { 202 } else { 409 }
                    }
                    None if now >= expires_at => 422,
                    None => {
                        let to = (to < APPROVERS.len()).then_some(to);
                        let (state, hidden) = (ExchangeState::PendingApproval, BTreeSet::new());
                        let created_at = now;
                        let new = ModelExchange {
                            enforcer,
                            about,
                            to,
                            created_at,
                            expires_at,
                            order,
                            state,
                            decision: None,
                            hidden,
                        };
                        self.exchanges.insert(id, new);
                        202
                    }
                }
            }
            Op::Decide { id, by, about, expired, signed, .. } => {
                let text = decision_text(op);
                let Some(known) = self.seen(id, by) else { return 404 };
                known.expire_if_due(now);
                match known.state {
                    ExchangeState::Withdrawn => 404,
                    ExchangeState::Decided | ExchangeState::Delivered if known.decision == text => 200,
                    ExchangeState::Decided
                    | ExchangeState::Delivered
                    | ExchangeState::Expired
                    | ExchangeState::Cancelled => 409,
                    _ if about != known.about || expired => 400,
                    _ if APPROVERS[by] == "carol" && !signed => 403,
                    ExchangeState::PendingApproval => {
                        known.state = ExchangeState::Decided;
                        known.decision = text;
                        200
                    }
                }
            }
            Op::Withdraw { id, enforcer } => {
                let Some(known) = self.of_enforcer(id, enforcer) else { return 404 };
                known.expire_if_due(now);
                if known.state != ExchangeState::PendingApproval {
                    return 409;
                }
                known.state = ExchangeState::Withdrawn;
                200
            }
            Op::Cancel { id } => {
                let Some(known) = self.exchanges.get_mut(&id) else { return 404 };
                known.expire_if_due(now);
                match known.state {
                    ExchangeState::PendingApproval | ExchangeState::Cancelled => {
                        known.state = ExchangeState::Cancelled;
                        200
                    }
                    _ => 409,
                }
            }
            Op::Acknowledge { id, enforcer } => {
                let Some(known) = self.of_enforcer(id, enforcer) else { return 404 };
                known.expire_if_due(now);
                if known.state == ExchangeState::Decided {
                    known.state = ExchangeState::Delivered;
                }
                200
            }
            Op::Wait { id, enforcer } => match self.of_enforcer(id, enforcer) {
                None => 404,
                Some(known) if known.decision.is_some() => 200,
                Some(_) => 204,
            },
            Op::Refresh { id, by } => {
                let Some(known) = self.seen(id, by) else { return 404 };
                known.expire_if_due(now);
                202
            }
            Op::Status { id, by } => {
                if self.seen(id, by).is_some() {
                    200
                } else {
                    404
                }
            }
            Op::Hide { id, by } => {
                let Some(known) = self.seen(id, by) else { return 404 };
                known.expire_if_due(now);
                match known.state {
                    ExchangeState::PendingApproval | ExchangeState::Expired if known.hidden.insert(by) => 200,
                    _ => 404,
                }
            }
            Op::Pass { minutes } => {
                self.now += minutes;
                200
            }
            Op::Sweep => {
                self.exchanges.values_mut().for_each(|exchange| exchange.expire_if_due(now));
                200
            }
        }
    }

    pub(super) fn list(&self, by: usize, state: ExchangeState) -> Vec<usize> {
        let now = self.now();
        let listed = |exchange: &ModelExchange| {
            exchange.state_at(now) == state && exchange.seen_by(by) && !exchange.hidden.contains(&by)
        };
        let mut listed: Vec<(&usize, &ModelExchange)> =
            self.exchanges.iter().filter(|(_, exchange)| listed(exchange)).collect();
        // By time of creation; at the same time own requests before shared ones, then by order of submission.
        listed.sort_by_key(|(_, exchange)| (exchange.created_at, exchange.to.is_none(), exchange.order));
        listed.into_iter().map(|(id, _)| *id).collect()
    }
}

/// The row of the state table that a command belongs to; `None` for commands that are not in it.
pub(super) fn row(op: &Op, model: &Model) -> Option<&'static str> {
    Some(match op {
        Op::Submit { id, enforcer, about, minutes, .. } => match model.exchanges.get(id) {
            Some(known) if known.enforcer != *enforcer || known.about != *about => "submit, other",
            _ if *minutes == 0 => "submit, already past",
            _ => "submit",
        },
        Op::Decide { id, by, about, expired, signed, .. } => match model.exchanges.get(id) {
            Some(known) if known.decision.is_some() && known.decision == decision_text(op) => "decide, again",
            Some(known) if known.about != *about || *expired => "decide, wrong",
            _ if APPROVERS[*by] == "carol" && !*signed => "decide, signature fails",
            _ => "decide",
        },
        Op::Withdraw { .. } => "withdraw",
        Op::Cancel { .. } => "cancel",
        Op::Acknowledge { .. } => "ack",
        Op::Wait { .. } => "wait",
        Op::Refresh { .. } => "refresh",
        Op::Status { .. } => "status",
        Op::Hide { .. } => "delete from inbox",
        Op::Pass { .. } | Op::Sweep => return None,
    })
}

pub(super) const ROWS: &[&str] = &[
    "submit",
    "decide",
    "decide, signature fails",
    "withdraw",
    "cancel",
    "ack",
    "wait",
    "refresh",
    "status",
    "delete from inbox",
];
pub(super) const COLUMNS: &[&str] = &["none", "P", "P!", "D", "V", "X", "W", "C"];
