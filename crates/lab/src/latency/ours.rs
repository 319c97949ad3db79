//! Our gateway: each exchange is submitted and then decided, and its enforcer has a WebSocket.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{LatencyBench, Place, Timed, WARM_UP};
use crate::{
    Failure,
    channels::{ChannelKind, our_request},
    clients::{
        arrivals::Arrivals,
        http::Connection,
        messages,
        publishers::{Pace, publish},
        subscribers::{self, Answer},
    },
    cpu::Ticks,
    servers::gateway::Gateway,
    stopwatch::Stopwatch,
};

/// How long to wait for the last decisions.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The first number of exchanges that are not timed: [`Arrivals`] has no slot for them.
const UNTIMED: u64 = 500_000_000;

impl LatencyBench<'_> {
    pub(super) fn ours(&self, place: &Place, rate: u64, length: Duration) -> Result<Timed, Failure> {
        let folder = place.folder.path();
        let gateway = match &place.postgres {
            Some(postgres) => Gateway::on_postgres(&self.program, folder, postgres)?,
            None => Gateway::on_sqlite(&self.program, folder)?,
        };
        let mut servers = vec![gateway.pid()];
        servers.extend(place.postgres.as_ref().map(countersign_testkit::postgres::Postgres::pid));
        let (key, enforcers) = (gateway.enforcer_key.clone(), self.args.enforcers);
        let request = move |channel| our_request(ChannelKind::WebSocket, &key, channel);
        let opening = subscribers::open(gateway.address, enforcers, Answer::Head(101), request);
        let streams = self.runtime.block_on(opening)?;
        let arrivals = Arc::new(Arrivals::new(usize::try_from(rate * (length.as_secs() + 1))?));
        let watch = Stopwatch::start();
        let entered = self.runtime.enter();
        let listeners = subscribers::listen(streams, &arrivals, watch);
        drop(entered);
        let make = |first: u64| {
            let mut connection = Connection::open(gateway.address)?;
            let gateway = &gateway;
            Ok(move |message: u64| {
                let message = first + message;
                let enforcer = messages::enforcer(message % enforcers);
                connection.call(&messages::submission(&gateway.enforcer_key, message, &enforcer))?;
                let decision = messages::decision(&gateway.approver_key, message, watch.elapsed());
                Ok(connection.call(&decision)?)
            })
        };
        publish(Pace::Count(WARM_UP), || make(UNTIMED))?;
        let before = Ticks::read(&servers)?;
        let began = watch.elapsed();
        let published = publish(Pace::PerSecond(length, rate), || make(0))?;
        let elapsed = watch.elapsed().saturating_sub(began);
        let cpu = Ticks::read(&servers)?.since(before);
        self.runtime.block_on(async {
            let last = Stopwatch::start();
            while arrivals.count() < published && last.elapsed() < ARRIVAL_TIMEOUT {
                sleep(Duration::from_millis(5)).await;
            }
        });
        drop(listeners);
        let latencies = arrivals.arrived().map(|arrived| arrived.latency).collect();
        Ok(Timed { latencies, published, elapsed, cpu })
    }
}
