//! What an hour of an agent costs: the messages that each host was recorded with go through real hooks, and a person answers.
//!
//! The hour is played as fast as it goes. What depends on time is when hooks look for what was said, so that time is set back.

mod link;
mod people;
mod place;
mod play;
mod script;

use std::time::Duration;

use serde::Serialize;
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::{
    Failure,
    args::HourArgs,
    cpu::to_f64,
    report, report_progress,
    servers::counted::{Cost, Counted},
    stopwatch::Stopwatch,
    table::headed,
};
use link::Link;
use people::People;
use play::{Keeper, Player, Programs};
use script::HOSTS;

const ALONE: &str = "hooks alone";
const KEPT: &str = "with a keeper";

/// How far the clock of the store goes ahead, to see what is kept: past the retention of sessions, and past that of exchanges.
const AHEAD_DAYS: [u32; 2] = [8, 31];

/// By then the sweeper must have deleted what is due.
const SWEPT_WITHIN: Duration = Duration::from_mins(1);

const OVERDUE: &str = "SELECT count(*) FROM due WHERE at <= gateway_now()";

const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE relkind = 'r' \
                    AND relnamespace = 'public'::regnamespace AND relname <> 'noted'";

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Connections of an hour with a keeper, divided by those without.
    ratio: f64,
    #[serde(flatten)]
    args: HourArgs,
    /// How many of what an hour has.
    hour: script::Hour,
    arms: Vec<Row>,
}

/// The mean cost of an hour of one agent.
#[derive(Debug, Serialize)]
struct Row {
    arm: &'static str,
    connections: f64,
    bytes_up: f64,
    bytes_down: f64,
    requests: f64,
    reads: f64,
    commits: f64,
    transactions: f64,
    log_bytes: f64,
    gateway_ms: f64,
    postgres_ms: f64,
    /// What is on the disk afterwards, compacted: at once, and when what is not kept so long is deleted.
    stored_bytes: [f64; 3],
}

pub(crate) fn run(args: &HourArgs) -> Result<Report, Failure> {
    let programs = Programs::find(args.programs.as_deref())?;
    let runtime = Runtime::new()?;
    let mut arms = Vec::new();
    for arm in [ALONE, KEPT] {
        arms.push(runtime.block_on(measure(args, &programs, arm))?);
    }
    Ok(Report {
        ratio: arms[1].connections / arms[0].connections,
        args: args.clone(),
        hour: script::Hour::of(args.turns, args.tools),
        arms,
    })
}

async fn measure(args: &HourArgs, programs: &Programs, arm: &'static str) -> Result<Row, Failure> {
    let counted = Counted::start(&args.counting).await?;
    let link = Link::start(counted.gateway.address).await?;
    let mut people = People::new(&counted.gateway, link.address)?;
    let mut players = Vec::new();
    for script in HOSTS.iter().filter(|script| args.host.as_ref().is_none_or(|host| host == script.host)) {
        let place = people.add(script.host).await?;
        let keeper = (arm == KEPT).then(|| Keeper::start(programs, &place.home)).transpose()?;
        players.push(Player { programs: programs.clone(), script, place, keeper });
    }
    let answering = people.answer();
    let hosts = to_f64(players.len() as u64);
    let idle = counted.idle().await?;
    let empty = size(&counted).await?;
    let (before, counting) = (link.passed(), counted.count().await?);
    let (turns, tools) = (args.turns, args.tools);
    let mut playing = JoinSet::new();
    for player in players {
        playing.spawn_blocking(move || {
            player.play(turns, tools).map(|()| player).map_err(|error| error.to_string())
        });
    }
    let mut players = Vec::new();
    while let Some(played) = playing.join_next().await {
        players.push(played??);
    }
    let cost = counting.end().await?.of_each(idle, hosts);
    let passed = link.passed();
    // Keepers hold their connections until here.
    drop(players);
    let answered = answering.end().await;
    let asked = to_f64(u64::from(script::Hour::of(turns, tools).asks)) * hosts;
    if to_f64(answered) < asked {
        return Err(format!("{answered} requests were answered, where {asked} were to be asked").into());
    }
    let more = |figure: fn(&link::Passed) -> u64| to_f64(figure(&passed) - figure(&before)) / hosts;
    let stored = stored(counted, empty, hosts).await?;
    let arm = Row::new(arm, cost, stored, [more(|it| it.connections), more(|it| it.up), more(|it| it.down)]);
    report_progress(&arm.cells().join("  "));
    Ok(arm)
}

impl Row {
    fn new(arm: &'static str, cost: Cost, stored_bytes: [f64; 3], [connections, up, down]: [f64; 3]) -> Self {
        Self {
            arm,
            connections,
            bytes_up: up,
            bytes_down: down,
            requests: cost.requests,
            reads: cost.reads,
            commits: cost.commits,
            transactions: cost.transactions,
            log_bytes: cost.log_bytes,
            gateway_ms: cost.gateway * 1e3,
            postgres_ms: cost.postgres * 1e3,
            stored_bytes,
        }
    }

    fn cells(&self) -> [String; 13] {
        let whole = |figure: f64| format!("{figure:.0}");
        let [now, week, month] = self.stored_bytes;
        [
            self.arm.to_owned(),
            whole(self.connections),
            whole(self.requests),
            whole(self.reads),
            whole(self.commits),
            whole(self.transactions),
            whole(self.gateway_ms),
            whole(self.postgres_ms),
            whole(self.bytes_up),
            whole(self.bytes_down),
            whole(self.log_bytes),
            format!("{now:.0}, {week:.0}"),
            whole(month),
        ]
    }
}

/// What an hour leaves on the disk: at once, and when the store's clock is ahead.
async fn stored(mut counted: Counted, empty: i64, hosts: f64) -> Result<[f64; 3], Failure> {
    let mut sizes = [size(&counted).await?, 0, 0];
    for (place, days) in AHEAD_DAYS.into_iter().enumerate() {
        counted
            .execute(&format!(
                "CREATE OR REPLACE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE AS \
                 $$ SELECT (extract(epoch FROM clock_timestamp() + interval '{days} days') * 1000000)::bigint $$"
            ))
            .await?;
        counted = counted.again()?;
        let watch = Stopwatch::start();
        while counted.number(OVERDUE).await? > 0 {
            if watch.elapsed() > SWEPT_WITHIN {
                return Err("what is due is not swept".into());
            }
            sleep(Duration::from_millis(200)).await;
        }
        sizes[place + 1] = size(&counted).await?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a run stores far less than 2^52 bytes")]
    Ok(sizes.map(|size| (size - empty) as f64 / hosts))
}

async fn size(counted: &Counted) -> Result<i64, Failure> {
    counted.execute("VACUUM FULL").await?;
    counted.number(SIZE).await
}

impl report::Report for Report {
    fn table(&self) -> String {
        let head = [
            "of an hour",
            "connections",
            "requests",
            "reads",
            "commits",
            "transactions",
            "gateway ms",
            "postgres ms",
            "B up",
            "B down",
            "log B",
            "stored B, after 8 days",
            "after 31",
        ];
        let mut lines = vec![self.hour.to_string(), String::new()];
        lines.extend(headed(head, self.arms.iter().map(Row::cells), 1));
        lines.push(format!("\nconnections with a keeper beside without: {:.2}", self.ratio));
        lines.join("\n")
    }
}
