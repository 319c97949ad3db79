//! Does the faults of a schedule to the cluster, and heals them.

use std::{sync::Arc, time::Duration};

use countersign_testkit::nats::Nats;
use rustix::process::Signal;
use tokio::{
    task::{JoinSet, block_in_place},
    time::{Instant, sleep, sleep_until},
};

use super::{
    history::Recorder,
    rig::{Database, Link, Mode, NODES, Rig, signal},
    schedule::{Fault, Planned},
};
use crate::{Failure, report_progress};

/// Runs the schedule from now on for `length`, and returns when its last fault is healed and the cluster is whole.
pub(crate) async fn run(
    rig: &Arc<Rig>,
    schedule: &[Planned],
    length: Duration,
    recorder: &Recorder,
) -> Result<(), Failure> {
    let began = Instant::now();
    let mut faults = JoinSet::new();
    for planned in schedule.iter().copied() {
        sleep_until(began + planned.at).await;
        // A fault that can't be done or healed ends the run.
        while let Some(ended) = faults.try_join_next() {
            ended??;
        }
        report_progress(&format!("{:6.1} s  {}", planned.at.as_secs_f64(), planned.fault));
        let (rig, recorder) = (Arc::clone(rig), recorder.clone());
        faults.spawn(async move { inject(&rig, planned, &recorder).await });
    }
    sleep_until(began + length).await;
    while let Some(ended) = faults.join_next().await {
        ended??;
    }
    heal(rig).await
}

/// Heals what a fault may have left.
async fn heal(rig: &Rig) -> Result<(), Failure> {
    for node in 0..NODES {
        for link in [Link::Clients, Link::Database, Link::Nats] {
            rig.set_link(node, link, Mode::Pass);
        }
        rig.node(node).move_clock(0)?;
        rig.node(node).signal(Signal::CONT)?;
    }
    rig.database.lock().await.wait_until_replicated().await?;
    rig.wait_until_ready().await
}

/// Does one fault, waits, and heals it.
async fn inject(rig: &Rig, planned: Planned, recorder: &Recorder) -> Result<(), Failure> {
    let Planned { length, fault, .. } = planned;
    let begins = || recorder.fault_begins(fault.kind(), &fault.target());
    let begun = match fault {
        Fault::KillNode(node) => {
            block_in_place(|| rig.node(node).kill(length))?;
            let begun = begins();
            sleep(length).await;
            rig.wait_until_node_is_ready(node).await?;
            begun
        }
        Fault::StopNode(node) => {
            rig.node(node).signal(Signal::STOP)?;
            let begun = begins();
            sleep(length).await;
            rig.node(node).signal(Signal::CONT)?;
            begun
        }
        Fault::KillDatabase | Fault::Failover | Fault::FillDisk => {
            let mut database = rig.database.lock().await;
            break_database(&mut database, fault).await?;
            let begun = begins();
            mend_database(&mut database, fault, length).await?;
            begun
        }
        Fault::KillNats | Fault::StopNats => {
            let mut nats = rig.nats.lock().await;
            stop_nats(&mut nats, fault)?;
            let begun = begins();
            sleep(length).await;
            start_nats(&mut nats, fault)?;
            begun
        }
        Fault::Cut(node, link) | Fault::Slow(node, link, _) | Fault::HalfOpen(node, link) => {
            rig.set_link(node, link, mode(fault));
            let begun = begins();
            sleep(length).await;
            rig.set_link(node, link, Mode::Pass);
            begun
        }
        Fault::MoveClock(node, seconds) => {
            rig.node(node).move_clock(seconds)?;
            let begun = begins();
            sleep(length).await;
            rig.node(node).move_clock(0)?;
            begun
        }
    };
    recorder.fault_ends(begun);
    Ok(())
}

fn mode(fault: Fault) -> Mode {
    match fault {
        Fault::Cut(..) => Mode::Cut,
        Fault::Slow(_, _, delay) => Mode::Slow(delay),
        Fault::HalfOpen(..) => Mode::HalfOpen,
        _ => Mode::Pass,
    }
}

async fn break_database(database: &mut Database, fault: Fault) -> Result<(), Failure> {
    match fault {
        Fault::Failover => database.lose_primary().await,
        Fault::FillDisk => database.fill_disk().await,
        _ => database.crash().await,
    }
}

/// Nobody waits before a failover: whoever does it has to notice first.
async fn mend_database(database: &mut Database, fault: Fault, length: Duration) -> Result<(), Failure> {
    if fault == Fault::Failover {
        return database.fail_over().await;
    }
    sleep(length).await;
    match fault {
        Fault::FillDisk => database.free_disk().await,
        _ => database.recover().await,
    }
}

fn stop_nats(nats: &mut Nats, fault: Fault) -> Result<(), Failure> {
    if let (Fault::StopNats, Some(pid)) = (fault, nats.pid()) {
        return signal(pid, Signal::STOP);
    }
    block_in_place(|| nats.stop());
    Ok(())
}

fn start_nats(nats: &mut Nats, fault: Fault) -> Result<(), Failure> {
    if let (Fault::StopNats, Some(pid)) = (fault, nats.pid()) {
        return signal(pid, Signal::CONT);
    }
    block_in_place(|| nats.start_again());
    Ok(())
}
