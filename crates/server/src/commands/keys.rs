//! `keys`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use countersign_core::{
    Gateway,
    model::credential::{Credential, Role},
    use_cases::credentials::KeySpec,
};
use countersign_wire::{Label, api_key::KeyId, failure::Failure, id::TenantId};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{life, output};
use crate::{assemble, config::Config, net::tls::client_named_by};

/// Make, list and revoke API keys, directly in the store.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make a key and print it. It is shown this once and can't be shown again.
    Create(Create),
    /// List the keys of a tenant.
    List(Where),
    /// Revoke a key. Running gateways notice within five seconds.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub struct Where {
    /// The configuration file of the gateway.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The tenant: 1 to 63 lowercase letters, digits and dashes. It need not exist yet.
    #[arg(long)]
    tenant: TenantId,
}

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    place: Where,
    /// What the key is for.
    #[arg(long)]
    role: RoleName,
    /// Which enforcer or approver it is for.
    #[arg(long, conflicts_with = "any")]
    id: Option<String>,
    /// It is for any enforcer or approver of the tenant.
    #[arg(long)]
    any: bool,
    /// How long it is valid, for example 12h or 90d. Without this it does not expire.
    #[arg(long, value_name = "TIME", value_parser = life::life)]
    expires: Option<Duration>,
    /// What people call it, for `list`.
    #[arg(long)]
    label: Option<Label>,
}

#[derive(Debug, Args)]
pub struct Revoke {
    #[command(flatten)]
    place: Where,
    /// The third part of the key, as `list` shows it.
    #[arg(long, value_name = "KEY_ID", required_unless_present = "certificate")]
    key: Option<String>,
    /// A client's certificate in PEM form instead of a key, whether it was used or not.
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    certificate: Option<PathBuf>,
}

/// What a key is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleName {
    /// Submits for an agent.
    Enforcer,
    /// Reviews and decides for people.
    Approver,
    /// Runs the tenant: keys, policy, cancelling.
    Operator,
    /// Runs the gateway: lists, suspends and erases tenants. The key belongs to a tenant and has no rights in it.
    GatewayOperator,
}

impl Keys {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Create(create) => create.run().await,
            Self::List(place) => {
                let gateway = assemble::gateway(&Config::read(&place.config)?).await?;
                let mut after = None;
                loop {
                    let page = gateway.keys(&place.tenant, after.as_deref(), PAGE).await?;
                    for (key_id, key) in page.items {
                        output::out(&line(&key_id, key)?)?;
                    }
                    after = page.next;
                    if after.is_none() {
                        return Ok(());
                    }
                }
            }
            Self::Revoke(Revoke { place, key, certificate }) => {
                let gateway = assemble::gateway(&Config::read(&place.config)?).await?;
                let key_id = match certificate {
                    Some(file) => known_certificate(&gateway, &place.tenant, &file).await?,
                    None => {
                        key.unwrap_or_default().parse().map_err(|rule| anyhow::anyhow!("--key {rule}"))?
                    }
                };
                let at = match gateway.revoke_key(&place.tenant, &key_id).await {
                    Err(error) if error.failure() == Failure::NotFound => anyhow::bail!(
                        "tenant {} has no key {key_id}; `keys list` shows those that it has",
                        place.tenant
                    ),
                    revoked => revoked.context("the key may still be active; try again")?,
                };
                output::say(&format!("{key_id} is revoked since {at}"));
                Ok(())
            }
        }
    }
}

/// The id of the credential of a certificate, which is made if it was never used.
async fn known_certificate(gateway: &Gateway, tenant: &TenantId, file: &Path) -> anyhow::Result<KeyId> {
    let unreadable = || format!("{} has no certificate in PEM form", file.display());
    let certificate = CertificateDer::from_pem_file(file).with_context(unreadable)?;
    let spec = client_named_by(&certificate).with_context(|| file.display().to_string())?;
    anyhow::ensure!(spec.tenant == *tenant, "{} is for the tenant {}", file.display(), spec.tenant);
    gateway.authenticate_certificate(&spec).await?;
    Ok(spec.key_id())
}

impl Create {
    async fn run(self) -> anyhow::Result<()> {
        countersign_wire::api_key::check_tenant(&self.place.tenant)
            .map_err(|rule| anyhow::anyhow!("--tenant {rule}"))?;
        let role = match (self.role, self.id, self.any) {
            (RoleName::Operator, None, false) => Role::Operator,
            (RoleName::GatewayOperator, None, false) => Role::GatewayOperator,
            (RoleName::Operator | RoleName::GatewayOperator, ..) => {
                anyhow::bail!("an operator has no id; leave out --id and --any")
            }
            (_, None, false) => {
                anyhow::bail!("say which one the key is for with --id, or --any for all of the tenant")
            }
            (RoleName::Enforcer, id, _) => {
                Role::Enforcer(id.map(|id| id.parse()).transpose().map_err(bad_id)?)
            }
            (RoleName::Approver, id, _) => {
                Role::Approver(id.map(|id| id.parse()).transpose().map_err(bad_id)?)
            }
        };
        let config = Config::read(&self.place.config)?;
        let gateway = assemble::gateway(&config).await?;
        let secrets = assemble::secrets(&config, &gateway).await?;
        let expires_at = match self.expires {
            Some(life) => Some(gateway.store().now().await?.plus(life)),
            None => None,
        };
        let spec = KeySpec { role, label: self.label, expires_at };
        let made = gateway.create_key(&self.place.tenant, spec, &secrets.mac_key()).await?;
        output::out(&made.key.expose())
    }
}

/// Keys that are read at once.
const PAGE: u32 = 200;

fn line(key_id: &KeyId, key: Credential) -> anyhow::Result<String> {
    let role = serde_json::to_string(&key.role)?;
    let expires = key.expires_at.map_or_else(String::new, |at| format!("  expires {at}"));
    let revoked = key.revoked_at.map_or_else(String::new, |at| format!("  revoked {at}"));
    let rotated = key.rotated_from.map_or_else(String::new, |from| format!("  rotated from {from}"));
    let label = key.label.map_or_else(String::new, |label| format!("  {}", label.as_str()));
    Ok(format!("{key_id}  {role}  made {}{expires}{revoked}{rotated}{label}", key.created_at))
}

fn bad_id(rule: countersign_wire::Rule) -> anyhow::Error {
    anyhow::anyhow!("--id {rule}")
}
