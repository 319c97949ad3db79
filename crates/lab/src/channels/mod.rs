//! Held channels, ours compared with Nchan's: memory of an idle channel, and throughput and latency of messages.

mod kind;
mod memory;
mod push;
mod report;
mod stretch;
mod table;

use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::ChannelsArgs,
    report_progress,
    servers::{gateway, nchan::Nchan},
};

use report::Report;

/// Runs `bench channels`: memory first, then messages.
pub(crate) fn run(args: &ChannelsArgs) -> Result<Report, Failure> {
    let gateway = gateway::program(args.gateway.path())?;
    Nchan::check_installed()?;
    let runtime = Runtime::new()?;
    let memory = match args.only_push {
        true => Vec::new(),
        false => memory::measure(args, &gateway, &runtime)?,
    };
    let push = match args.only_memory {
        true => Vec::new(),
        false => push::measure(args, &runtime)?,
    };
    report_progress("done");
    Ok(Report::new(args, &memory, push))
}
