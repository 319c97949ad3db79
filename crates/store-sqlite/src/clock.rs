//! The store's clock. The only file that reads the machine's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use countersign_wire::timestamp::Timestamp;

/// The source of the store's time. Clones share it.
#[derive(Debug, Clone)]
pub enum Clock {
    /// For production: monotonic.
    System(SystemClock),
    /// For tests: advances only when it is set.
    Manual(ManualClock),
}

impl Clock {
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

/// The machine's time, but monotonic: what has expired stays expired when the machine's clock is set back.
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

/// Does not advance by itself. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    unix_micros: Arc<AtomicI64>,
}

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        Self { unix_micros: Arc::new(AtomicI64::new(now.unix_micros())) }
    }

    /// May also go back.
    pub fn set(&self, now: Timestamp) {
        self.unix_micros.store(now.unix_micros(), Ordering::SeqCst);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the store's clock is the one place that may read the machine's"
)]
fn machine_micros() -> i64 {
    // A time before 1970 counts as 1970.
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
