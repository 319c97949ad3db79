//! `tenants`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use countersign_core::{Gateway, use_cases::tenants::TenantSummary};
use countersign_wire::{failure::Failure, id::TenantId};

use super::output;
use crate::{assemble, config::Config};

/// List, suspend and erase tenants, directly in the store.
#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// List all tenants, with what they store.
    List(Place),
    /// Stop a tenant: none of its keys works until `resume`. Nothing is deleted. Running gateways notice within five seconds.
    Suspend(One),
    /// Let a suspended tenant go on.
    Resume(One),
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
            Self::List(place) => list(&place.gateway().await?).await,
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
    async fn gateway(&self) -> anyhow::Result<Gateway> {
        assemble::gateway(&Config::read(&self.config)?).await
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

async fn list(gateway: &Gateway) -> anyhow::Result<()> {
    let mut after: Option<TenantId> = None;
    loop {
        let page = gateway.tenants(after.as_ref(), PAGE).await?;
        for (tenant, summary) in &page.items {
            output::out(&line(tenant, summary))?;
        }
        after = page.next.map(|next| next.parse()).transpose().context("the tenant's id is damaged")?;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn line(tenant: &TenantId, summary: &TenantSummary) -> String {
    let state = match &summary.suspension {
        None => "active".to_owned(),
        Some(suspension) => match suspension.erased_at {
            Some(at) => format!("being erased, from {at} on"),
            None => format!("suspended since {}", suspension.since),
        },
    };
    format!("{tenant}  {state}  {} stored", size(summary.stored_bytes))
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
