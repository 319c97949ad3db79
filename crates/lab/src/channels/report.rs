//! The report of `bench channels`: ours compared with Nchan's.

use serde::Serialize;

use super::{
    kind::{ChannelKind, Layer, Side},
    memory::Cost,
    stretch::Stretch,
};
use crate::{
    args::ChannelsArgs,
    clients::messages::PEER_BODY_BYTES,
    figures::{Percentiles, median},
};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Resident bytes of an idle channel without TLS, ours divided by Nchan's: the worst kind. The goal is at most 0.65.
    pub(crate) ratio: f64,
    /// The same over TLS. The goal is at most 0.28, the first bar 0.50.
    pub(crate) tls_ratio: f64,
    /// Messages a second, ours divided by Nchan's: the worst kind. The goal is at least 1.
    pub(crate) messages_ratio: f64,
    /// p99 at a rate that both sustain, ours divided by Nchan's: the worst kind. The goal is at most 1.2.
    pub(crate) p99_ratio: f64,
    #[serde(flatten)]
    pub(crate) args: ChannelsArgs,
    /// Exchanges that were submitted before each stretch at full speed, not included in its time.
    pub(crate) exchanges_prepared: u64,
    pub(crate) peer_body_bytes: usize,
    pub(crate) memory: Vec<MemoryOf>,
    pub(crate) push: Vec<PushOf>,
    pub(crate) stretches: Vec<Stretch>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MemoryOf {
    pub(crate) layer: Layer,
    #[serde(rename = "held")]
    pub(crate) kind: ChannelKind,
    pub(crate) ours: Cost,
    pub(crate) nchan: Cost,
    pub(crate) ratio: f64,
    /// The ratio of proportional set sizes.
    pub(crate) pss_ratio: f64,
}

/// The rounds of one kind, without disturbed ones, unless all were disturbed. Figures are medians of the rounds,
/// ratios are medians of the rounds' ratios.
#[derive(Debug, Serialize)]
pub(crate) struct PushOf {
    #[serde(rename = "held")]
    pub(crate) kind: ChannelKind,
    pub(crate) ours: Pushed,
    pub(crate) nchan: Pushed,
    pub(crate) messages_ratio: f64,
    pub(crate) p99_ratio: f64,
    pub(crate) paced_at: f64,
    /// How many stretches had more than a tenth of the CPU used by other processes.
    pub(crate) disturbed: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct Pushed {
    pub(crate) per_second: f64,
    pub(crate) server_us_per_message: f64,
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
    pub(crate) foreign_cpu: f64,
    pub(crate) lost: u64,
}

impl Report {
    pub(crate) fn new(args: &ChannelsArgs, costs: &[Cost], stretches: Vec<Stretch>) -> Self {
        let memory: Vec<MemoryOf> = costs.chunks_exact(2).map(MemoryOf::new).collect();
        let push: Vec<PushOf> = [ChannelKind::Sse, ChannelKind::WebSocket]
            .into_iter()
            .filter_map(|kind| PushOf::new(kind, &stretches))
            .collect();
        Self {
            ratio: worst(&memory, Layer::Plain),
            tls_ratio: worst(&memory, Layer::Tls),
            messages_ratio: push.iter().map(|of| of.messages_ratio).reduce(f64::min).unwrap_or_default(),
            p99_ratio: push.iter().map(|of| of.p99_ratio).fold(0.0, f64::max),
            args: args.clone(),
            exchanges_prepared: match args.whole_decisions {
                true => args.timing.seconds * args.prepared_per_second,
                false => args.subscribers,
            },
            peer_body_bytes: PEER_BODY_BYTES,
            memory,
            push,
            stretches,
        }
    }
}

/// The kind of channel whose ratio is largest.
fn worst(memory: &[MemoryOf], layer: Layer) -> f64 {
    memory.iter().filter(|of| of.layer == layer).map(|of| of.ratio).fold(0.0, f64::max)
}

impl MemoryOf {
    /// `pair` is our cost and then Nchan's.
    fn new(pair: &[Cost]) -> Self {
        let (ours, nchan) = (pair[0].clone(), pair[1].clone());
        Self {
            layer: ours.of.layer,
            kind: ours.of.kind,
            ratio: ours.rss_per_channel / nchan.rss_per_channel,
            pss_ratio: ours.pss_per_channel / nchan.pss_per_channel,
            ours,
            nchan,
        }
    }
}

impl PushOf {
    fn new(kind: ChannelKind, stretches: &[Stretch]) -> Option<Self> {
        let of = |paced: bool| -> Pairs<'_> {
            let of = |side| {
                let selected = move |stretch: &&Stretch| {
                    stretch.kind == kind && stretch.side == side && stretch.paced_at.is_some() == paced
                };
                stretches.iter().filter(selected)
            };
            undisturbed(of(Side::Ours).zip(of(Side::Nchan)).collect())
        };
        let ratio = |pairs: &Pairs<'_>, figure: fn(&Stretch) -> f64| {
            median(pairs.iter().map(|(ours, nchan)| figure(ours) / figure(nchan)))
        };
        let (fast, paced) = (of(false), of(true));
        paced.first()?;
        let (our_fast, peers_fast): (Vec<_>, Vec<_>) = fast.iter().copied().unzip();
        let (our_paced, peers_paced): (Vec<_>, Vec<_>) = paced.iter().copied().unzip();
        Some(Self {
            kind,
            messages_ratio: ratio(&fast, |stretch| stretch.per_second),
            p99_ratio: ratio(&paced, |stretch| stretch.latency.p99_ms),
            paced_at: median(our_paced.iter().map(|stretch| stretch.per_second)),
            disturbed: stretches.iter().filter(|stretch| stretch.kind == kind && stretch.disturbed).count(),
            ours: Pushed::new(&our_fast, &our_paced),
            nchan: Pushed::new(&peers_fast, &peers_paced),
        })
    }
}

/// Our stretch and Nchan's of the same round.
type Pairs<'a> = Vec<(&'a Stretch, &'a Stretch)>;

/// The pairs in which neither was disturbed; all pairs if there are none.
fn undisturbed(pairs: Pairs<'_>) -> Pairs<'_> {
    let calm: Pairs<'_> =
        pairs.iter().copied().filter(|(ours, nchan)| !ours.disturbed && !nchan.disturbed).collect();
    if calm.is_empty() { pairs } else { calm }
}

impl Pushed {
    fn new(fast: &[&Stretch], paced: &[&Stretch]) -> Self {
        let of = |stretches: &[&Stretch], figure: fn(&Stretch) -> f64| {
            median(stretches.iter().map(|stretch| figure(stretch)))
        };
        let all: Vec<&Stretch> = fast.iter().chain(paced).copied().collect();
        Self {
            per_second: of(fast, |stretch| stretch.per_second),
            server_us_per_message: of(fast, |stretch| stretch.server_us_per_message),
            latency: Percentiles {
                p50_ms: of(paced, |stretch| stretch.latency.p50_ms),
                p99_ms: of(paced, |stretch| stretch.latency.p99_ms),
            },
            foreign_cpu: of(&all, |stretch| stretch.cpu.foreign),
            lost: all.iter().map(|stretch| stretch.lost).sum(),
        }
    }
}
