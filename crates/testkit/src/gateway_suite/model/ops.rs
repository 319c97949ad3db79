//! The commands, and who issues them.

use countersign_wire::{decision::Decision, id::RequestId, keys::SigningKey, parse};
use proptest::prelude::*;

use crate::gateway_suite::world::decision;

/// How many request ids there are: few, so that commands often hit the same exchange.
pub(super) const IDS: usize = 8;

#[derive(Debug, Clone)]
pub(super) enum Op {
    Submit { id: usize, enforcer: usize, about: usize, minutes: u64, to: usize },
    Decide { id: usize, by: usize, about: usize, nonce: usize, expired: bool, signed: bool },
    Withdraw { id: usize, enforcer: usize },
    Cancel { id: usize },
    Acknowledge { id: usize, enforcer: usize },
    Wait { id: usize, enforcer: usize },
    Refresh { id: usize, by: usize },
    Status { id: usize, by: usize },
    Hide { id: usize, by: usize },
    Pass { minutes: u64 },
    Sweep,
}

pub(super) const ENFORCERS: [&str; 2] = ["robot", "stranger"];
/// The last of them has registered a key, so that the gateway checks their signatures.
pub(super) const APPROVERS: [&str; 3] = ["ada", "bob", "carol"];

pub(super) fn op() -> impl Strategy<Value = Op> {
    let id = || 0..IDS;
    // Mostly the owner and the right artifact, so that most commands succeed.
    let mostly_first = || prop_oneof![5 => Just(0_usize), 1 => Just(1_usize)];
    prop_oneof![
        6 => (id(), mostly_first(), mostly_first(), 0_u64..8, 0_usize..4).prop_map(
            |(id, enforcer, about, minutes, to)| Op::Submit { id, enforcer, about, minutes, to }),
        6 => (id(), 0_usize..3, mostly_first(), 0_usize..2, prop::bool::weighted(0.1), any::<bool>()).prop_map(
            |(id, by, about, nonce, expired, signed)| Op::Decide { id, by, about, nonce, expired, signed }),
        1 => (id(), mostly_first()).prop_map(|(id, enforcer)| Op::Withdraw { id, enforcer }),
        1 => id().prop_map(|id| Op::Cancel { id }),
        2 => (id(), mostly_first()).prop_map(|(id, enforcer)| Op::Acknowledge { id, enforcer }),
        2 => (id(), mostly_first()).prop_map(|(id, enforcer)| Op::Wait { id, enforcer }),
        3 => (id(), 0_usize..3).prop_map(|(id, by)| Op::Refresh { id, by }),
        2 => (id(), 0_usize..3).prop_map(|(id, by)| Op::Status { id, by }),
        2 => (id(), 0_usize..3).prop_map(|(id, by)| Op::Hide { id, by }),
        3 => (0_u64..4).prop_map(|minutes| Op::Pass { minutes }),
        1 => Just(Op::Sweep),
    ]
}

/// The body of a decision, determined by the fields of [`Op::Decide`]; `None` for other commands.
pub(super) fn decision_text(op: &Op) -> Option<String> {
    match op {
        Op::Decide { id, about, nonce, expired, signed, .. } => {
            let id: RequestId = format!("r{id}").parse().unwrap();
            let key = SigningKey::from_seed(&[3; 32]);
            let text = decision(&id, &format!("about {about}"), &format!("n{nonce}"), None);
            let text = if *expired { text.replace("2030-01-01", "2020-01-01") } else { text };
            let unsigned = parse::<Decision<'_>>(text.as_bytes());
            match signed {
                true => {
                    Some(serde_json::to_string(&unsigned.unwrap().into_view().sign(&key).unwrap()).unwrap())
                }
                false => Some(text),
            }
        }
        _ => None,
    }
}

impl Op {
    /// The exchange that the command addresses; 0 for commands without one.
    pub(super) fn id(&self) -> usize {
        match self {
            Self::Submit { id, .. }
            | Self::Decide { id, .. }
            | Self::Withdraw { id, .. }
            | Self::Cancel { id }
            | Self::Acknowledge { id, .. }
            | Self::Wait { id, .. }
            | Self::Refresh { id, .. }
            | Self::Status { id, .. }
            | Self::Hide { id, .. } => *id,
            Self::Pass { .. } | Self::Sweep => 0,
        }
    }
}
