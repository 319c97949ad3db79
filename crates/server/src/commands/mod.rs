//! The commands of `countersign-gateway`.

mod check;
mod config;
mod dev;
mod health;
mod invite;
mod keys;
mod life;
mod man;
mod output;
mod secret;
mod serve;
mod tenants;

use clap::{CommandFactory, Parser};

pub use serve::run_node;

/// The approval gateway for AI agents.
///
/// An agent's enforcer submits what the agent is about to do, a person decides, and the gateway carries both.
/// Try it on this machine with `countersign-gateway dev`.
#[derive(Debug, Parser)]
#[command(version, name = "countersign-gateway")]
pub enum Command {
    /// Run a gateway to try things out: on this machine only, nothing to configure.
    Dev(dev::Dev),
    /// Run the gateway as a service.
    Serve(serve::Serve),
    /// Print the default configuration, with every setting explained.
    Config(config::PrintConfig),
    /// Say what is wrong with a configuration, without starting anything.
    Check(check::Check),
    /// Say whether the gateway that runs here takes requests, for health checks of containers.
    Health(health::Health),
    /// Invite an enforcer or approver: print a link with which they make a key of their own.
    Invite(invite::Invite),
    /// Make, list and revoke API keys, directly in the store.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// List, suspend, erase and move tenants, directly in the store.
    #[command(subcommand)]
    Tenants(tenants::Tenants),
    /// Manage the secrets that all nodes share.
    #[command(subcommand)]
    Secret(secret::Secret),
    /// Print the manual page, or write one for each command to a folder.
    Man(man::Man),
}

impl Command {
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Dev(dev) => dev.run().await,
            Self::Serve(serve) => serve.run().await,
            Self::Config(config) => config.run(),
            Self::Check(check) => check.run().await,
            Self::Health(health) => health.run().await,
            Self::Invite(invite) => invite.run().await,
            Self::Keys(keys) => keys.run().await,
            Self::Tenants(tenants) => tenants.run().await,
            Self::Secret(secret) => secret.run().await,
            Self::Man(man) => man.run(<Self as CommandFactory>::command()),
        }
    }
}
