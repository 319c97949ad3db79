//! Measures what the documents claim, so that every published figure has a command that reproduces it.
//!
//! | to find | look in |
//! |---|---|
//! | what all benches share: arguments, rounds and arms, figures, tables, reports | `args.rs`, `rounds.rs`, `figures.rs`, `table.rs`, `report.rs` |
//! | time, whether the machine was idle, progress | `stopwatch.rs`, `cpu.rs`, `progress.rs` |
//! | commits with and without batching | `commits/` |
//! | what a commit contains, and how commits are run concurrently | `workload.rs`, `load.rs` |
//! | expiries compared with decisions, on one node and on two | `expiries/` |
//! | held channels compared with Nchan's | `channels/` |
//! | what a client costs that connects, is there, and leaves | `connects/` |
//! | what an hour of an agent costs, through real hooks | `hour/` |
//! | what a push to a phone costs | `pushes/` |
//! | what a population of developers needs, computed from what was measured | `plan/` |
//! | held channels whose gateway gets a new certificate, or is killed | `reconnect/` |
//! | from a decision to its delivery | `latency/` |
//! | submissions over HTTP compared with bare INSERTs | `submit/` |
//! | whole exchanges compared with their bare statements | `exchange/` |
//! | a quiet tenant beside a loud one | `neighbours.rs` |
//! | large submissions compared with bare inserts | `payload.rs` |
//! | from a decision on one node to its delivery by another | `nodes/` |
//! | many nodes under mixed load | `cluster/` |
//! | what the client library costs | `client_costs/` |
//! | faults on purpose, and the promises that must hold | `faults/` |
//! | the servers, their certificates and their clients | `servers/`, `tls.rs`, `clients/` |
//! | nodes on a simulated clock, with faults | `simulate/` |
//! | bugs that must be found | `bugs/` |
//! | the push path without a disk | `memory_store.rs`, `servers/in_memory.rs` |

mod args;
mod bugs;
mod channels;
mod client_costs;
mod clients;
mod cluster;
mod commits;
mod connects;
mod cpu;
mod exchange;
mod expiries;
mod faults;
mod figures;
mod hour;
mod latency;
mod load;
mod memory_mailboxes;
mod memory_store;
mod neighbours;
mod nodes;
mod payload;
mod plan;
mod progress;
mod pushes;
mod reconnect;
mod report;
mod rounds;
mod scrape;
mod servers;
mod simulate;
mod stopwatch;
mod submit;
mod table;
mod tls;
mod workload;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use args::{
    ChannelsArgs, ClientArgs, ClusterArgs, CommitsArgs, ConnectsArgs, ExpiriesArgs, HourArgs, LatencyArgs,
    LoadArgs, NeighboursArgs, NodesArgs, PushesArgs, ReconnectArgs, SubmitArgs,
};
pub(crate) use progress::{Failure, report_progress};

/// Measures what Countersign's documents claim.
///
/// Machines are noisy: compare a figure only with its baseline of the same run, and only if little else was
/// running. Build with --release.
#[derive(Debug, Parser)]
#[command(name = "countersign-lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure one property and its baseline.
    ///
    ///
    Bench {
        /// Print one JSON object with all raw figures instead of tables and plots. What its `ratio` is, each bench says.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        bench: Bench,
    },
    /// Do faults to a cluster under load, and check that every promise is kept.
    ///
    /// Three nodes on a private PostgreSQL with a synchronous standby (or on three under Patroni) and a private NATS. Clients of
    /// five tenants work through the client library, REST, SSE and WebSockets. Every 2 to 5 s there is a fault: nodes, PostgreSQL
    /// and NATS are killed or stopped, the standby takes over, connections are cut, slowed or half open, a node's clock is wrong,
    /// a disk is full. Then all is healed, and every exchange is read on every node. The history of what clients did and saw is
    /// checked. Exit code 1: a promise was broken; the history, a timeline and the logs are kept. Progress goes to stderr, the
    /// result to stdout.
    Faults(faults::FaultsArgs),
    /// Several nodes on one store in memory, with faults, on a simulated clock.
    ///
    /// Rings are lost, late, doubled and out of order; the store answers late, refuses, or does not say what became of a
    /// commit; nodes stop, end and start again; a standby takes over and lacks what was not confirmed. In the end all is
    /// quiet, and what clients were told is compared with what is stored. Everything depends on the seed alone. Fails with
    /// the steps of the first seed that violates an invariant.
    Simulate(simulate::SimulateArgs),
    /// What so many developers need, computed from what was measured (docs/scaling.md).
    ///
    /// Prints tables in Markdown: the load at the busiest time, what it costs, and how it is divided. The figures of one of each are in
    /// crates/lab/units.toml, with the commands that measure them, beside the assumptions.
    Plan(plan::PlanArgs),
    /// A gateway for `bench channels` with its store in memory only.
    #[command(hide = true)]
    ServeInMemory,
    /// The gateway of `countersign-gateway serve`, with a planted bug if one is named.
    Node(servers::node::NodeArgs),
    /// The gateway's own commands, so that tests need no other program.
    #[command(hide = true, subcommand)]
    Gateway(countersign_server::commands::Command),
    /// An enforcer for `bench client` that waits until it is killed.
    #[command(hide = true)]
    HoldEnforcer {
        /// The folder of its profile.
        profile: PathBuf,
    },
    /// An HTTP client for `bench client` that waits until it is killed.
    #[command(hide = true)]
    HoldHttpClient {
        /// The gateway that it calls once.
        url: String,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Durable commits a second with and without batching, on both stores.
    ///
    /// Alternates in one run: SQLite on, SQLite off, PostgreSQL on, PostgreSQL off, PostgreSQL off with
    /// eight writers, first submitting, then deciding what was submitted; and all of that again, as many
    /// times as --rounds says. The data is new, in a temporary folder; PostgreSQL is a private server from
    /// Debian's package, with fsync on.
    ///
    /// A rate is the median of its rounds, a ratio the median of the rounds' ratios; p50 and p99 are over
    /// the commits of all rounds. `foreign` is the fraction of the machine's CPU that other processes
    /// used: above about 10 %, repeat the run.
    ///
    /// The `ratio` of its JSON is PostgreSQL's submissions, on divided by off, with as many writers.
    Commits(CommitsArgs),
    /// Expiries a second on one node and on two, compared with decisions.
    ///
    /// On a private PostgreSQL with a synchronous standby, on the same disk. Alternates in one run: decisions (as in `bench
    /// commits`), then --exchanges that have lapsed in --tenants are swept by one node, decisions again, then as many are
    /// swept by two nodes; and all of that again, as many times as --rounds says. Each sweep must expire every exchange
    /// exactly once. At the end one tenant has --exchanges that lapsed at 1,000 a second, and another one has 200 records to
    /// delete that are due after all of them.
    ///
    /// The `ratio` of its JSON is expiries a second on one node divided by decisions a second.
    Expiries(ExpiriesArgs),
    /// Held channels compared with those of Nchan: memory while idle, messages a second, latency.
    ///
    /// Alternates in one run, each measurement on a freshly started server. Memory: --channels idle channels of each
    /// kind, plain and over TLS 1.3, one identity each; resident bytes after minus before. Messages: from the POST of a decision to
    /// its arrival on the enforcer's channel, with the gateway's store in memory; for Nchan from the POST of a
    /// message to its arrival at the subscriber. First as fast as eight publishers can, then at --rate.
    ///
    /// Needs Debian's packages nginx and libnginx-mod-nchan; a private one is started on the loopback. Figures
    /// are medians of the rounds.
    ///
    /// The `ratio` of its JSON is our memory of an idle channel divided by Nchan's, for the channel kind where that is
    /// worst; its `tls_ratio` is the same over TLS.
    Channels(ChannelsArgs),
    /// Held channels whose gateway gets a new certificate, and whose gateway is killed.
    ///
    /// First, --channels event streams over TLS: the certificate is replaced, the gateway gets SIGHUP, new connections must be
    /// shown the new one, and a message must arrive on every channel, none of which may have ended. Then, alternating with and
    /// without TLS: the gateway is killed and started again on the same port, and its clients come back as those of the client
    /// library do: after 1 to 1.5 s, and after twice as long each time that fails; a connection that takes 5 s has failed.
    ///
    /// The `ratio` of its JSON is the time until all are back with TLS divided by that without.
    Reconnect(ReconnectArgs),
    /// What a client costs that connects, is there, and leaves.
    ///
    /// On a private PostgreSQL, over plain HTTP, TLS, and TLS that resumes a session: --clients WebSockets of as many enforcers are
    /// opened, held, and closed. Processor time is that of the gateway and of PostgreSQL; reads and commits are calls of the
    /// store, as the gateway counts them. What an idle node does is taken off.
    ///
    /// The `ratio` of its JSON is the gateway's processor time for a connect with TLS divided by that without.
    Connects(ConnectsArgs),
    /// What a push to a phone costs the gateway, beside the request that it is about.
    ///
    /// On a private PostgreSQL: requests to people without a subscription of Web Push, then to as many with one. The vendor's
    /// service is on this machine and speaks plain HTTP, so its TLS is not in the figures.
    ///
    /// The `ratio` of its JSON is processor time for a request with a push divided by that for one without.
    Pushes(PushesArgs),
    /// What an hour of an agent costs: requests, commits, bytes, processors, and what is stored.
    ///
    /// One agent on each of the five hosts, at the same time, on machines of their own. The messages are those that the hosts were
    /// recorded with; each is given to a hook as the host does it, first to hooks that decide themselves, then to
    /// hooks that ask a keeper. A person approves what is asked. The agents reach the gateway over plain HTTP, through a
    /// link that counts connections and bytes. What an idle node does is taken off, and everything is divided by the number of agents.
    ///
    /// The `ratio` of its JSON is connections of an hour with a keeper divided by those without.
    Hour(HourArgs),
    /// From just before a decision is posted to its arrival at the enforcer's WebSocket, on one node.
    ///
    /// Alternates in one run with the minimum possible: one bare durable commit of the same kind on the same store,
    /// and one round trip over the loopback with the same number of bytes. Both at --rate exchanges a second,
    /// each submitted first.
    ///
    /// The `ratio` of its JSON is our p99 divided by that of the baseline.
    Latency(LatencyArgs),
    /// What the client library costs: seal, open, sign, verify, and the memory of an idle enforcer.
    ///
    /// Each operation alternates with the bare crates that it is made of (JSON, SHA-256, AES-GCM, HPKE, Ed25519) on
    /// the same payload, without our checks, as many times as --rounds says; with payloads of 4 KB and of nearly 2 MB. Memory:
    /// a process that has opened a profile and a journal and listens on a WebSocket, beside one with a bare HTTP client;
    /// resident bytes after 2 s.
    ///
    /// The `ratio` of its JSON is the largest of the operations' times, ours divided by bare.
    Client(ClientArgs),
    /// Submissions a second over HTTP, compared with bare INSERTs of the same bytes.
    ///
    /// Alternates in one run, on one private PostgreSQL with fsync on: --in-flight submissions to a gateway, with JSON and
    /// authentication; pgbench with one INSERT to a transaction and prepared statements, with 8 clients and with 64; and
    /// a bare driver with two writers that batch the same rows, which is what the engine can do at best. A round in which other
    /// processes used more than 10 % of the CPU is measured again.
    ///
    /// The `ratio` of its JSON is our submissions a second divided by those of the better bare INSERT.
    Submit(SubmitArgs),
    /// Whole exchanges a second, compared with their bare statements.
    ///
    /// Alternates in one run, on one private PostgreSQL with fsync on: exchanges through a gateway (submitted over HTTP,
    /// pushed to the approver's WebSocket, decided over HTTP, delivered to the enforcer's WebSocket, acknowledged on
    /// it), and pgbench with the statements of one exchange, each in a transaction of its own, with 8 clients and with 64; and
    /// with one transaction for each of submission, decision and acknowledgement.
    ///
    /// The `ratio` of its JSON is our exchanges a second divided by those of the bare statements one by one, at the better
    /// number of clients.
    Exchange(LoadArgs),
    /// A quiet tenant alone, and beside one at ten times its share through one mailbox.
    ///
    /// On a private PostgreSQL with fsync on. What the gateway carries is measured first; a share is a tenth of it. The quiet
    /// tenant submits at that rate, alternately alone and beside a tenant with --loud-in-flight submissions to one approver.
    /// Its latency counts from when a submission was due.
    ///
    /// The `ratio` of its JSON is the quiet tenant's submissions a second beside the loud one divided by those alone, its
    /// `ratio_of_p99` the same of its p99.
    Neighbours(NeighboursArgs),
    /// Large submissions, compared with bare inserts of as many bytes, and the memory of one in flight.
    ///
    /// Alternates in one run, on one private PostgreSQL with fsync on: --in-flight submissions of --bytes to a gateway, and as
    /// many inserts of as many bytes in binary form. The gateway is a new one each time; its memory is the largest resident
    /// set minus that before the first large submission.
    ///
    /// The `ratio` of its JSON is our bytes a second divided by those of the bare engine.
    #[command(mut_arg("bytes", args::default("2097152")))]
    #[command(mut_arg("in_flight", args::default("8")))]
    Payload(LoadArgs),
    /// Many nodes on one PostgreSQL under mixed load: nothing is lost, and nothing fails but with 503 and `Retry-After`.
    ///
    /// --nodes processes on one private PostgreSQL with its default settings. Each exchange is submitted on one node and
    /// decided (or withdrawn, or left pending) on another; its enforcer has a WebSocket on a third. In the end every accepted
    /// submission must have the right status on a fourth, and every accepted decision must have arrived on the WebSocket, or be
    /// returned by a wait.
    ///
    /// The `ratio` of its JSON is the fraction of what was accepted that was found in the end.
    Cluster(ClusterArgs),
    /// From just before a decision is posted to one node to its arrival at the enforcer's WebSocket on another.
    ///
    /// Two nodes on a private PostgreSQL and a private NATS. Alternates in one run with the minimum possible: one bare durable
    /// commit of the same kind, and one request with its reply over NATS, with as many bytes. Both at each --rate. In the end
    /// NATS is stopped, and everything must still arrive.
    ///
    /// The `ratio` of its JSON is our p99 divided by that of the baseline, at the first rate.
    Nodes(NodesArgs),
}

fn main() -> Result<ExitCode, Failure> {
    let (text, is_kept) = match Cli::parse().command {
        Command::Bench { bench, json } => (run_bench(bench, json)?, true),
        Command::Faults(args) => {
            let report = faults::run(&args)?;
            (report::text(&report, args.json)?, !report.is_bad())
        }
        Command::Simulate(args) => simulate::run(&args)?,
        Command::Plan(args) => (plan::run(&args)?, true),
        Command::ServeInMemory => return done(servers::in_memory::run()),
        Command::Node(args) => return done(servers::node::run(args)),
        Command::Gateway(command) => return done(servers::gateway::run(command)),
        Command::HoldEnforcer { profile } => return done(client_costs::idle::hold_enforcer(&profile)),
        Command::HoldHttpClient { url } => return done(client_costs::idle::hold_http_client(&url)),
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The exit code of a process that prints no result.
fn done(ended: Result<(), Failure>) -> Result<ExitCode, Failure> {
    ended.map(|()| ExitCode::SUCCESS)
}

/// The result of a measurement, as text.
fn run_bench(bench: Bench, json: bool) -> Result<String, Failure> {
    match bench {
        Bench::Commits(args) => report::text(&commits::run(&args)?, json),
        Bench::Expiries(args) => report::text(&expiries::run(&args)?, json),
        Bench::Channels(args) => report::text(&channels::run(&args)?, json),
        Bench::Reconnect(args) => report::text(&reconnect::run(&args)?, json),
        Bench::Connects(args) => report::text(&connects::run(&args)?, json),
        Bench::Hour(args) => report::text(&hour::run(&args)?, json),
        Bench::Pushes(args) => report::text(&pushes::run(&args)?, json),
        Bench::Latency(args) => report::text(&latency::run(&args)?, json),
        Bench::Client(args) => report::text(&client_costs::run(&args)?, json),
        Bench::Submit(args) => report::text(&submit::run(&args)?, json),
        Bench::Exchange(args) => report::text(&exchange::run(&args)?, json),
        Bench::Neighbours(args) => report::text(&neighbours::run(&args)?, json),
        Bench::Payload(args) => report::text(&payload::run(&args)?, json),
        Bench::Cluster(args) => report::text(&cluster::run(&args)?, json),
        Bench::Nodes(args) => report::text(&nodes::run(&args)?, json),
    }
}
