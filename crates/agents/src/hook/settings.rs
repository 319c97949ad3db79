//! How a hook was started, and what a failure means then.

use std::{sync::Arc, time::Duration};

use countersign_client::profile::Role;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::ears::Ears;
use crate::{
    asking::Interruption,
    calls::{
        event::{Kind, Moment},
        verdict::Verdict,
    },
    hook_line::mode::Mode,
    hosts::Host,
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::{Home, Identity},
    },
};

/// How a hook was started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that asks.
    pub host: Host,
    /// What the hook is for.
    pub mode: Mode,
    /// Whether a person would see the host's own prompt.
    pub attended: bool,
    /// Until when there must be a verdict.
    pub deadline: Instant,
    /// For how long people can answer, where the run ends and is resumed; `None` where it waits.
    pub defer_for: Option<Duration>,
    /// Where rules and profiles are.
    pub home: Home,
    /// The profile to ask with.
    pub profile: Option<String>,
    /// The process that the host has started.
    pub caller: Caller,
    /// Closed when the caller has hung up; `None` where signals say that nobody waits.
    pub hung_up: Option<watch::Receiver<()>>,
    /// What hears for all hooks of the account; `None` where each hears for itself.
    pub ears: Option<Arc<Ears>>,
}

impl Settings {
    /// Without anybody at the desk, a hook is a gate whatever it was started as.
    pub fn is_gate(&self) -> bool {
        self.mode == Mode::Gate || !self.attended
    }

    /// What a failure means: nothing happens by itself. Where the host's own prompt follows, it goes back to that.
    pub fn on_failure(&self, kind: &Kind, failure: &Failure) -> Verdict {
        let words = failure.to_string();
        match kind {
            Kind::Call { moment: Moment::WouldAsk, .. } if !self.is_gate() => {
                Verdict::NoOpinion { cause: Some(words) }
            }
            Kind::Call { .. } => Verdict::failed(format!("{words} It was not done.")),
            Kind::News(_) | Kind::Other => Verdict::silent(),
        }
    }

    /// What it means that there is no verdict on a message.
    pub fn without_verdict(&self, message: &Value, words: &str) -> Verdict {
        match self.host.read(message, &self.caller) {
            Ok(event) => self.on_failure(&event.kind, &Failure::new(Exit::Failed, words)),
            Err(_) => Verdict::failed(words),
        }
    }

    /// What ends a wait for people.
    pub fn interruption(&self) -> Result<Interruption, Failure> {
        match &self.hung_up {
            Some(gone) => Ok(Interruption::by_caller(gone.clone())),
            None => Interruption::watch(),
        }
    }

    /// The enforcer that a hook acts as.
    pub fn identity(&self) -> Result<Identity, Failure> {
        self.home.find(Role::Enforcer, self.profile.as_deref())
    }
}
