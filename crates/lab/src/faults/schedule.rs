//! Which fault happens when. The same seed gives the same schedule.

use std::{fmt, time::Duration};

use super::rig::{Link, NODES};

/// From the begin of one fault to the begin of the next.
const GAP_MS: (u64, u64) = (2_000, 5_000);

/// Before the first fault: the load has begun.
const FIRST_AFTER: Duration = Duration::from_secs(2);

/// An hour, as a clock may be wrong after a battery was replaced, or by a timezone.
const CLOCK_STEP_SECONDS: i64 = 3_600;

/// One fault of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Since the load began.
    pub(crate) at: Duration,
    /// Until it is healed. A failover takes as long as it takes.
    pub(crate) length: Duration,
    pub(crate) fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillNode(usize),
    StopNode(usize),
    KillDatabase,
    Failover,
    KillNats,
    StopNats,
    Cut(usize, Link),
    Slow(usize, Link, Duration),
    HalfOpen(usize, Link),
    MoveClock(usize, i64),
    FillDisk,
}

/// What the schedule may contain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) length: Duration,
    pub(crate) failovers: u64,
    /// A failover is given this long before another fault of the database begins.
    pub(crate) failover_length: Duration,
    pub(crate) with_clock: bool,
    pub(crate) with_disk: bool,
}

/// Whether another server may be the primary after a fault of this kind. Patroni promotes a standby when the primary is
/// killed, too.
pub(crate) fn may_change_primary(kind: &str) -> bool {
    [Fault::Failover, Fault::KillDatabase].iter().any(|fault| fault.kind() == kind)
}

impl Fault {
    /// Its kind, for counting.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::KillNode(_) => "kill node",
            Self::StopNode(_) => "stop node",
            Self::KillDatabase => "kill database",
            Self::Failover => "failover",
            Self::KillNats => "kill NATS",
            Self::StopNats => "stop NATS",
            Self::Cut(_, Link::Clients) => "cut clients-node",
            Self::Cut(_, Link::Database) => "cut node-database",
            Self::Cut(_, Link::Nats) => "cut node-NATS",
            Self::Slow(_, Link::Clients, _) => "slow clients-node",
            Self::Slow(_, Link::Database, _) => "slow node-database",
            Self::Slow(_, Link::Nats, _) => "slow node-NATS",
            Self::HalfOpen(_, Link::Clients) => "half-open clients-node",
            Self::HalfOpen(_, Link::Database) => "half-open node-database",
            Self::HalfOpen(_, Link::Nats) => "half-open node-NATS",
            Self::MoveClock(..) => "move clock",
            Self::FillDisk => "disk full",
        }
    }

    /// What it is done to.
    pub(crate) fn target(self) -> String {
        match self.node() {
            Some(node) => format!("node {node}"),
            None if matches!(self, Self::KillNats | Self::StopNats) => "NATS".to_owned(),
            None => "database".to_owned(),
        }
    }

    /// The only node that it is done to, if there is one.
    pub(crate) fn node(self) -> Option<usize> {
        match self {
            Self::KillNode(node)
            | Self::StopNode(node)
            | Self::Cut(node, _)
            | Self::Slow(node, ..)
            | Self::HalfOpen(node, _)
            | Self::MoveClock(node, _) => Some(node),
            Self::KillDatabase | Self::Failover | Self::KillNats | Self::StopNats | Self::FillDisk => None,
        }
    }

    /// Two faults with the same resource never overlap.
    pub(crate) fn resource(self) -> Resource {
        match self {
            Self::KillNode(node) | Self::StopNode(node) => Resource::Process(node),
            Self::KillDatabase | Self::Failover | Self::FillDisk => Resource::Database,
            Self::KillNats | Self::StopNats => Resource::Nats,
            Self::Cut(node, link) | Self::Slow(node, link, _) | Self::HalfOpen(node, link) => {
                Resource::Link(node, link)
            }
            Self::MoveClock(node, _) => Resource::Clock(node),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind(), self.target())?;
        match self {
            Self::Slow(_, _, delay) => write!(f, ", by {} ms", delay.as_millis()),
            Self::MoveClock(_, seconds) => write!(f, ", by {seconds:+} s"),
            _ => Ok(()),
        }
    }
}

/// What only one fault at a time is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Process(usize),
    Clock(usize),
    Link(usize, Link),
    Database,
    Nats,
}

/// The faults in order of their begin.
pub(crate) fn make(plan: &Plan) -> Vec<Planned> {
    let mut random = Random(plan.seed);
    let mut planned: Vec<Planned> = Vec::new();
    let mut failovers_left = plan.failovers;
    let mut at = FIRST_AFTER;
    while at < plan.length {
        // Failovers are spread evenly, beginning after a part of the first interval.
        let due = plan.length * u32::try_from(plan.failovers - failovers_left).unwrap_or(u32::MAX)
            / u32::try_from(plan.failovers.max(1)).unwrap_or(u32::MAX)
            + plan.length / 8 / u32::try_from(plan.failovers.max(1)).unwrap_or(u32::MAX);
        let is_free = |fault: Fault| {
            planned.iter().all(|other| {
                let ends = other.at + other.length;
                other.fault.resource() != fault.resource() || ends + Duration::from_millis(500) < at
            })
        };
        let next = if failovers_left > 0 && at >= due && is_free(Fault::Failover) {
            failovers_left -= 1;
            Some((Fault::Failover, plan.failover_length))
        } else {
            let drawn: Vec<_> = std::iter::repeat_with(|| draw(&mut random)).take(20).collect();
            let possible = |fault: Fault| match fault {
                Fault::MoveClock(..) => plan.with_clock,
                Fault::FillDisk => plan.with_disk,
                _ => true,
            };
            drawn.into_iter().find(|(fault, _)| possible(*fault) && is_free(*fault))
        };
        if let Some((fault, length)) = next {
            planned.push(Planned { at, length, fault });
        }
        at += Duration::from_millis(random.between(GAP_MS));
    }
    planned
}

fn draw(random: &mut Random) -> (Fault, Duration) {
    let mut node = || random.index(NODES);
    let (node, link) = (node(), [Link::Clients, Link::Database, Link::Nats][node()]);
    // As often as their numbers here.
    let (fault, milliseconds) = match random.index(20) {
        0..4 => (Fault::KillNode(node), (200, 2_000)),
        4..7 => (Fault::StopNode(node), (1_000, 12_000)),
        7..9 => (Fault::KillDatabase, (200, 1_500)),
        9 => (Fault::KillNats, (500, 4_000)),
        10 => (Fault::StopNats, (1_000, 6_000)),
        11..13 => (Fault::Cut(node, link), (500, 6_000)),
        13..15 => (Fault::Slow(node, link, Duration::from_millis(random.between((20, 300)))), (1_000, 6_000)),
        15..17 => (Fault::HalfOpen(node, link), (1_000, 8_000)),
        17..19 => {
            let seconds = if random.index(2) == 0 { CLOCK_STEP_SECONDS } else { -CLOCK_STEP_SECONDS };
            (Fault::MoveClock(node, seconds), (3_000, 8_000))
        }
        _ => (Fault::FillDisk, (1_000, 3_000)),
    };
    (fault, Duration::from_millis(random.between(milliseconds)))
}

/// `SplitMix64`, which is the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, (least, largest): (u64, u64)) -> u64 {
        least + self.next() % (largest - least + 1)
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is less than `count`")]
    fn index(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PLAN: Plan = Plan {
        seed: 7,
        length: Duration::from_hours(1),
        failovers: 40,
        failover_length: Duration::from_secs(8),
        with_clock: true,
        with_disk: true,
    };

    #[test]
    fn the_same_seed_gives_the_same_schedule_and_another_gives_another() {
        assert_eq!(make(&PLAN), make(&PLAN));
        assert_ne!(make(&PLAN), make(&Plan { seed: 8, ..PLAN }));
    }

    #[test]
    fn an_hour_has_every_kind_of_fault_and_all_failovers() {
        let planned = make(&PLAN);
        let kinds: BTreeSet<&str> = planned.iter().map(|planned| planned.fault.kind()).collect();
        assert_eq!(kinds.len(), 17, "{kinds:?}");
        let failovers = planned.iter().filter(|planned| planned.fault == Fault::Failover);
        assert_eq!(failovers.count(), 40);
        assert!(planned.len() > 800, "{}", planned.len());
    }

    #[test]
    fn a_short_run_has_its_failover() {
        for seed in 0..100 {
            let planned = make(&Plan { seed, length: Duration::from_secs(20), failovers: 1, ..PLAN });
            let failover = planned.iter().find(|planned| planned.fault == Fault::Failover);
            assert!(
                failover.is_some_and(|failover| failover.at < Duration::from_secs(10)),
                "{seed}: {planned:?}"
            );
        }
    }

    #[test]
    fn faults_of_one_resource_do_not_overlap() {
        let planned = make(&PLAN);
        for (index, one) in planned.iter().enumerate() {
            for other in &planned[index + 1..] {
                let apart = one.fault.resource() != other.fault.resource() || one.at + one.length < other.at;
                assert!(apart, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_not_possible_here_is_left_out() {
        let planned = make(&Plan { with_clock: false, with_disk: false, ..PLAN });
        let impossible = |planned: &Planned| matches!(planned.fault, Fault::MoveClock(..) | Fault::FillDisk);
        assert!(!planned.iter().any(impossible));
        assert!(planned.len() > 800, "{}", planned.len());
    }
}
