//! A device that is connected while requests wait: what waits is brought to it.

use std::time::Duration;

use countersign_client::enforcer::Enforcer;
use countersign_wire::id::RequestId;
use tokio::time::timeout;

use crate::tool::{
    exit::Failure,
    gateway_error::describe_ask,
    home::{Identity, failed},
    output::say,
};

/// So many are brought at once.
const MAX_AT_ONCE: usize = 50;

/// How long the gateway may take for one of them.
const CALL_TIME: Duration = Duration::from_secs(10);

/// What became of what waits.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// How many requests a new device can answer now.
    pub count: usize,
    /// How many it can't, and why the first of them.
    left: Option<(usize, String)>,
}

/// Brings what waits on this machine to every device that counts now, one after the other. The pins are read for each: a
/// device that is revoked meanwhile gets nothing. What fails changes nothing about who is connected.
pub async fn bring(identity: &Identity, enforcer: &Enforcer) -> Brought {
    let mut brought = Brought::default();
    let waiting = match to_bring(identity, enforcer).await {
        Ok(waiting) => waiting,
        Err(failure) => return Brought { left: Some((0, failure.what)), ..brought },
    };
    for (position, request_id) in waiting.iter().enumerate() {
        let left = waiting.len() - position;
        if brought.count >= MAX_AT_ONCE {
            brought.left = Some((left, format!("{MAX_AT_ONCE} are brought at once")));
            break;
        }
        let pins = match identity.profile.pins() {
            Ok(pins) => pins,
            Err(error) => return Brought { left: Some((left, error.to_string())), ..brought },
        };
        match timeout(CALL_TIME, enforcer.bring(request_id, &pins)).await {
            Ok(Ok(new)) => brought.count += usize::from(new.is_some()),
            // What stops one stops the others too.
            Ok(Err(error)) => return Brought { left: Some((left, describe_ask(&error).what)), ..brought },
            Err(_) => {
                let reason = "the gateway does not answer".to_owned();
                return Brought { left: Some((left, reason)), ..brought };
            }
        }
    }
    brought
}

async fn to_bring(identity: &Identity, enforcer: &Enforcer) -> Result<Vec<RequestId>, Failure> {
    let pins = identity.profile.pins().map_err(failed)?;
    enforcer.to_bring(&pins).await.map_err(|error| describe_ask(&error))
}

impl Brought {
    /// Says it to whoever has connected a device. Nothing, if nothing waited.
    pub fn say(&self, device: &str) {
        for line in self.lines(device) {
            say(&line);
        }
    }

    fn lines(&self, device: &str) -> Vec<String> {
        let requests = |count: usize| match count {
            1 => "1 waiting request".to_owned(),
            count => format!("{count} waiting requests"),
        };
        let mut lines = Vec::new();
        if self.count > 0 {
            lines.push(format!("  Brought {} to {device}.", requests(self.count)));
        }
        if let Some((left, reason)) = &self.left {
            let what = match left {
                0 => "What waits was".to_owned(),
                1 => "1 waiting request was".to_owned(),
                count => format!("{} were", requests(*count)),
            };
            lines.push(format!("! {what} not brought to {device}: {}.", reason.trim_end_matches('.')));
            lines.push(
                "  Run `countersign devices update` to try again, or answer on a device that was connected before."
                    .to_owned(),
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_brought_and_what_was_not_is_said() {
        let lines = |count, left: Option<(usize, &str)>| {
            let left = left.map(|(left, reason)| (left, reason.to_owned()));
            Brought { count, left }.lines("“Ada's phone”").join("\n")
        };
        assert_eq!(lines(0, None), "");
        assert_eq!(lines(1, None), "  Brought 1 waiting request to “Ada's phone”.");
        assert_eq!(lines(3, None), "  Brought 3 waiting requests to “Ada's phone”.");
        let partly = lines(2, Some((1, "the gateway does not answer.")));
        assert_eq!(
            partly,
            "  Brought 2 waiting requests to “Ada's phone”.\n\
             ! 1 waiting request was not brought to “Ada's phone”: the gateway does not answer.\n  \
             Run `countersign devices update` to try again, or answer on a device that was connected before."
        );
        assert!(lines(0, Some((0, "x"))).starts_with("! What waits was not brought to"), "no count is known");
    }
}
