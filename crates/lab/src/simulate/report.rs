//! What `simulate` prints.

use std::fmt::Write as _;

use serde_json::json;

use super::{
    SimulateArgs,
    run::run_seed,
    seeds::{Failing, Ran, run_seeds},
};
use crate::{Failure, bugs::Bug, report_progress, stopwatch::Stopwatch};

/// Violations of one seed that are printed.
const SHOWN: usize = 5;

/// The text to print, and whether nothing was violated, or every planted bug was caught.
pub(crate) fn run(args: &SimulateArgs) -> Result<(String, bool), Failure> {
    if let Some(seed) = args.seed {
        return one(seed, args);
    }
    if args.all_bugs {
        return all_bugs(args);
    }
    let stopwatch = Stopwatch::start();
    let ran = run_seeds(args.first, args.seeds, args.bug, !args.keep_going)?;
    let seconds = stopwatch.elapsed().as_secs_f64();
    let Some(failing) = ran.failing.first() else {
        return Ok((summary(args, &ran, seconds), true));
    };
    let mut text = summary(args, &ran, seconds);
    if args.keep_going && !args.json {
        for Failing { seed, violations } in &ran.failing {
            let _ = write!(text, "\nseed {seed} violates {}", violations[0]);
        }
    } else if !args.json {
        let steps = run_seed(failing.seed, args.bug, true)?.steps;
        text = format!("{}\n{text}", steps.join("\n"));
    }
    Ok((text, false))
}

fn summary(args: &SimulateArgs, ran: &Ran, seconds: f64) -> String {
    let (first, bug) = (args.first, args.bug.map(Bug::name));
    if args.json {
        let failing: Vec<_> = ran
            .failing
            .iter()
            .map(|failing| json!({ "seed": failing.seed, "violations": failing.violations }))
            .collect();
        let report = json!({
            "first": first,
            "seeds": ran.seeds,
            "seconds": seconds,
            "bug": bug,
            "counts": ran.counts,
            "failing": failing,
        });
        return report.to_string();
    }
    let mut text = format!("{} seeds from {first} on, {seconds:.1} s", ran.seeds);
    match ran.failing.first() {
        None => {
            text += ": nothing was violated";
            for (what, count) in &ran.counts {
                let _ = write!(text, "\n{count:>12} {what}");
            }
        }
        Some(Failing { seed, violations }) => {
            let _ = write!(text, ": seed {seed} violates");
            for violation in violations.iter().take(SHOWN) {
                let _ = write!(text, "\n  {violation}");
            }
            let bug = bug.map_or_else(String::new, |bug| format!(" --bug {bug}"));
            let _ = write!(text, "\nsee it again with: countersign-lab simulate --seed {seed}{bug}");
        }
    }
    text
}

/// One seed, with all of its steps.
fn one(seed: u64, args: &SimulateArgs) -> Result<(String, bool), Failure> {
    let outcome = run_seed(seed, args.bug, true)?;
    let is_kept = outcome.violations.is_empty();
    if args.json {
        let report = json!({ "seed": seed, "steps": outcome.steps, "violations": outcome.violations });
        return Ok((report.to_string(), is_kept));
    }
    let mut text = outcome.steps.join("\n");
    let _ = match is_kept {
        true => write!(text, "\nseed {seed}: nothing was violated"),
        false => write!(text, "\nseed {seed} violates\n  {}", outcome.violations.join("\n  ")),
    };
    Ok((text, is_kept))
}

/// Each planted bug until it is caught.
fn all_bugs(args: &SimulateArgs) -> Result<(String, bool), Failure> {
    let (mut rows, mut all_caught) = (Vec::new(), true);
    let mut text = format!("{:<22} {:>8} {:>8}  caught by", "bug", "seeds", "seconds");
    for bug in Bug::all() {
        let stopwatch = Stopwatch::start();
        let ran = run_seeds(args.first, args.seeds, Some(bug), true)?;
        let seconds = stopwatch.elapsed().as_secs_f64();
        let by = ran.failing.first().map(|failing| failing.violations[0].clone());
        all_caught &= by.is_some();
        report_progress(&format!("{}: {} seeds", bug.name(), ran.seeds));
        let invariant = by.as_deref().map_or("nothing", |by| by.split(": ").next().unwrap_or(by));
        let _ = write!(text, "\n{:<22} {:>8} {seconds:>8.1}  {invariant}", bug.name(), ran.seeds);
        rows.push(json!({ "bug": bug.name(), "seeds": ran.seeds, "seconds": seconds, "caught_by": by }));
    }
    let text = if args.json { json!({ "bugs": rows }).to_string() } else { text };
    Ok((text, all_caught))
}
