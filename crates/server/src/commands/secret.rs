//! `secret`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output;
use crate::{assemble, config::Config};

/// Manage the secrets that all nodes share.
#[derive(Debug, Subcommand)]
pub enum Secret {
    /// Use the secrets in the data folder from now on, instead of those that the store was used with before.
    ///
    /// Makes those that do not exist. Stop all nodes first, and copy both files to all of them.
    Accept(Accept),
}

#[derive(Debug, Args)]
pub struct Accept {
    /// The configuration file of the gateway.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Secret {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let Self::Accept(Accept { config }) = self;
        let config = Config::read(&config)?;
        let replaced = assemble::accept_secrets(&config, &assemble::gateway(&config).await?).await?;
        match replaced.as_slice() {
            [] => output::say("the store has these secrets already"),
            files => output::say(&format!("accepted: {}", files.join(", "))),
        }
        if replaced.contains(&crate::secrets::CREDENTIALS_FILE) {
            output::say(
                "API keys that were made with another key-secret are rejected now. If that is a mistake, put the \
                 earlier file back and accept it; otherwise create new keys with: countersign-gateway keys create",
            );
        }
        Ok(())
    }
}
