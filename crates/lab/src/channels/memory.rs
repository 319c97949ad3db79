//! Memory of an idle channel: the server's resident bytes after opening the channels minus those before.

use std::{path::Path, time::Duration};

use serde::Serialize;
use tempfile::TempDir;
use tokio::{runtime::Runtime, time::sleep};

use super::kind::{ChannelKind, Layer, Side, submit};
use crate::{
    Failure,
    args::ChannelsArgs,
    clients::{
        stream::{Endpoint, Stream},
        subscribers,
    },
    cpu::to_f64,
    report_progress,
    servers::{Resident, gateway::Gateway, nchan::Nchan, resident},
    stopwatch::Stopwatch,
    tls::{Authority, CertificateFiles, TlsClient},
};

/// The pause before each reading, so that the server's memory settles.
const SETTLING: Duration = Duration::from_secs(2);

/// The memory of one kind of channel on one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    #[serde(flatten)]
    pub(crate) of: Channel,
    /// Resident bytes per channel; shared pages count for each process.
    pub(crate) rss_per_channel: f64,
    /// Proportional set size per channel: shared pages are divided among their processes.
    pub(crate) pss_per_channel: f64,
    pub(crate) rss_before: u64,
    /// How long it took to open all channels.
    pub(crate) opening_seconds: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Channel {
    pub(crate) layer: Layer,
    #[serde(rename = "held")]
    pub(crate) kind: ChannelKind,
    pub(crate) side: Side,
}

/// What TLS needs: a certificate, and a client that trusts it.
struct Tls {
    files: CertificateFiles,
    client: TlsClient,
    _folder: TempDir,
}

impl Tls {
    fn new() -> Result<Self, Failure> {
        let (authority, folder) = (Authority::new()?, tempfile::tempdir()?);
        Ok(Self { files: authority.issue(folder.path())?, client: authority.client()?, _folder: folder })
    }
}

pub(crate) fn measure(args: &ChannelsArgs, gateway: &Path, runtime: &Runtime) -> Result<Vec<Cost>, Failure> {
    let (tls, mut costs) = (Tls::new()?, Vec::new());
    for layer in [Layer::Plain, Layer::Tls] {
        let tls = (layer == Layer::Tls).then_some(&tls);
        for kind in [ChannelKind::Sse, ChannelKind::WebSocket, ChannelKind::Wait] {
            for side in [Side::Ours, Side::Nchan] {
                let read = match side {
                    Side::Ours => ours(args, gateway, runtime, kind, tls)?,
                    Side::Nchan => nchan(args, runtime, kind, tls)?,
                };
                let cost = Cost::new(args, Channel { layer, kind, side }, read);
                report_progress(&format!(
                    "memory: {} idle channels, {:5} {:9} {:5} {:6.0} B each, opened in {:.1} s",
                    args.channels,
                    layer.name(),
                    kind.name(),
                    side.name(),
                    cost.rss_per_channel,
                    cost.opening_seconds
                ));
                costs.push(cost);
            }
        }
    }
    Ok(costs)
}

fn ours(
    args: &ChannelsArgs,
    program: &Path,
    runtime: &Runtime,
    kind: ChannelKind,
    tls: Option<&Tls>,
) -> Result<Reading, Failure> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let prepared = Gateway::on_sqlite(program, &data)?;
    if kind == ChannelKind::Wait {
        submit(&prepared, args.channels, args.channels)?;
    }
    // Another process, so that the measured one is fresh.
    let (gateway, at) = if let Some(tls) = tls {
        let (gateway, address) = prepared.with_tls(program, folder.path(), &data, &tls.files)?;
        (gateway, Endpoint { address, tls: Some(tls.client.clone()) })
    } else {
        drop(prepared);
        let gateway = Gateway::on_sqlite(program, &data)?;
        let at = gateway.address.into();
        (gateway, at)
    };
    let key = gateway.enforcer_key.clone();
    let opening =
        subscribers::open(at, args.channels, kind.answer(), move |channel| kind.our_request(&key, channel));
    read_memory(runtime, &[gateway.pid()], kind, opening)
}

fn nchan(
    args: &ChannelsArgs,
    runtime: &Runtime,
    kind: ChannelKind,
    tls: Option<&Tls>,
) -> Result<Reading, Failure> {
    let nchan = Nchan::start(tls.map(|tls| &tls.files))?;
    let at = Endpoint { address: nchan.address, tls: tls.map(|tls| tls.client.clone()) };
    let opening =
        subscribers::open(at, args.channels, kind.answer(), move |channel| kind.peer_request(channel));
    read_memory(runtime, &nchan.workers()?, kind, opening)
}

/// Memory before and after, and how long it took to open all channels.
struct Reading {
    before: Resident,
    after: Resident,
    opened: Duration,
}

/// Reads the memory before and after opening the channels, which stay open until the second reading.
fn read_memory(
    runtime: &Runtime,
    processes: &[u32],
    kind: ChannelKind,
    opening: impl Future<Output = Result<Vec<Stream>, Failure>>,
) -> Result<Reading, Failure> {
    runtime.block_on(async {
        sleep(SETTLING).await;
        let before = resident(processes)?;
        let watch = Stopwatch::start();
        let mut streams = opening.await?;
        let opened = watch.elapsed();
        sleep(SETTLING).await;
        let after = resident(processes)?;
        match subscribers::answered(&mut streams) {
            answered @ 1.. if kind == ChannelKind::Wait => {
                Err(format!("{answered} waits were not held").into())
            }
            _ => Ok(Reading { before, after, opened }),
        }
    })
}

impl Cost {
    fn new(args: &ChannelsArgs, of: Channel, Reading { before, after, opened }: Reading) -> Self {
        let each = |before: u64, after: u64| to_f64(after.saturating_sub(before)) / to_f64(args.channels);
        Self {
            of,
            rss_per_channel: each(before.rss, after.rss),
            pss_per_channel: each(before.pss, after.pss),
            rss_before: before.rss,
            opening_seconds: opened.as_secs_f64(),
        }
    }
}
