//! Many nodes on one PostgreSQL with its default number of connections, under mixed load: submitted on one node, decided on
//! another, delivered by a third.

mod enforcers;
mod load;
mod report;

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::{Failure, args::ClusterArgs, cpu::Meter, report_progress, servers::on_postgres::OnPostgres};

use enforcers::Enforcers;
use load::Load;
use report::Report;

/// How long to wait for the last deliveries. Without a doorbell between nodes they are up to 5 s late.
const LAST_DELIVERIES: Duration = Duration::from_secs(20);

pub(crate) fn run(args: &ClusterArgs) -> Result<Report, Failure> {
    let on = OnPostgres::start(&args.gateway)?;
    let mut nodes = vec![on.gateway()?];
    while (nodes.len() as u64) < args.nodes {
        nodes.push(nodes[0].another_node(&on.program, on.folder.path())?);
    }
    report_progress(&format!("{} nodes are ready", nodes.len()));
    let servers = on.servers(&nodes);
    Runtime::new()?.block_on(async {
        let enforcers = Enforcers::open(&nodes, args.enforcers).await?;
        let load = Load::new(args, &nodes);
        let meter = Meter::start(&servers)?;
        load.run(Duration::from_secs(args.seconds)).await?;
        let metered = meter.stop()?;
        let (accepted, errors) = load.finish();
        enforcers.wait_for(&accepted, LAST_DELIVERIES).await;
        let delivered = enforcers.close().await;
        let checked = report::check(&nodes, &accepted, &delivered).await?;
        Ok(Report::new(args, metered, &accepted, errors, &delivered, checked))
    })
}
