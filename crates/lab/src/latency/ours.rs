//! Our gateway: each exchange is submitted and then decided on one node, and its enforcer has a WebSocket on the same one or
//! on another.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{runtime::Runtime, time::sleep};

use super::{LatencyBench, Pacing, Place, Timed, WARM_UP};
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
    cpu::Meter,
    servers::gateway::Gateway,
    stopwatch::Stopwatch,
};

/// How long to wait for the last decisions on one node.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The first number of exchanges that are not timed: [`Arrivals`] has no slot for them.
const UNTIMED: u64 = 500_000_000;

/// Where exchanges are decided and delivered.
pub(crate) struct Route<'a> {
    pub(crate) decides: &'a Gateway,
    /// The node of the enforcers' WebSockets.
    pub(crate) delivers: SocketAddr,
    /// How long to wait for the last decisions.
    pub(crate) arrival_timeout: Duration,
}

impl LatencyBench<'_> {
    pub(super) fn ours(&self, place: &Place, pacing: Pacing) -> Result<Timed, Failure> {
        let folder = place.folder.path();
        let gateway = match &place.postgres {
            Some(postgres) => Gateway::on_postgres(&self.program, folder, postgres)?,
            None => Gateway::on_sqlite(&self.program, folder)?,
        };
        let mut servers = vec![("gateway", gateway.pid())];
        servers.extend(place.postgres.as_ref().map(|postgres| ("postgres", postgres.pid())));
        let route = Route { decides: &gateway, delivers: gateway.address, arrival_timeout: ARRIVAL_TIMEOUT };
        route.measure(&self.runtime, &servers, pacing)
    }
}

impl Route<'_> {
    pub(crate) fn measure(
        &self,
        runtime: &Runtime,
        servers: &[(&'static str, u32)],
        pacing: Pacing,
    ) -> Result<Timed, Failure> {
        let Pacing { rate, length, enforcers } = pacing;
        let gateway = self.decides;
        let key = gateway.enforcer_key.clone();
        let request = move |channel| our_request(ChannelKind::WebSocket, &key, channel);
        let streams =
            runtime.block_on(subscribers::open(self.delivers, enforcers, Answer::Head(101), request))?;
        let arrivals = Arc::new(Arrivals::new(usize::try_from(rate * (length.as_secs() + 1))?));
        let watch = Stopwatch::start();
        let entered = runtime.enter();
        let listeners = subscribers::listen(streams, &arrivals, watch);
        drop(entered);
        let make = |first: u64| {
            let mut connection = Connection::open(gateway.address)?;
            Ok(move |message: u64| {
                let message = first + message;
                let enforcer = messages::enforcer(message % enforcers);
                connection.call(&messages::submission(&gateway.enforcer_key, message, &enforcer))?;
                let decision = messages::decision(&gateway.approver_key, message, watch.elapsed());
                Ok(connection.call(&decision)?)
            })
        };
        publish(Pace::Count(WARM_UP), || make(UNTIMED))?;
        let meter = Meter::start(servers)?;
        let began = watch.elapsed();
        let published = publish(Pace::PerSecond(length, rate), || make(0))?;
        let elapsed = watch.elapsed().saturating_sub(began);
        let metered = meter.stop()?;
        runtime.block_on(async {
            let last = Stopwatch::start();
            while arrivals.count() < published && last.elapsed() < self.arrival_timeout {
                sleep(Duration::from_millis(5)).await;
            }
        });
        drop(listeners);
        let latencies = arrivals.arrived().map(|arrived| arrived.latency).collect();
        Ok(Timed { latencies, published, elapsed, metered })
    }
}
