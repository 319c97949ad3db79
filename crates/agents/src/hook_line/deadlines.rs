//! When each process between a host and a verdict must be ready, so that a no still arrives in time.

use std::time::Duration;

/// When whatever is around the supervisor must end it, so that there is still time to say no.
pub fn outer_limit(host_timeout: Duration) -> Duration {
    host_timeout.saturating_sub(margin(host_timeout) / 4)
}

/// When the process that the host has started must be ready.
pub fn supervisor_limit(host_timeout: Duration) -> Duration {
    host_timeout.saturating_sub(margin(host_timeout) / 2)
}

/// How much earlier than the host the worker must be ready. The supervisor takes half of it, whatever is around it a quarter.
pub fn margin(host_timeout: Duration) -> Duration {
    (host_timeout / 10).clamp(Duration::from_secs(1), Duration::from_secs(10)).min(host_timeout / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_deadline_is_before_that_of_the_host() {
        for (host, own) in [(600, 590), (60, 54), (10, 9), (3, 2)] {
            let host = Duration::from_secs(host);
            assert_eq!(host.saturating_sub(margin(host)), Duration::from_secs(own));
        }
        let tiny = Duration::from_millis(500);
        assert!(margin(tiny) <= tiny / 2);
    }
}
