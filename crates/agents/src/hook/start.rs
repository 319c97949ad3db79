//! How a hook was started.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::Settings;
use crate::{
    call_socket::frames,
    hook_line::{
        deadlines::{margin, supervisor_limit},
        keeper::KeeperPlace,
        mode::Mode,
        place::Place,
    },
    hosts::Host,
    tool::{caller::Caller, exit::Failure},
};

/// How a hook was started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program that asks.
    pub host: Host,
    /// What the hook is for.
    pub mode: Mode,
    /// After how long the host stops waiting.
    pub host_timeout: Duration,
    /// For how long people can answer, where the run ends and is resumed.
    pub defer_for: Option<Duration>,
    /// Where rules and profiles are.
    pub place: Place,
    /// Who decides, if it is not a worker of this process.
    pub keeper: Option<KeeperPlace>,
    /// The profile to ask with.
    pub profile: Option<String>,
}

impl Start {
    /// What the process that the host has started may take. It is ready a little later than whoever it asks.
    pub fn supervisor_time(&self) -> Duration {
        supervisor_limit(self.host_timeout)
    }

    /// For a worker of this process's own.
    pub fn settings(&self, began: Instant, attended: bool) -> Result<Settings, Failure> {
        Ok(Settings {
            host: self.host,
            mode: self.mode,
            attended,
            deadline: began + self.host_timeout.saturating_sub(margin(self.host_timeout)),
            defer_for: self.defer_for,
            home: self.place.home()?,
            profile: self.profile.clone(),
            caller: Caller::this_process(),
            hung_up: None,
            ears: None,
        })
    }

    /// As a hook tells it to a keeper.
    pub fn said(&self) -> frames::Start {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        frames::Start {
            host: self.host.word().to_owned(),
            mode: self.mode.word().to_owned(),
            host_timeout: milliseconds(self.host_timeout),
            defer_for: self.defer_for.map(milliseconds),
            profile: self.profile.clone(),
        }
    }
}
