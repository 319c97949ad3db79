//! Keys that were meant for the screen before are not answers to the one that is shown now.

use std::time::Duration;

/// For how long a new screen takes no keys.
const FRESH: Duration = Duration::from_millis(500);

/// For how long it takes none after a key that came too early. Longer than keyboards wait before they repeat a key that is
/// held down, so that holding one never gets through.
const AFTER_EARLY_KEY: Duration = Duration::from_secs(1);

/// When the screen takes keys. Times are since the start of the program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guard {
    until: Duration,
}

impl Guard {
    /// A new screen or question is shown.
    pub fn renew(&mut self, now: Duration) {
        self.until = self.until.max(now + FRESH);
    }

    /// Whether a key counts. One that does not makes the wait longer.
    pub fn accepts(&mut self, now: Duration) -> bool {
        let accepts = self.is_open(now);
        if !accepts {
            self.until = self.until.max(now + AFTER_EARLY_KEY);
        }
        accepts
    }

    /// Whether a key would count.
    pub fn is_open(&self, now: Duration) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_keys_do_not_count_and_held_keys_never_do() {
        let at = Duration::from_millis;
        let mut guard = Guard::default();
        guard.renew(at(1_000));
        assert!(!guard.is_open(at(1_499)) && guard.is_open(at(1_500)));
        assert!(!guard.accepts(at(1_100)), "too early");
        assert!(!guard.accepts(at(1_760)), "the first repetition, after 660 ms");
        for step in 0..100 {
            assert!(!guard.accepts(at(1_800 + step * 33)), "it is still held");
        }
        assert!(guard.accepts(at(1_800 + 99 * 33 + 1_000)));
    }
}
