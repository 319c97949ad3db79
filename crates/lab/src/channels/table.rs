//! The report of `bench channels` as tables.

use super::report::{MemoryOf, PushOf, Pushed, Report};
use crate::{args::ChannelsArgs, figures::percent, report, table::headed};

impl report::Report for Report {
    fn table(&self) -> String {
        let ChannelsArgs { timing, channels, subscribers, whole_decisions, .. } = &self.args;
        let mut lines = Vec::new();
        if !self.memory.is_empty() {
            lines.push(format!("Resident bytes of one of {channels} idle channels"));
            lines.extend(memory(&self.memory));
            lines.push(format!(
                "worst ratios: plain {:.2} (goal: at most 0.65), TLS {:.2} (goal: at most 0.28, first bar 0.50)\n",
                self.ratio, self.tls_ratio
            ));
        }
        if !self.push.is_empty() {
            lines.push(format!(
                "{}: {subscribers} subscribers, 8 publishers, {} rounds of {} s; ours on a store in memory",
                if *whole_decisions { "Complete decisions" } else { "The push path alone" },
                timing.rounds,
                timing.seconds
            ));
            lines.extend(push(&self.push));
            lines.push(format!(
                "worst ratios: messages a second {:.2} (goal: at least 1.0), p99 {:.2} (goal: at most 1.2)\n\
                 Before each stretch at full speed, {} exchanges were submitted, not included in its time. Nchan's \
                 messages have {} B, ours 328.\nLatencies in ms, CPU of the server in µs per message at full speed; \
                 disturbed: stretches with more than 10 % foreign CPU, of {};\ntheir rounds do not count unless all are.",
                self.messages_ratio,
                self.p99_ratio,
                self.exchanges_prepared,
                self.peer_body_bytes,
                timing.rounds * 4,
            ));
        }
        lines.join("\n")
    }
}

fn memory(kinds: &[MemoryOf]) -> Vec<String> {
    let head = ["", "", "ours", "Nchan", "ratio", "ours PSS", "Nchan PSS", "ratio PSS"];
    let rows = kinds.iter().map(|of| {
        let bytes = |figure: f64| format!("{figure:.0}");
        [
            of.layer.name().to_owned(),
            of.kind.name().to_owned(),
            bytes(of.ours.rss_per_channel),
            bytes(of.nchan.rss_per_channel),
            format!("{:.2}", of.ratio),
            bytes(of.ours.pss_per_channel),
            bytes(of.nchan.pss_per_channel),
            format!("{:.2}", of.pss_ratio),
        ]
    });
    headed(head, rows, 2)
}

fn push(kinds: &[PushOf]) -> Vec<String> {
    #[rustfmt::skip]
    let head = [
        "", "", "messages/s", "ratio", "CPU", "paced at", "p50", "p99", "ratio", "foreign", "lost", "disturbed",
    ];
    let mut rows = Vec::new();
    for of in kinds {
        let row = |who: &str, pushed: &Pushed, ratios: [String; 2], disturbed: String| {
            let [messages_ratio, p99_ratio] = ratios;
            [
                of.kind.name().to_owned(),
                who.to_owned(),
                format!("{:.0}", pushed.per_second),
                messages_ratio,
                format!("{:.0}", pushed.server_us_per_message),
                format!("{:.0}", of.paced_at),
                format!("{:.2}", pushed.latency.p50_ms),
                format!("{:.2}", pushed.latency.p99_ms),
                p99_ratio,
                percent(pushed.foreign_cpu),
                pushed.lost.to_string(),
                disturbed,
            ]
        };
        let ratios = [format!("{:.2}", of.messages_ratio), format!("{:.2}", of.p99_ratio)];
        rows.push(row("ours", &of.ours, ratios, of.disturbed.to_string()));
        rows.push(row("Nchan", &of.nchan, Default::default(), String::new()));
    }
    headed(head, rows, 2)
}
