//! `check`.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::{assemble, config::Config};

/// Say what is wrong with a configuration, without starting anything.
#[derive(Debug, Args)]
pub struct Check {
    /// The file to check.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Check {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let config = Config::read(&self.config)?;
        assemble::probe(&config).await?;
        output::say(&format!("{} is fine: listens on {}", self.config.display(), config.listen));
        Ok(())
    }
}
