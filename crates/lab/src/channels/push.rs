//! Pushed messages, alternating between our gateway and Nchan: at full speed, and at a rate that both sustain.

use tokio::runtime::Runtime;

use super::{
    kind::{ChannelKind, Side},
    stretch::{Plan, Stretch},
};
use crate::{Failure, args::ChannelsArgs, cpu::to_f64, figures::percent, report_progress};

/// If one server does not reach the requested rate, both get this fraction of what it reached.
const REDUCED_RATE: f64 = 0.8;

pub(crate) fn measure(args: &ChannelsArgs, runtime: &Runtime) -> Result<Vec<Stretch>, Failure> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for round in 1..=args.timing.rounds {
        for kind in [ChannelKind::Sse, ChannelKind::WebSocket] {
            let mut take = |side, paced_at| -> Result<f64, Failure> {
                let stretch = Plan { round, kind, side, paced_at }.run(args, runtime)?;
                report_progress(&progress(args, &stretch));
                let per_second = stretch.per_second;
                stretches.push(stretch);
                Ok(per_second)
            };
            let slower = take(Side::Ours, None)?.min(take(Side::Nchan, None)?);
            let rate = rate_for_both(args.rate, slower);
            take(Side::Ours, Some(rate))?;
            take(Side::Nchan, Some(rate))?;
        }
    }
    Ok(stretches)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn rate_for_both(wanted: u64, slower: f64) -> u64 {
    if slower * REDUCED_RATE >= to_f64(wanted) { wanted } else { (slower * REDUCED_RATE) as u64 }
}

fn progress(args: &ChannelsArgs, stretch: &Stretch) -> String {
    let paced = stretch.paced_at.map_or("at full speed".to_owned(), |rate| format!("at {rate}/s"));
    format!(
        "push: round {} of {}: {:9} {:5} {paced:18} {:6.0}/s, p50 {:.2} ms, p99 {:.2} ms, {:3.0} µs of the \
         server each, {} lost, foreign CPU {}{}",
        stretch.round,
        args.timing.rounds,
        stretch.kind.name(),
        stretch.side.name(),
        stretch.per_second,
        stretch.latency.p50_ms,
        stretch.latency.p99_ms,
        stretch.server_us_per_message,
        stretch.lost,
        percent(stretch.cpu.foreign),
        if stretch.disturbed { " (disturbed)" } else { "" },
    )
}
