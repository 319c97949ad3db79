//! The minimum possible: one durable commit like that of a decision, and one round trip over the loopback.

use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use countersign_core::store::{Outcome, Store};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::pacing::{Pacing, WARM_UP, with_latencies};
use crate::{
    Failure,
    clients::{
        messages,
        publishers::{PUBLISHERS, Pace, publish},
    },
    rounds::{Completed, Sample},
    stopwatch::Stopwatch,
    workload::{Requests, Workload},
};

/// Size of a decision in a WebSocket frame.
pub(crate) const DELIVERED_BYTES: usize = 613;

/// Size of an API key.
const KEY_BYTES: usize = 107;

const APPROVERS: u64 = 1;

/// With a round trip over the loopback.
pub(super) fn over_loopback(
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    servers: &[(&'static str, u32)],
    pacing: Pacing,
) -> Result<Sample, Failure> {
    let echo = start_echo(posted().len())?;
    commits_and_round_trips(runtime, store, servers, pacing, || {
        let mut stream = TcpStream::connect(echo)?;
        stream.set_nodelay(true)?;
        Ok(move |posted: &[u8]| {
            stream.write_all(posted)?;
            Ok(stream.read_exact(&mut [0; DELIVERED_BYTES])?)
        })
    })
}

/// A request that posts a decision.
fn posted() -> Vec<u8> {
    messages::decision(&"k".repeat(KEY_BYTES), 0, Duration::ZERO)
}

/// For each exchange a commit like that of its submission, then one like that of its decision and a round trip, which are
/// timed. `round_trip` makes one for each publisher.
pub(crate) fn commits_and_round_trips<R, T>(
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    servers: &[(&'static str, u32)],
    pacing: Pacing,
    round_trip: R,
) -> Result<Sample, Failure>
where
    R: Fn() -> Result<T, Failure> + Sync,
    T: FnMut(&[u8]) -> Result<(), Failure>,
{
    let Pacing { rate, length, enforcers } = pacing;
    let requests = Requests::new(APPROVERS, enforcers, runtime.block_on(store.now())?)?;
    let (posted, latencies) = (posted(), Mutex::new(Vec::new()));
    let commit = |workload| -> Result<(), Failure> {
        let (request, change) = requests.next(workload).ok_or("nothing to decide")??;
        match runtime.block_on(store.commit(change))? {
            Outcome::Committed { versions, .. } => requests.committed(workload, request, &versions),
            Outcome::Conflict { .. } => return Err("a guard failed".into()),
        }
        Ok(())
    };
    let make = || {
        let mut round_trip = round_trip()?;
        let (commit, latencies, posted) = (&commit, &latencies, &posted);
        Ok(move |_| {
            commit(Workload::Submit)?;
            let watch = Stopwatch::start();
            commit(Workload::Decide)?;
            round_trip(posted)?;
            latencies.lock().push(watch.elapsed());
            Ok(())
        })
    };
    publish(Pace::Count(WARM_UP), make)?;
    latencies.lock().clear();
    let sample = Sample::measure(servers, || {
        let watch = Stopwatch::start();
        let count = publish(Pace::PerSecond(length, rate), make)?;
        Ok(Completed { count, elapsed: watch.elapsed(), latencies: Vec::new() })
    })?;
    Ok(with_latencies(sample, latencies.into_inner()))
}

/// Starts a server that responds with as many bytes as a delivery has to as many as a decision has. It accepts one
/// connection per publisher, for the warm-up and for the measurement.
fn start_echo(posted_bytes: usize) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let answer = move |mut stream: TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut posted = vec![0; posted_bytes];
        loop {
            stream.read_exact(&mut posted)?;
            stream.write_all(&[b'x'; DELIVERED_BYTES])?;
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().take(2 * PUBLISHERS).flatten() {
            // Ends when the publisher closes its connection.
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}
