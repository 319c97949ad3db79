//! Many seeds, on every processor.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use parking_lot::Mutex;

use super::{run::run_seed, world::Counts};
use crate::{Failure, bugs::Bug};

/// A seed whose run violated something.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    pub(crate) seed: u64,
    pub(crate) violations: Vec<String>,
}

/// What many seeds came to.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    pub(crate) seeds: u64,
    /// In ascending order. Only some, if it stops at the first.
    pub(crate) failing: Vec<Failing>,
    /// How often things happened in all of them.
    pub(crate) counts: Counts,
}

/// Runs `count` seeds from `first` on. With `stops`, no further seed begins once one has failed.
pub(crate) fn run_seeds(first: u64, count: u64, bug: Option<Bug>, stops: bool) -> Result<Ran, Failure> {
    let (next, ran, has_failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (failing, counts): (Mutex<Vec<Failing>>, Mutex<Counts>) = Default::default();
    let work = || -> Result<(), Failure> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || stops && has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let seed = first + index;
            let outcome = run_seed(seed, bug, false)?;
            ran.fetch_add(1, Ordering::Relaxed);
            for (what, count) in outcome.counts {
                *counts.lock().entry(what).or_default() += count;
            }
            if !outcome.violations.is_empty() {
                has_failed.store(true, Ordering::Relaxed);
                let failed = Failing { seed, violations: outcome.violations };
                failing.lock().push(failed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("the run of a seed panicked".into())))
    })?;
    let mut failing = failing.into_inner();
    failing.sort_by_key(|failing| failing.seed);
    let counts = counts.into_inner();
    Ok(Ran { seeds: ran.into_inner(), failing, counts })
}
