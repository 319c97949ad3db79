//! What goes wrong in the run of a seed. Each seed leaves some kinds of faults out, so that those that hide each other's
//! effects are not always together.

use super::random::Numbers;

/// How long faults happen, in milliseconds.
const ACTIVE: u64 = 24_000;

/// How long nothing goes wrong after that: longer than a lease, a claim and two redeliveries.
const QUIET: u64 = 62_000;

/// The longest time that a store or a ring is late.
pub(crate) const MAX_LATE: u64 = 4_000;

/// Faults of the store, in so many of a thousand calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreFaults {
    pub(crate) late: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    /// The standby confirms this many milliseconds late, at times.
    pub(crate) standby_late: u64,
}

/// Faults of the doorbell, in so many of a thousand announcements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingFaults {
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) doubled: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A node does nothing for so many milliseconds, and then goes on.
    Stop { node: usize, millis: u64 },
    /// A node ends at once; another run of it starts so much later.
    Kill { node: usize, millis: u64 },
    /// The standby takes the primary's place; nobody answers for so long.
    Failover { millis: u64 },
    /// No ring arrives for so long.
    NoRings { millis: u64 },
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) exchanges: u64,
    pub(crate) store: StoreFaults,
    pub(crate) rings: RingFaults,
    /// Each with its time, in milliseconds.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// When faults end, and when the run does.
    pub(crate) healed_at: u64,
    pub(crate) end: u64,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut numbers = Numbers::of(seed, "plan");
        let mut at_times = |permille: u64, value: u64| if numbers.happens(permille) { value } else { 0 };
        let store = StoreFaults {
            late: at_times(600, 30),
            refused: at_times(500, 15),
            unknown: at_times(600, 60),
            standby_late: at_times(500, 3_000),
        };
        let rings =
            RingFaults { lost: at_times(600, 300), late: at_times(500, 200), doubled: at_times(400, 150) };
        let nodes = 2 + numbers.index(2);
        let count = numbers.between(1, 5);
        let mut faults: Vec<(u64, Fault)> =
            (0..count).map(|_| (numbers.between(500, ACTIVE - 500), fault(&mut numbers, nodes))).collect();
        faults.sort_by_key(|(at, _)| *at);
        let exchanges = numbers.between(3, 6);
        Self { nodes, exchanges, store, rings, faults, healed_at: ACTIVE, end: ACTIVE + QUIET }
    }
}

fn fault(numbers: &mut Numbers, nodes: usize) -> Fault {
    let node = numbers.index(nodes);
    match numbers.below(8) {
        0 | 1 => Fault::Stop { node, millis: numbers.between(500, 20_000) },
        2 | 3 => Fault::Kill { node, millis: numbers.between(200, 8_000) },
        4..=6 => Fault::Failover { millis: numbers.between(50, 4_000) },
        _ => Fault::NoRings { millis: numbers.between(1_000, 15_000) },
    }
}
