//! `tenants`.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign_core::{Gateway, metrics::WriterMetrics, store::Shard, use_cases::tenants::TenantSummary};
use countersign_wire::{failure::Failure, id::TenantId};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::output;
use crate::{
    assemble::{self, MoveError, Moved, Progress},
    config::Config,
};

/// List, suspend, erase and move tenants, directly in the store.
#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// List all tenants, with what they store.
    List(Place),
    /// Stop a tenant: none of its keys works until `resume`. Nothing is deleted. Running gateways notice within five seconds.
    Suspend(One),
    /// Let a suspended tenant go on.
    Resume(One),
    /// Move a tenant to another shard. Its clients get 503 meanwhile, for 11 seconds at least; nobody else notices. The same
    /// command goes on with a move that was interrupted; one to the shard that it came from takes it back.
    Move(Move),
    /// Delete everything of a tenant: keys, requests, answers, its audit log. Can't be undone.
    Erase(Erase),
}

#[derive(Debug, Args)]
pub struct Place {
    /// The configuration file of the gateway.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    place: Place,
    /// The tenant, as `list` shows it.
    #[arg(long)]
    tenant: TenantId,
}

#[derive(Debug, Args)]
pub struct Move {
    #[command(flatten)]
    one: One,
    /// The name of the shard, as in the configuration.
    #[arg(long, value_name = "SHARD")]
    to: String,
}

#[derive(Debug, Args)]
pub struct Erase {
    #[command(flatten)]
    one: One,
    /// The tenant once more, to confirm.
    #[arg(long, value_name = "TENANT")]
    confirm: TenantId,
}

/// Tenants that are read at once.
const PAGE: u32 = 200;

impl Tenants {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List(place) => list(&place.config()?).await,
            Self::Move(Move { one: One { place, tenant }, to }) => {
                move_tenant(&place.config()?, &tenant, &to).await
            }
            Self::Suspend(One { place, tenant }) => {
                let gateway = place.gateway().await?;
                let suspended = known(gateway.suspend_tenant(&tenant).await, &tenant)?;
                output::say(&format!("{tenant} is suspended since {}", suspended.since));
                Ok(())
            }
            Self::Resume(One { place, tenant }) => {
                let gateway = place.gateway().await?;
                match gateway.resume_tenant(&tenant).await {
                    Err(error) if error.failure() == Failure::State => {
                        anyhow::bail!("{tenant} is being erased, which can't be undone")
                    }
                    resumed => known(resumed, &tenant)?,
                }
                output::say(&format!("{tenant} may be used again"));
                Ok(())
            }
            Self::Erase(Erase { one: One { place, tenant }, confirm }) => {
                anyhow::ensure!(confirm == tenant, "--confirm names {confirm}, and --tenant names {tenant}");
                let gateway = place.gateway().await?;
                let suspended = known(gateway.erase_tenant(&tenant).await, &tenant)?;
                let at = suspended.erased_at.unwrap_or(suspended.since);
                output::say(&format!(
                    "{tenant} is suspended; a running gateway deletes everything of it from {at} on. \
                     `tenants list` shows it until then."
                ));
                Ok(())
            }
        }
    }
}

impl Place {
    fn config(&self) -> anyhow::Result<Config> {
        Config::read(&self.config)
    }

    async fn gateway(&self) -> anyhow::Result<Gateway> {
        assemble::gateway(&self.config()?).await
    }
}

fn known<T>(result: Result<T, countersign_core::Error>, tenant: &TenantId) -> anyhow::Result<T> {
    match result {
        Err(error) if error.failure() == Failure::NotFound => {
            anyhow::bail!("there is no tenant {tenant}; `tenants list` shows those that there are")
        }
        result => result.context("nothing may have changed; try again"),
    }
}

/// How often it is said how far a move is.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

async fn move_tenant(config: &Config, tenant: &TenantId, to: &str) -> anyhow::Result<()> {
    let names = || config.shard.iter().map(|shard| shard.name.as_str()).collect::<Vec<_>>().join(", ");
    anyhow::ensure!(
        !config.shard.is_empty(),
        "the configuration has no [[shard]]: all tenants are in one database"
    );
    let number = config.shard.iter().position(|shard| shard.name == to);
    let number = number.and_then(|number| u16::try_from(number).ok());
    let number = number.with_context(|| format!("there is no shard {to}; there are {}", names()))?;
    let store = assemble::sharded(config, &WriterMetrics::default()).await?;
    let nodes = assemble::gateway_on(config, store.clone()).nodes_without(Shard(number), tenant).await;
    let nodes = nodes.with_context(|| {
        format!("the shard of {tenant} or {to} does not say which nodes use it; {tenant} was not moved")
    })?;
    let nodes: Vec<String> = nodes.into_iter().map(|node| node.0).collect();
    anyhow::ensure!(
        nodes.is_empty(),
        "these nodes do not use {to}, and would lose {tenant}: {}. Give all of them the same list of shards, restart those that \
         were started with another one, and ask again",
        nodes.join(", ")
    );
    let started = Instant::now();
    let said_at = Mutex::new(started);
    let report = |progress: Progress| {
        let mut said_at = said_at.lock();
        if said_at.elapsed() >= REPORT_INTERVAL {
            *said_at = Instant::now();
            output::say(&format!("{} rows so far, {}", progress.rows, size(progress.bytes)));
        }
    };
    let moved = store.move_tenant(tenant, Shard(number), &report).await;
    match moved.map_err(|error| not_moved(error, tenant, to))? {
        Moved::WasThere => output::say(&format!("{tenant} is on {to}")),
        Moved::Arrived(Progress { rows, bytes }) => output::say(&format!(
            "{tenant} is on {to}: {rows} rows, {}, in {} s",
            size(bytes),
            started.elapsed().as_secs()
        )),
    }
    Ok(())
}

fn not_moved(error: MoveError, tenant: &TenantId, to: &str) -> anyhow::Error {
    let what = match &error {
        MoveError::NotTidied { .. } => format!("{tenant} is on {to}"),
        error if error.is_interruption() => {
            format!("{tenant} was not moved to {to}; the same command goes on where this one has stopped")
        }
        _ => format!("{tenant} was not moved to {to}"),
    };
    anyhow::Error::new(error).context(what)
}

async fn list(config: &Config) -> anyhow::Result<()> {
    let gateway = assemble::gateway(config).await?;
    let shard = |tenant: &TenantId| config.shard.get(usize::from(gateway.store().shard_of(tenant).0));
    let mut after: Option<TenantId> = None;
    loop {
        let page = gateway.tenants(after.as_ref(), PAGE).await?;
        for (tenant, summary) in &page.items {
            let shard = shard(tenant).map_or_else(String::new, |shard| format!("  on {}", shard.name));
            output::out(&format!("{tenant}  {}{shard}", line(summary.as_ref())))?;
        }
        after = page.next.map(|next| next.parse()).transpose().context("the tenant's id is damaged")?;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn line(summary: Option<&TenantSummary>) -> String {
    let Some(summary) = summary else { return "being moved".to_owned() };
    let state = match &summary.suspension {
        None => "active".to_owned(),
        Some(suspension) => match suspension.erased_at {
            Some(at) => format!("being erased, from {at} on"),
            None => format!("suspended since {}", suspension.since),
        },
    };
    format!("{state}  {} stored", size(summary.stored_bytes))
}

/// For people: three digits at most.
fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes, "bytes");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024 {
            break;
        }
        (value, unit) = (value / 1024, next);
    }
    format!("{value} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_move_that_was_interrupted_goes_on_with_the_same_command() {
        let said = |error| not_moved(error, &"acme".parse().unwrap(), "two").to_string();
        let goes_on = |error| said(error).contains("the same command goes on");
        assert!(goes_on(MoveError::Away { name: "one".to_owned() }));
        assert!(!goes_on(MoveError::OnItsWay { from: "one".to_owned(), to: "three".to_owned() }));
        assert!(!goes_on(MoveError::OfNodes));
        assert_eq!(said(MoveError::NotTidied { names: vec!["one".to_owned()] }), "acme is on two");
    }
}
