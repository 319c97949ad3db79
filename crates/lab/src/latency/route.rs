//! Our gateway: each exchange is submitted and then decided on one node, and its enforcer has a WebSocket on the same one or
//! on another.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::runtime::Runtime;

use super::pacing::{Pacing, WARM_UP, with_latencies};
use crate::{
    Failure,
    clients::{
        arrivals::Arrivals,
        http::Connection,
        messages::{self, Role},
        publishers::{Pace, publish},
        subscribers::{self, Answer},
    },
    rounds::{Completed, Sample},
    servers::gateway::Gateway,
    stopwatch::Stopwatch,
};

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

impl Route<'_> {
    pub(crate) fn measure(
        &self,
        runtime: &Runtime,
        servers: &[(&'static str, u32)],
        pacing: Pacing,
    ) -> Result<Sample, Failure> {
        let Pacing { rate, length, enforcers } = pacing;
        let gateway = self.decides;
        let key = gateway.enforcer_key.clone();
        let request =
            move |channel| messages::open_websocket(&key, Role::Enforcer, &messages::enforcer(channel));
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
        let sample = Sample::measure(servers, || {
            let began = watch.elapsed();
            let count = publish(Pace::PerSecond(length, rate), || make(0))?;
            let elapsed = watch.elapsed().saturating_sub(began);
            Ok(Completed { count, elapsed, latencies: Vec::new() })
        })?;
        runtime.block_on(arrivals.wait_for(sample.completed.count, self.arrival_timeout));
        drop(listeners);
        Ok(with_latencies(sample, arrivals.arrived().map(|arrived| arrived.latency).collect()))
    }
}
