//! The commands of `countersign-gateway`.

mod check;
mod config;
mod dev;
mod keys;
mod secret;
mod serve;

use clap::Parser;

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
    /// Make, list and revoke API keys, directly in the store.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Manage the secrets that all nodes share.
    #[command(subcommand)]
    Secret(secret::Secret),
}

impl Command {
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Dev(dev) => dev.run().await,
            Self::Serve(serve) => serve.run().await,
            Self::Config(config) => config.run(),
            Self::Check(check) => check.run().await,
            Self::Keys(keys) => keys.run().await,
            Self::Secret(secret) => secret.run().await,
        }
    }
}

/// Writes to stdout, which is for programs. Who closes it early has seen enough.
fn out(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes to stderr, which is for people.
fn say(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
