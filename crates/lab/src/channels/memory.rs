//! Memory of an idle channel: the server's resident bytes after opening the channels minus those before.

use std::{path::Path, time::Duration};

use serde::Serialize;
use tokio::{net::TcpStream, runtime::Runtime, time::sleep};

use super::kind::{ChannelKind, Side, submit};
use crate::{
    Failure,
    args::ChannelsArgs,
    clients::subscribers,
    cpu::to_f64,
    report_progress,
    servers::{Resident, gateway::Gateway, nchan::Nchan, resident},
    stopwatch::Stopwatch,
};

/// The pause before each reading, so that the server's memory settles.
const SETTLING: Duration = Duration::from_secs(2);

/// The memory of one kind of channel on one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    #[serde(rename = "held")]
    pub(crate) kind: ChannelKind,
    pub(crate) side: Side,
    /// Resident bytes per channel; shared pages count for each process.
    pub(crate) rss_per_channel: f64,
    /// Proportional set size per channel: shared pages are divided among their processes.
    pub(crate) pss_per_channel: f64,
    pub(crate) rss_before: u64,
    /// How long it took to open all channels.
    pub(crate) opening_seconds: f64,
}

pub(crate) fn measure(args: &ChannelsArgs, gateway: &Path, runtime: &Runtime) -> Result<Vec<Cost>, Failure> {
    let mut costs = Vec::new();
    for kind in [ChannelKind::Sse, ChannelKind::WebSocket, ChannelKind::Wait] {
        for side in [Side::Ours, Side::Nchan] {
            let cost = match side {
                Side::Ours => ours(args, gateway, runtime, kind)?,
                Side::Nchan => nchan(args, runtime, kind)?,
            };
            report_progress(&format!(
                "memory: {} idle channels, {:9} {:5} {:6.0} B each, opened in {:.1} s",
                args.channels,
                kind.name(),
                side.name(),
                cost.rss_per_channel,
                cost.opening_seconds
            ));
            costs.push(cost);
        }
    }
    Ok(costs)
}

fn ours(args: &ChannelsArgs, program: &Path, runtime: &Runtime, kind: ChannelKind) -> Result<Cost, Failure> {
    let folder = tempfile::tempdir()?;
    if kind == ChannelKind::Wait {
        // In a separate process, so that the measured one is fresh.
        submit(&Gateway::on_sqlite(program, folder.path())?, args.channels, args.channels)?;
    }
    let gateway = Gateway::on_sqlite(program, folder.path())?;
    let key = gateway.enforcer_key.clone();
    let opening = subscribers::open(gateway.address, args.channels, kind.answer(), move |channel| {
        kind.our_request(&key, channel)
    });
    let processes = [gateway.pid()];
    read_memory(runtime, &processes, kind, opening)
        .map(|(before, after, opened)| Cost::new(args, kind, Side::Ours, before, after, opened))
}

fn nchan(args: &ChannelsArgs, runtime: &Runtime, kind: ChannelKind) -> Result<Cost, Failure> {
    let nchan = Nchan::start()?;
    let opening = subscribers::open(nchan.address, args.channels, kind.answer(), move |channel| {
        kind.peer_request(channel)
    });
    let workers = nchan.workers()?;
    read_memory(runtime, &workers, kind, opening)
        .map(|(before, after, opened)| Cost::new(args, kind, Side::Nchan, before, after, opened))
}

/// Reads the memory before and after opening the channels, which stay open until the second reading.
fn read_memory(
    runtime: &Runtime,
    processes: &[u32],
    kind: ChannelKind,
    opening: impl Future<Output = Result<Vec<TcpStream>, Failure>>,
) -> Result<(Resident, Resident, Duration), Failure> {
    runtime.block_on(async {
        sleep(SETTLING).await;
        let before = resident(processes)?;
        let watch = Stopwatch::start();
        let streams = opening.await?;
        let opened = watch.elapsed();
        sleep(SETTLING).await;
        let after = resident(processes)?;
        match subscribers::answered(&streams) {
            answered @ 1.. if kind == ChannelKind::Wait => {
                Err(format!("{answered} waits were not held").into())
            }
            _ => Ok((before, after, opened)),
        }
    })
}

impl Cost {
    fn new(
        args: &ChannelsArgs,
        kind: ChannelKind,
        side: Side,
        before: Resident,
        after: Resident,
        opened: Duration,
    ) -> Self {
        let each = |before: u64, after: u64| to_f64(after.saturating_sub(before)) / to_f64(args.channels);
        Self {
            kind,
            side,
            rss_per_channel: each(before.rss, after.rss),
            pss_per_channel: each(before.pss, after.pss),
            rss_before: before.rss,
            opening_seconds: opened.as_secs_f64(),
        }
    }
}
