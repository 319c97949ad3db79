//! CPU usage of this process, of the servers that it started, of interrupts, and of everything else.
//!
//! The kernel counts the ticks of the whole machine in `/proc/stat` and those of each process in
//! `/proc/<pid>/stat`. Busy ticks of none of the first three are foreign. They include kernel threads,
//! some of which write our data to disk, and time that the hypervisor gave to other machines; so the figure is an
//! upper bound. Interrupts are counted separately because the kernel handles loopback traffic in them.

use std::{collections::BTreeMap, fs, io, thread};

use serde::Serialize;

/// Clock ticks since the machine started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    all: u64,
    busy: u64,
    interrupts: u64,
    own: u64,
    servers: u64,
}

/// CPU usage between two readings, each field as a fraction (0 to 1) of the time of all cores.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct CpuUsage {
    pub(crate) own: f64,
    pub(crate) servers: f64,
    pub(crate) interrupts: f64,
    pub(crate) foreign: f64,
}

/// A stretch counts as disturbed if other processes used more than this fraction of the CPU.
const MAX_FOREIGN_CPU: f64 = 0.1;

impl CpuUsage {
    pub(crate) fn is_disturbed(self) -> bool {
        self.foreign > MAX_FOREIGN_CPU
    }
}

impl Ticks {
    /// Reads the current counts. `servers` are the process ids of the servers that we started; the ticks of their
    /// running children are included.
    pub(crate) fn read(servers: &[u32]) -> io::Result<Self> {
        let [all, busy, interrupts] = machine()?;
        // A program that we ran to its end, such as pgbench, is part of us.
        let this = Process::parse(&fs::read_to_string("/proc/self/stat")?)?;
        let own = this.ticks + this.ticks_of_ended_children;
        let servers = servers.iter().map(|server| with_children(*server)).sum::<io::Result<u64>>()?;
        Ok(Self { all, busy, interrupts, own, servers })
    }

    pub(crate) fn since(self, earlier: Self) -> CpuUsage {
        let all = self.all.saturating_sub(earlier.all).max(1);
        let busy = self.busy.saturating_sub(earlier.busy);
        let interrupts = self.interrupts.saturating_sub(earlier.interrupts);
        let own = self.own.saturating_sub(earlier.own);
        let servers = self.servers.saturating_sub(earlier.servers);
        // The kernel rounds ticks of processes separately from the machine's, so ours can exceed the busy ticks slightly.
        let foreign = busy.saturating_sub(own).saturating_sub(servers).saturating_sub(interrupts);
        let fraction = |ticks: u64| to_f64(ticks) / to_f64(all);
        CpuUsage {
            own: fraction(own),
            servers: fraction(servers),
            interrupts: fraction(interrupts),
            foreign: fraction(foreign),
        }
    }
}

/// CPU usage of each of several servers, from [`Meter::start`] to [`Meter::stop`].
#[derive(Debug)]
pub(crate) struct Meter {
    servers: Vec<(&'static str, u32)>,
    before: Ticks,
    before_each: Vec<u64>,
}

/// CPU usage of a stretch.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Metered {
    pub(crate) cpu: CpuUsage,
    /// Processors that each was busy on, on average, by name; `client` is this process.
    pub(crate) cores: BTreeMap<&'static str, f64>,
}

impl Meter {
    /// Of these servers, each with its process id. Several may have the same name.
    pub(crate) fn start(servers: &[(&'static str, u32)]) -> io::Result<Self> {
        let (before, before_each) = Self::read(servers)?;
        Ok(Self { servers: servers.to_vec(), before, before_each })
    }

    pub(crate) fn stop(self) -> io::Result<Metered> {
        let (after, after_each) = Self::read(&self.servers)?;
        let cpu = after.since(self.before);
        let all = to_f64(after.all.saturating_sub(self.before.all).max(1));
        let processors = to_f64(thread::available_parallelism().map_or(1, usize::from) as u64);
        let mut cores = BTreeMap::from([("client", cpu.own * processors)]);
        for (((name, _), before), after) in self.servers.iter().zip(self.before_each).zip(after_each) {
            *cores.entry(name).or_default() += to_f64(after.saturating_sub(before)) / all * processors;
        }
        Ok(Metered { cpu, cores })
    }

    fn read(servers: &[(&'static str, u32)]) -> io::Result<(Ticks, Vec<u64>)> {
        let ids: Vec<u32> = servers.iter().map(|(_, id)| *id).collect();
        let each = ids.iter().map(|id| with_children(*id)).collect::<io::Result<_>>()?;
        Ok((Ticks::read(&ids)?, each))
    }
}

/// The ticks of all cores: all, those that were not idle, and of these those of interrupts.
fn machine() -> io::Result<[u64; 3]> {
    let stat = fs::read_to_string("/proc/stat")?;
    // cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are within user and nice.
    let ticks: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|n| n.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks[..] else {
        return Err(io::Error::other("/proc/stat does not begin with eight counts"));
    };
    let busy = user + nice + system + irq + softirq + steal;
    Ok([busy + idle + iowait, busy, irq + softirq])
}

/// The ticks of a process, its running children, and its ended children. Reads again if a child ended meanwhile, which
/// would be missing from both.
fn with_children(process: u32) -> io::Result<u64> {
    let read = || Process::parse(&fs::read_to_string(format!("/proc/{process}/stat"))?);
    let mut before = read()?;
    loop {
        let running = children(process)?;
        let main = read()?;
        if main.ticks_of_ended_children == before.ticks_of_ended_children {
            let of_children = running.iter().map(|(_, child)| child.ticks).sum::<u64>();
            return Ok(main.ticks + main.ticks_of_ended_children + of_children);
        }
        before = main;
    }
}

/// The process ids of the running children.
pub(crate) fn child_ids(process: u32) -> io::Result<Vec<u32>> {
    Ok(children(process)?.into_iter().map(|(id, _)| id).collect())
}

fn children(parent: u32) -> io::Result<Vec<(u32, Process)>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // An entry without this file is no process, or the process has just ended.
        if let Some(id) = id
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
            && let Ok(process) = Process::parse(&stat)
            && process.parent == u64::from(parent)
        {
            children.push((id, process));
        }
    }
    Ok(children)
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    parent: u64,
    ticks: u64,
    ticks_of_ended_children: u64,
}

impl Process {
    /// Reads `/proc/<pid>/stat`, where a name in parentheses, which may contain any character, comes before the numbers.
    fn parse(stat: &str) -> io::Result<Self> {
        let numbers = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let number = |index: usize| {
            let text = numbers.split_whitespace().nth(index);
            text.and_then(|text| text.parse::<u64>().ok())
                .ok_or_else(|| io::Error::other("not a /proc/<pid>/stat"))
        };
        // User and system time, of the process and then of its children that it has waited for.
        Ok(Self {
            parent: number(1)?,
            ticks: number(11)? + number(12)?,
            ticks_of_ended_children: number(13)? + number(14)?,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks and commits of a run are far below 2^52")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_numbers() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 1";
        let process = Process { parent: 7, ticks: 120, ticks_of_ended_children: 7 };
        assert_eq!(Process::parse(stat).unwrap(), process);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "quotients of small powers of two are exact")]
    fn what_is_neither_ours_nor_a_servers_nor_an_interrupt_is_foreign() {
        let earlier = Ticks { all: 1_000, busy: 500, interrupts: 10, own: 10, servers: 20 };
        let later = Ticks { all: 1_400, busy: 800, interrupts: 35, own: 60, servers: 170 };
        let CpuUsage { own, servers, interrupts, foreign } = later.since(earlier);
        assert_eq!([own, servers, interrupts, foreign], [0.125, 0.375, 0.0625, 0.1875]);
    }
}
