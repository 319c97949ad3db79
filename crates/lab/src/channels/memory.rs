//! What an idle channel costs the server: resident bytes after they were opened less those before.

use std::{path::Path, time::Duration};

use serde::Serialize;
use tokio::{net::TcpStream, runtime::Runtime, time::sleep};

use super::{Held, Side, our_request, peer_request};
use crate::{
    Failure,
    args::ChannelsArgs,
    clients::{
        http::Connection,
        messages,
        publishers::{Pace, publish},
        subscribers::{self, Answer},
    },
    cpu::to_f64,
    servers::{Resident, gateway::Gateway, nchan::Nchan, resident},
    stopwatch::Stopwatch,
    tell,
};

/// Between the last connection and the second look.
const SETTLING: Duration = Duration::from_secs(2);

/// One kind of channel on one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    pub(crate) held: Held,
    pub(crate) side: Side,
    /// Resident bytes for each channel; pages that processes share count for each of them.
    pub(crate) rss_per_channel: f64,
    /// The same with shared pages by their share.
    pub(crate) pss_per_channel: f64,
    pub(crate) rss_before: u64,
    /// How long it took to open all.
    pub(crate) opening_seconds: f64,
}

pub(crate) fn measure(args: &ChannelsArgs, gateway: &Path, runtime: &Runtime) -> Result<Vec<Cost>, Failure> {
    let mut costs = Vec::new();
    for held in [Held::Sse, Held::WebSocket, Held::Wait] {
        for side in [Side::Ours, Side::Nchan] {
            let cost = match side {
                Side::Ours => ours(args, gateway, runtime, held)?,
                Side::Nchan => nchan(args, runtime, held)?,
            };
            tell(&format!(
                "memory: {} idle channels, {:9} {:5} {:6.0} B each, opened in {:.1} s",
                args.channels,
                held.name(),
                side.name(),
                cost.rss_per_channel,
                cost.opening_seconds
            ));
            costs.push(cost);
        }
    }
    Ok(costs)
}

fn ours(args: &ChannelsArgs, program: &Path, runtime: &Runtime, held: Held) -> Result<Cost, Failure> {
    let folder = tempfile::tempdir()?;
    if held == Held::Wait {
        // By a process of its own, so that the one that is measured is fresh.
        submit(&Gateway::on_sqlite(program, folder.path())?, args.channels)?;
    }
    let gateway = Gateway::on_sqlite(program, folder.path())?;
    let key = gateway.enforcer_key.clone();
    let opening = subscribers::open(gateway.address, args.channels, answer(held), move |channel| {
        our_request(held, &key, channel)
    });
    let processes = [gateway.pid()];
    look(runtime, &processes, held, opening)
        .map(|(before, after, opened)| Cost::new(args, held, Side::Ours, before, after, opened))
}

fn nchan(args: &ChannelsArgs, runtime: &Runtime, held: Held) -> Result<Cost, Failure> {
    let nchan = Nchan::start()?;
    let opening = subscribers::open(nchan.address, args.channels, answer(held), move |channel| {
        peer_request(held, channel)
    });
    let workers = nchan.workers()?;
    look(runtime, &workers, held, opening)
        .map(|(before, after, opened)| Cost::new(args, held, Side::Nchan, before, after, opened))
}

fn answer(held: Held) -> Answer {
    match held {
        Held::Sse => Answer::Head(200),
        Held::WebSocket => Answer::Head(101),
        Held::Wait => Answer::Nothing,
    }
}

fn submit(gateway: &Gateway, count: u64) -> Result<(), Failure> {
    publish(Pace::Count(count), || {
        let mut connection = Connection::open(gateway.address)?;
        Ok(move |message| {
            let enforcer = messages::enforcer(message);
            Ok(connection.call(&messages::submission(&gateway.enforcer_key, message, &enforcer))?)
        })
    })?;
    Ok(())
}

/// Looks before and after the channels are opened; they stay open in between.
fn look(
    runtime: &Runtime,
    processes: &[u32],
    held: Held,
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
            answered @ 1.. if held == Held::Wait => Err(format!("{answered} waits were not held").into()),
            _ => Ok((before, after, opened)),
        }
    })
}

impl Cost {
    fn new(
        args: &ChannelsArgs,
        held: Held,
        side: Side,
        before: Resident,
        after: Resident,
        opened: Duration,
    ) -> Self {
        let each = |before: u64, after: u64| to_f64(after.saturating_sub(before)) / to_f64(args.channels);
        Self {
            held,
            side,
            rss_per_channel: each(before.rss, after.rss),
            pss_per_channel: each(before.pss, after.pss),
            rss_before: before.rss,
            opening_seconds: opened.as_secs_f64(),
        }
    }
}
