//! Held channels whose gateway gets a new certificate, and whose gateway is killed: who stays, and how soon all are back.

mod crowd;
mod report;

use std::{collections::BTreeMap, path::PathBuf, sync::atomic::Ordering, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{runtime::Runtime, time::sleep};

use crate::{
    Failure,
    args::ReconnectArgs,
    clients::{
        http::Connection,
        messages,
        publishers::{Pace, publish},
        stream::Endpoint,
    },
    cpu::{Meter, to_f64},
    report_progress,
    rounds::{self, Completed, Sample},
    servers::gateway::{self, Gateway},
    stopwatch::Stopwatch,
    tls::{Authority, CertificateFiles, TlsClient},
};
use crowd::Crowd;
use report::{PLAIN, Renewal, Report, TLS};

/// By then all clients must hold their channels.
const ALL_HELD: Duration = Duration::from_mins(3);

/// By then a new certificate must be served, and messages must have arrived.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
const ARRIVED_WITHIN: Duration = Duration::from_secs(30);

/// A gateway with TLS beside plain HTTP.
struct Place {
    program: PathBuf,
    folder: TempDir,
    authority: Authority,
    files: CertificateFiles,
    client: TlsClient,
    gateway: Gateway,
    tls: Endpoint,
}

pub(crate) fn run(args: &ReconnectArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.path())?;
    let runtime = Runtime::new()?;
    let renewal = renew(&mut Place::new(program.clone())?, args.channels, &runtime)?;
    let rounds = rounds::measure(args.rounds, &[PLAIN, TLS], |arm| {
        kill(Place::new(program.clone())?, arm, args.channels, &runtime)
    })?;
    Ok(Report::new(args, renewal, rounds))
}

impl Place {
    fn new(program: PathBuf) -> Result<Self, Failure> {
        let (folder, authority) = (tempfile::tempdir()?, Authority::new()?);
        let (files, client) = (authority.issue(folder.path())?, authority.client()?);
        let data = folder.path().join("data");
        let gateway = Gateway::on_sqlite(&program, &data)?;
        let (gateway, address) = gateway.with_tls(&program, folder.path(), &data, &files)?;
        let tls = Endpoint { address, tls: Some(client.clone()) };
        Ok(Self { program, folder, authority, files, client, gateway, tls })
    }
}

/// Replaces the certificate under channels that are held.
fn renew(place: &mut Place, channels: u64, runtime: &Runtime) -> Result<Renewal, Failure> {
    let entered = runtime.enter();
    let crowd = Crowd::start(&place.tls, channels, &place.gateway.enforcer_key)?;
    drop(entered);
    runtime.block_on(crowd.seen.wait_for(channels, ALL_HELD))?;
    report_progress(&format!("{channels} channels are held; the certificate is replaced"));
    place.files = place.authority.issue(place.folder.path())?;
    let new = place.files.read()?;
    let process = i32::try_from(place.gateway.pid()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(process, Signal::HUP)?;
    let watch = Stopwatch::start();
    runtime.block_on(async {
        while place.client.certificate_of(place.tls.address).await? != new {
            if watch.elapsed() > SERVED_WITHIN {
                return Err(Failure::from("the new certificate is not served"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    })?;
    let served_after = watch.elapsed();
    publish(Pace::Count(channels), || {
        let (gateway, mut connection) = (&place.gateway, Connection::open(place.gateway.address)?);
        Ok(move |number| {
            let enforcer = messages::enforcer(number);
            connection.call(&messages::submission(&gateway.enforcer_key, number, &enforcer))?;
            Ok(connection.call(&messages::decision(&gateway.approver_key, number, watch.elapsed()))?)
        })
    })?;
    runtime.block_on(crowd.seen.arrivals.wait_for(channels, ARRIVED_WITHIN));
    let renewal = Renewal {
        channels,
        ended: crowd.seen.ended.load(Ordering::Acquire),
        delivered: crowd.seen.arrivals.count(),
        served_after_ms: served_after.as_secs_f64() * 1e3,
    };
    report_progress(&renewal.to_string());
    Ok(renewal)
}

/// Kills the gateway under channels that are held, starts it again, and waits until all clients are back.
fn kill(place: Place, arm: &str, channels: u64, runtime: &Runtime) -> Result<Sample, Failure> {
    let Place { program, folder, gateway, tls, .. } = place;
    let at = if arm == TLS { tls } else { gateway.address.into() };
    let entered = runtime.enter();
    let crowd = Crowd::start(&at, channels, &gateway.enforcer_key)?;
    let seen = &crowd.seen;
    drop(entered);
    runtime.block_on(seen.wait_for(channels, ALL_HELD))?;
    let (failed_before, killed_at) = (seen.failed.load(Ordering::Acquire), seen.now());
    let gateway = gateway.again(&program, folder.path())?;
    let started_at = seen.now();
    let meter = Meter::start(&[("gateway", gateway.pid())])?;
    // Nobody counts as back who has not noticed yet.
    runtime.block_on(async {
        while seen.ended.load(Ordering::Acquire) < channels {
            sleep(Duration::from_millis(1)).await;
        }
    });
    runtime.block_on(seen.wait_for(channels, ALL_HELD))?;
    let (back_at, metered) = (seen.now(), meter.stop()?);
    let busy = back_at.saturating_sub(started_at).as_secs_f64() * 1e3 / to_f64(channels);
    let failed = seen.failed.load(Ordering::Acquire) - failed_before;
    let figures = BTreeMap::from([
        ("failed attempts", to_f64(failed)),
        ("listening after s", started_at.saturating_sub(killed_at).as_secs_f64()),
        ("CPU ms of the gateway for each", metered.cores["gateway"] * busy),
        ("CPU ms of the client for each", metered.cores["client"] * busy),
    ]);
    if failed > 0 {
        report_progress(&format!("the last failure: {}", seen.failure.lock()));
    }
    let completed = Completed::timed(seen.opened_since(killed_at), back_at.saturating_sub(killed_at));
    Ok(Sample { completed, metered, figures })
}
