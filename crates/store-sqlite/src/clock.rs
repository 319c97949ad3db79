//! The store's time. The one file that reads the machine's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use countersign_wire::timestamp::Timestamp;

/// Where a store has its time from. Clones share it.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's time, for production.
    System(SystemClock),
    /// A time that stands still until it is set, for tests.
    Manual(ManualClock),
}

impl Clock {
    /// The machine's time.
    pub fn system() -> Self {
        Self::System(SystemClock { latest: Arc::new(AtomicI64::new(i64::MIN)) })
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::System(clock) => clock.now(),
            Self::Manual(clock) => Timestamp::from_unix_micros(clock.unix_micros.load(Ordering::SeqCst)),
        }
    }
}

/// The machine's time, except that it never runs backwards: what has expired stays expired when somebody
/// sets the machine's clock back.
#[derive(Debug, Clone)]
pub struct SystemClock {
    latest: Arc<AtomicI64>,
}

impl SystemClock {
    fn now(&self) -> Timestamp {
        let machine = machine_micros();
        let latest = self.latest.fetch_max(machine, Ordering::SeqCst);
        Timestamp::from_unix_micros(machine.max(latest))
    }
}

/// A time that stands still until it is set. Clones share it.
#[derive(Debug, Clone)]
pub struct ManualClock {
    unix_micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { unix_micros: Arc::new(AtomicI64::new(now.unix_micros())) }
    }

    /// Moves it, in either direction.
    pub fn set(&self, now: Timestamp) {
        self.unix_micros.store(now.unix_micros(), Ordering::SeqCst);
    }
}

#[expect(clippy::disallowed_methods, reason = "the store's clock is the clock, and this is it")]
fn machine_micros() -> i64 {
    // A machine that believes to be before 1970 is taken to be in 1970.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_time_never_runs_backwards() {
        let clock = Clock::system();
        let before = clock.now();
        let Clock::System(system) = &clock else { unreachable!() };
        let later = before.plus(std::time::Duration::from_hours(1));
        system.latest.store(later.unix_micros(), Ordering::SeqCst);
        assert_eq!(clock.now(), later, "an hour ahead of the machine, as after its clock was set back");
    }
}
