//! The report of `bench reconnect`.

use std::fmt;

use serde::Serialize;

use crate::{
    args::ReconnectArgs,
    figures::{Ratio, percent},
    report,
    rounds::Rounds,
    table::headed,
};

pub(super) const PLAIN: &str = "plain";
pub(super) const TLS: &str = "TLS";

/// What became of the channels when the certificate was replaced.
#[derive(Debug, Serialize)]
pub(crate) struct Renewal {
    pub(crate) channels: u64,
    /// Channels that ended.
    pub(crate) ended: u64,
    /// Channels on which a message arrived afterwards.
    pub(crate) delivered: u64,
    /// From SIGHUP to the first handshake with the new certificate.
    pub(crate) served_after_ms: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Time until all are back, with TLS divided by that without.
    #[serde(flatten)]
    pub(crate) ratio: Ratio,
    #[serde(flatten)]
    pub(crate) args: ReconnectArgs,
    pub(crate) renewal: Renewal,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &ReconnectArgs, renewal: Renewal, rounds: Rounds) -> Self {
        Self {
            ratio: rounds.ratio(TLS, PLAIN, |stretch| stretch.seconds),
            args: args.clone(),
            renewal,
            rounds,
        }
    }
}

impl fmt::Display for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channels, ended, delivered, served_after_ms } = self;
        write!(
            f,
            "new certificate under {channels} channels with TLS: served after {served_after_ms:.0} ms, {ended} channels ended, \
             a message arrived on {delivered}"
        )
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let mut lines = vec![
            self.renewal.to_string(),
            format!(
                "\nThe gateway is killed and started again under {} channels; medians of {} rounds",
                self.args.channels, self.rounds.counted
            ),
        ];
        let rows = self.rounds.arms.iter().map(|summary| {
            let figure = |name: &str| summary.figures.get(name).copied().unwrap_or_default();
            let cores = |name: &str| summary.cores.get(name).copied().unwrap_or_default();
            [
                summary.arm.to_owned(),
                format!("{:.2}", self.rounds.median(summary.arm, |stretch| stretch.seconds)),
                format!("{:.2}", summary.latency.p50_ms / 1e3),
                format!("{:.2}", summary.latency.p99_ms / 1e3),
                format!("{:.2}", figure("listening after s")),
                format!("{:.0}", figure("failed attempts")),
                format!("{:.2}", figure("CPU ms of the gateway for each")),
                format!("{:.2}", figure("CPU ms of the client for each")),
                format!("{:.2}", cores("gateway")),
                format!("{:.2}", cores("client")),
                percent(summary.foreign_cpu),
            ]
        });
        lines.extend(headed(
            [
                "",
                "all back s",
                "p50 s",
                "p99 s",
                "listens s",
                "failed",
                "gateway ms",
                "client ms",
                "gateway cores",
                "client cores",
                "foreign",
            ],
            rows,
            1,
        ));
        lines.push(format!(
            "Times are since the kill. ms: CPU time for each connection; cores: processors that were busy on average since the \
             gateway listened again.\nTLS takes {:.2} times as long as plain TCP.",
            self.ratio.median
        ));
        lines.join("\n")
    }
}
