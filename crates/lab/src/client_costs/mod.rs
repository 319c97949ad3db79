//! What the client library costs: each operation beside the bare crates that it is made of, and the memory of an enforcer
//! that waits.

mod bare;
pub(crate) mod idle;
mod operation;
mod ours;
mod report;

use self::{
    bare::Bare,
    idle::Idle,
    operation::{Operation, Side},
    ours::Ours,
    report::{Cost, Report},
};
use crate::{
    Failure,
    args::ClientArgs,
    cpu::{Ticks, to_f64},
    report_progress,
    stopwatch::Stopwatch,
};

/// The smaller payload: a usual command.
const SMALL: usize = 4 << 10;

/// Most times that one operation is repeated in a stretch.
const MAX_REPEATS: usize = 400;

pub(crate) fn run(args: &ClientArgs) -> Result<Report, Failure> {
    let before = Ticks::read(&[])?;
    let mut costs = Vec::new();
    for payload_bytes in [SMALL, args.large_kib * 1_024] {
        let sides: [Box<dyn Side>; 2] =
            [Box::new(Ours::new(payload_bytes)?), Box::new(Bare::new(payload_bytes)?)];
        let repeats = (args.kib * 1_024 / payload_bytes).clamp(1, MAX_REPEATS);
        for operation in Operation::ALL {
            costs.push(measure(args, operation, payload_bytes, &sides, repeats)?);
        }
    }
    let cpu = Ticks::read(&[])?.since(before);
    let idle = (0..args.rounds).map(|_| Idle::measure()).collect::<Result<Vec<_>, _>>()?;
    Ok(Report::new(args, costs, idle, cpu))
}

/// Measures ours and the bare crates in turn.
fn measure(
    args: &ClientArgs,
    operation: Operation,
    payload_bytes: usize,
    sides: &[Box<dyn Side>; 2],
    repeats: usize,
) -> Result<Cost, Failure> {
    // The first time is not measured: it touches new memory.
    let text_bytes = [sides[0].run(operation)?, sides[1].run(operation)?];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        for (side, times) in sides.iter().zip(&mut times) {
            let watch = Stopwatch::start();
            for _ in 0..repeats {
                std::hint::black_box(side.run(operation)?);
            }
            let microseconds = watch.elapsed().as_secs_f64() * 1e6;
            times.push(microseconds / to_f64(u64::try_from(repeats)?));
        }
    }
    let [ours_us, bare_us] = times;
    report_progress(&format!("{}, {payload_bytes} B: {} rounds", operation.name(), args.rounds));
    Ok(Cost { operation, payload_bytes, text_bytes, ours_us, bare_us })
}
