//! What a history says of one exchange.

use std::collections::BTreeMap;

use super::super::history::{Act, Call, ExchangeState, Hash, History, Operation, Outcome, Push};

/// All exchanges by tenant and id: two tenants may use one id.
pub(super) struct Exchanges<'a>(BTreeMap<(&'a str, &'a str), Exchange<'a>>);

#[derive(Default)]
pub(super) struct Exchange<'a> {
    pub(super) tenant: &'a str,
    pub(super) request: &'a str,
    /// Submissions of it, the first one first.
    pub(super) submits: Vec<&'a Operation>,
    pub(super) decides: Vec<&'a Operation>,
    /// Everything else that is about it.
    pub(super) others: Vec<&'a Operation>,
    pub(super) pushes: Vec<(u64, &'a Push)>,
    pub(super) acts: Vec<(u64, &'a Act)>,
    pub(super) observations: Vec<Observation<'a>>,
}

/// Somebody saw the exchange, at some moment between two times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation<'a> {
    /// Not before; 0 if it is not known how old it was.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) seen: Seen,
    /// The text of the decision.
    pub(super) decision: Option<&'a Hash>,
    /// The operation, or the one that opened the connection.
    pub(super) operation: u64,
    pub(super) client: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The gateway does not know it.
    Absent,
    /// It was there, in whatever state.
    Present,
    /// It had a decision, delivered or not.
    HasDecision,
    State(ExchangeState),
}

/// The ways in which an exchange ends, of which no two are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Decision,
    Expired,
    Withdrawn,
    Cancelled,
}

impl Seen {
    pub(super) fn end(self) -> Option<End> {
        match self {
            Self::Absent | Self::Present | Self::State(ExchangeState::PendingApproval) => None,
            Self::HasDecision | Self::State(ExchangeState::Decided | ExchangeState::Delivered) => {
                Some(End::Decision)
            }
            Self::State(ExchangeState::Expired) => Some(End::Expired),
            Self::State(ExchangeState::Withdrawn) => Some(End::Withdrawn),
            Self::State(ExchangeState::Cancelled) => Some(End::Cancelled),
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Absent => "unknown to the gateway".to_owned(),
            Self::Present => "there".to_owned(),
            Self::HasDecision => "decided".to_owned(),
            Self::State(state) => state.to_string(),
        }
    }
}

impl<'a> Exchanges<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut all = Self(BTreeMap::new());
        for operation in &history.operations {
            if matches!(operation.call, Call::Probe { .. }) {
                continue;
            }
            for item in &operation.answer.messages {
                let seen = Seen::State(ExchangeState::PendingApproval);
                let observation = Observation { seen, ..observed(operation) };
                all.entry(&operation.by.tenant, &item.request).observations.push(observation);
            }
            let Some(request) = operation.request() else { continue };
            let exchange = all.entry(&operation.by.tenant, request);
            match operation.call {
                Call::Submit { .. } => exchange.submits.push(operation),
                Call::Decide { .. } => exchange.decides.push(operation),
                _ => exchange.others.push(operation),
            }
        }
        for (at, push) in &history.pushes {
            all.entry(&push.by.tenant, &push.message.request).pushes.push((*at, push));
        }
        for (at, act) in &history.acts {
            all.entry(&act.tenant, &act.request).acts.push((*at, act));
        }
        for exchange in all.0.values_mut() {
            exchange.observe();
        }
        all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exchange<'a>> {
        self.0.values()
    }

    pub(super) fn get(&self, tenant: &'a str, request: &'a str) -> Option<&Exchange<'a>> {
        self.0.get(&(tenant, request))
    }

    fn entry(&mut self, tenant: &'a str, request: &'a str) -> &mut Exchange<'a> {
        let new = || Exchange { tenant, request, ..Exchange::default() };
        self.0.entry((tenant, request)).or_insert_with(new)
    }
}

impl<'a> Exchange<'a> {
    /// Whether the gateway has said that it has the exchange.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.submits.iter().any(|submit| submit.is_ok())
    }

    /// The earliest time at which it may have been stored, and the latest.
    pub(super) fn submitted(&self) -> (u64, u64) {
        between(&self.submits)
    }

    /// The same of the decision with this text.
    pub(super) fn decided(&self, text: &Hash) -> (u64, u64) {
        let sent: Vec<&Operation> =
            self.decides.iter().copied().filter(|decide| sends(decide, text)).collect();
        between(&sent)
    }

    /// When it expires, as far as the client knows: `expiresAt` was computed when it was first submitted.
    pub(super) fn expires(&self) -> Option<u64> {
        let first = self.submits.first()?;
        match first.call {
            Call::Submit { lifetime_ms: lifetime @ 1.., request: Some(_), .. } => {
                Some(first.invoked + lifetime * 1_000)
            }
            _ => None,
        }
    }

    fn observe(&mut self) {
        let operations = self.decides.iter().chain(&self.others);
        let mut observations: Vec<Observation<'a>> =
            operations.filter_map(|operation| observation(operation)).collect();
        for (at, push) in &self.pushes {
            let (seen, decision) = match push.message.kind.as_str() {
                "decision.deliver" => (Seen::HasDecision, push.message.body.as_ref()),
                "approval.request" => (Seen::Present, None),
                _ => continue,
            };
            let (operation, client) = (push.connection, push.by.client.as_str());
            observations.push(Observation { from: 0, to: *at, seen, decision, operation, client });
        }
        self.observations.append(&mut observations);
        self.observations.sort_by_key(|observation| observation.to);
    }
}

/// Whether a decision with this text may be the one that this operation has sent.
pub(super) fn sends(decide: &Operation, text: &Hash) -> bool {
    match &decide.call {
        Call::Decide { decision: Some(sent), .. } => sent == text,
        Call::Decide { decision: None, .. } => true,
        _ => false,
    }
}

/// The earliest time at which one of these may have happened, and the latest.
fn between(operations: &[&Operation]) -> (u64, u64) {
    let possible = operations.iter().filter(|operation| operation.may_have_happened());
    let certain = operations.iter().filter(|operation| operation.is_ok());
    let earliest = possible.map(|operation| operation.invoked).min().unwrap_or(u64::MAX);
    (earliest, certain.map(|operation| operation.ended).min().unwrap_or(u64::MAX))
}

fn observed(operation: &Operation) -> Observation<'_> {
    Observation {
        from: operation.invoked,
        to: operation.ended,
        seen: Seen::Present,
        decision: operation.answer.decision.as_ref(),
        operation: operation.number,
        client: &operation.by.client,
    }
}

/// What the answer of an operation says of its exchange.
fn observation(operation: &Operation) -> Option<Observation<'_>> {
    let answer = &operation.answer;
    let mut decision = answer.decision.as_ref();
    let seen = match (&operation.call, operation.outcome) {
        (Call::Decide { decision: sent, .. }, Outcome::Ok) => {
            decision = sent.as_ref();
            Seen::HasDecision
        }
        (Call::Withdraw { .. }, Outcome::Ok) => Seen::State(ExchangeState::Withdrawn),
        (Call::Status { .. } | Call::Wait { .. } | Call::FinalRead { .. }, Outcome::Ok) => {
            match (answer.state, decision) {
                (Some(state), _) => Seen::State(state),
                (None, Some(_)) => Seen::HasDecision,
                (None, None) if matches!(operation.call, Call::Wait { .. }) => Seen::HasDecision,
                (None, None) => return None,
            }
        }
        (Call::Decide { .. } | Call::Withdraw { .. }, Outcome::Fail) if answer.status == 409 => {
            match answer.code.as_str() {
                "AlreadyDecidedConflict" => Seen::HasDecision,
                "PROTO_ERR_EXPIRED" => Seen::State(ExchangeState::Expired),
                _ => return None,
            }
        }
        (
            Call::Status { .. } | Call::Wait { .. } | Call::FinalRead { .. } | Call::Withdraw { .. },
            Outcome::Fail,
        ) if answer.status == 404 => Seen::Absent,
        // Also a decision that is answered with 404: the exchange may be withdrawn.
        _ => return None,
    };
    Some(Observation { seen, decision, ..observed(operation) })
}
