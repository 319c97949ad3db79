//! The scheduler: everything that happens between tasks is an event with a time, and events of one instant have an order
//! that depends on the seed alone.
//!
//! The clock is tokio's, paused: it moves on when no task can run. An event never makes another one for the same
//! instant, so all events of an instant are known before its first one runs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use super::random::{Numbers, hash};

/// How often something happened, by its name.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

type Run = Box<dyn FnOnce() + Send>;

struct Event {
    due: u64,
    order: u64,
    number: u64,
    run: Run,
}

impl Event {
    fn place(&self) -> (u64, u64, u64) {
        (self.due, self.order, self.number)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

#[derive(Default)]
struct State {
    events: BinaryHeap<Reverse<Event>>,
    /// How often each label was used: a label and its count name one call.
    used: HashMap<u64, u64>,
    count: u64,
    steps: Vec<String>,
    violations: Vec<String>,
    counts: Counts,
}

/// The scheduler of one run.
pub(crate) struct World {
    pub(crate) seed: u64,
    start: Instant,
    state: Mutex<State>,
    earlier: Notify,
    keeps_steps: bool,
}

impl World {
    /// Within the runtime of the run.
    pub(crate) fn new(seed: u64, keeps_steps: bool) -> Arc<Self> {
        let (state, earlier) = (Mutex::default(), Notify::new());
        Arc::new(Self { seed, start: Instant::now(), state, earlier, keeps_steps })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Milliseconds since the start of the run.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The generator of one call: calls with the same label at the same place in the run get the same numbers, whichever
    /// task makes them first.
    pub(crate) fn numbers(&self, label: impl Hash) -> Numbers {
        let label = hash(label);
        let mut state = self.state();
        let count = state.used.entry(label).or_default();
        *count += 1;
        Numbers::of(self.seed, (label, *count))
    }

    /// Runs `run` at this time, and not in this instant.
    pub(crate) fn at(&self, due: u64, order: u64, run: impl FnOnce() + Send + 'static) {
        let due = due.max(self.now() + 1);
        let mut state = self.state();
        state.count += 1;
        let number = state.count;
        let is_earliest = state.events.peek().is_none_or(|Reverse(first)| due < first.due);
        state.events.push(Reverse(Event { due, order, number, run: Box::new(run) }));
        drop(state);
        if is_earliest {
            self.earlier.notify_one();
        }
    }

    /// Lets so much time pass for the task that calls.
    pub(crate) async fn pause(&self, millis: u64, order: u64) {
        let (done, waiting) = oneshot::channel();
        self.at(self.now() + millis, order, move || {
            let _gone = done.send(());
        });
        drop(waiting.await);
    }

    /// Runs events until this time.
    pub(crate) async fn run_until(&self, end: u64) {
        loop {
            let next = self.state().events.peek().map_or(end, |Reverse(first)| first.due.min(end));
            tokio::select! {
                biased;
                () = sleep_until(self.start + Duration::from_millis(next)) => {}
                () = self.earlier.notified() => continue,
            }
            while let Some(run) = self.next_of_this_instant() {
                run();
            }
            if self.now() >= end {
                return;
            }
        }
    }

    fn next_of_this_instant(&self) -> Option<Run> {
        let now = self.now();
        let mut state = self.state();
        match state.events.peek() {
            Some(Reverse(first)) if first.due <= now => state.events.pop().map(|Reverse(event)| event.run),
            _ => None,
        }
    }

    /// Notes what happened, if the steps of this run are wanted.
    pub(crate) fn step(&self, text: impl FnOnce() -> String) {
        if self.keeps_steps {
            let text = format!("{:>8} {}", self.now(), text());
            self.state().steps.push(text);
        }
    }

    /// Notes that something must not have happened.
    pub(crate) fn violated(&self, invariant: &str, what: &str) {
        self.step(|| format!("VIOLATION {invariant}: {what}"));
        self.state().violations.push(format!("{invariant}: {what}"));
    }

    /// Counts what happened, to show that a run tries what it should.
    pub(crate) fn count(&self, what: &'static str, more: u64) {
        *self.state().counts.entry(what).or_default() += more;
    }

    pub(crate) fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.state().counts)
    }

    pub(crate) fn take_steps(&self) -> Vec<String> {
        std::mem::take(&mut self.state().steps)
    }

    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }
}

impl World {
    /// Drops what was still to happen: events refer to the world that they are in.
    pub(crate) fn forget_events(&self) {
        let events = std::mem::take(&mut self.state().events);
        drop(events);
    }
}
