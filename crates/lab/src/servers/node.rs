//! `node`: the gateway as `countersign-gateway serve` runs it, with a planted bug around its ports.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args;
use countersign_server::{assemble::Decorators, commands::run_node, config::Config};
use tokio::runtime::Runtime;

use crate::{Failure, bugs::Bug};

/// Arguments of `node`, those of `countersign-gateway serve` among them.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The configuration, as for `countersign-gateway serve`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to listen, instead of where the configuration says.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The data folder, instead of the one in the configuration.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Run with this planted bug; without one it is `countersign-gateway serve`.
    #[arg(long, value_name = "NAME")]
    bug: Option<Bug>,
}

/// Serves until it is signalled.
pub(crate) fn run(args: NodeArgs) -> Result<(), Failure> {
    let mut config = Config::read(&args.config)?;
    config.listen = args.listen.unwrap_or(config.listen);
    config.data = args.data.unwrap_or(config.data);
    let decorators = args.bug.map_or_else(Decorators::default, |bug| Decorators {
        store: Box::new(move |store| bug.store(store, &Arc::default())),
        doorbell: Box::new(move |doorbell| bug.doorbell(doorbell)),
    });
    Ok(Runtime::new()?.block_on(run_node(config, decorators))?)
}
