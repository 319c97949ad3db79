//! One stretch of messages over a freshly started server.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use tokio::runtime::Runtime;

use super::kind::{ChannelKind, Side, submit};
use crate::{
    Failure,
    args::ChannelsArgs,
    clients::{
        arrivals::Arrivals,
        http::Connection,
        messages,
        publishers::{Pace, publish},
        stream::Stream,
        subscribers,
    },
    cpu::{CpuUsage, Ticks, to_f64},
    figures::Percentiles,
    servers::{gateway::Gateway, nchan::Nchan},
    stopwatch::Stopwatch,
};

/// More messages a second than the publishers can reach.
const MAX_PER_SECOND: u64 = 60_000;

/// How long to wait for the last messages.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The results of a stretch.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    #[serde(rename = "held")]
    pub(crate) kind: ChannelKind,
    pub(crate) side: Side,
    /// The requested messages a second; `None` means full speed.
    pub(crate) paced_at: Option<u64>,
    pub(crate) published: u64,
    pub(crate) lost: u64,
    /// Messages that arrived, per second.
    pub(crate) per_second: f64,
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
    /// CPU time of the server per message, in microseconds.
    pub(crate) server_us_per_message: f64,
    pub(crate) cpu: CpuUsage,
    pub(crate) disturbed: bool,
}

/// The parameters of a stretch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) round: u64,
    pub(crate) kind: ChannelKind,
    pub(crate) side: Side,
    pub(crate) paced_at: Option<u64>,
}

impl Plan {
    pub(crate) fn run(self, args: &ChannelsArgs, runtime: &Runtime) -> Result<Stretch, Failure> {
        match self.side {
            Side::Ours => self.over_our_gateway(args, runtime),
            Side::Nchan => self.over_nchan(args, runtime),
        }
    }

    fn over_our_gateway(self, args: &ChannelsArgs, runtime: &Runtime) -> Result<Stretch, Failure> {
        let gateway = Gateway::in_memory()?;
        if !args.whole_decisions {
            return self.over_our_push_path(args, runtime, &gateway);
        }
        let max_messages = args.timing.seconds * self.paced_at.unwrap_or(args.prepared_per_second);
        // Subscribers connect first, so that their channels exist before anything is delivered over them.
        let (key, kind) = (gateway.enforcer_key.clone(), self.kind);
        let request = move |channel| kind.our_request(&key, channel);
        let streams =
            runtime.block_on(subscribers::open(gateway.address, args.subscribers, kind.answer(), request))?;
        submit(&gateway, max_messages, args.subscribers)?;
        self.measure(args, runtime, gateway.pid(), streams, max_messages, |watch| {
            let mut connection = Connection::open(gateway.address)?;
            let gateway = &gateway;
            Ok(move |message| {
                let decision = messages::decision(&gateway.approver_key, message, watch.elapsed());
                Ok(connection.call(&decision)?)
            })
        })
    }

    /// Each subscriber's exchange is decided beforehand; published messages then go directly into its mailbox.
    fn over_our_push_path(
        self,
        args: &ChannelsArgs,
        runtime: &Runtime,
        gateway: &Gateway,
    ) -> Result<Stretch, Failure> {
        let (key, kind) = (gateway.enforcer_key.clone(), self.kind);
        publish(Pace::Count(args.subscribers), || {
            let mut connection = Connection::open(gateway.address)?;
            Ok(move |channel: u64| {
                let enforcer = messages::enforcer(channel);
                connection.call(&messages::submission(&gateway.enforcer_key, channel, &enforcer))?;
                Ok(connection.call(&messages::uncounted_decision(&gateway.approver_key, channel))?)
            })
        })?;
        let request = move |channel| kind.our_request(&key, channel);
        let streams =
            runtime.block_on(subscribers::open(gateway.address, args.subscribers, kind.answer(), request))?;
        let max_messages = args.timing.seconds * MAX_PER_SECOND;
        self.measure(args, runtime, gateway.pid(), streams, max_messages, |watch| {
            let mut connection = Connection::open(gateway.address)?;
            Ok(move |message: u64| {
                let channel = message % args.subscribers;
                Ok(connection.call(&messages::published(channel, message, watch.elapsed()))?)
            })
        })
    }

    fn over_nchan(self, args: &ChannelsArgs, runtime: &Runtime) -> Result<Stretch, Failure> {
        let nchan = Nchan::start(None)?;
        let kind = self.kind;
        let request = move |channel| kind.peer_request(channel);
        let streams =
            runtime.block_on(subscribers::open(nchan.address, args.subscribers, kind.answer(), request))?;
        let max_messages = args.timing.seconds * MAX_PER_SECOND;
        self.measure(args, runtime, nchan.pid(), streams, max_messages, |watch| {
            let mut connection = Connection::open(nchan.address)?;
            Ok(move |message: u64| {
                let channel = message % args.subscribers;
                Ok(connection.call(&messages::peer_message(channel, message, watch.elapsed()))?)
            })
        })
    }

    fn measure<P>(
        self,
        args: &ChannelsArgs,
        runtime: &Runtime,
        server: u32,
        streams: Vec<Stream>,
        max_messages: u64,
        make: impl Fn(Stopwatch) -> Result<P, Failure> + Sync,
    ) -> Result<Stretch, Failure>
    where
        P: FnMut(u64) -> Result<(), Failure>,
    {
        let length = args.timing.length();
        let arrivals = Arc::new(Arrivals::new(usize::try_from(max_messages)?));
        let pace = match self.paced_at {
            Some(rate) => Pace::PerSecond(length, rate),
            None => Pace::Flat(length, max_messages),
        };
        let entered = runtime.enter();
        let watch = Stopwatch::start();
        let listeners = subscribers::listen(streams, &arrivals, watch);
        drop(entered);
        let before = Ticks::read(&[server])?;
        let began = watch.elapsed();
        let published = publish(pace, || make(watch))?;
        let ended = watch.elapsed();
        let cpu = Ticks::read(&[server])?.since(before);
        runtime.block_on(arrivals.wait_for(published, ARRIVAL_TIMEOUT));
        drop(listeners);
        Ok(self.summarize(&arrivals, published, began, ended, cpu))
    }

    fn summarize(
        self,
        arrivals: &Arrivals,
        published: u64,
        began: Duration,
        ended: Duration,
        cpu: CpuUsage,
    ) -> Stretch {
        let seconds = ended.saturating_sub(began).as_secs_f64();
        let in_time = arrivals.arrived().filter(|arrived| arrived.at <= ended).count();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let server_seconds = cpu.servers * to_f64(cores as u64) * seconds;
        Stretch {
            round: self.round,
            kind: self.kind,
            side: self.side,
            paced_at: self.paced_at,
            published,
            lost: published.saturating_sub(arrivals.count()),
            per_second: to_f64(in_time as u64) / seconds,
            latency: Percentiles::of(arrivals.arrived().map(|arrived| arrived.latency)),
            server_us_per_message: server_seconds * 1e6 / to_f64(published.max(1)),
            cpu,
            disturbed: cpu.is_disturbed(),
        }
    }
}
