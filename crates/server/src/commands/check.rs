//! `check`.

use std::path::PathBuf;

use clap::Args;

use super::output;
use crate::{acme, assemble, config::Config, net::tls::Tls};

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
        if config.tls.is_on() {
            let tls = Tls::new(&config.tls)?;
            let served = tls.describe();
            if !served.is_empty() {
                output::say(&format!("serves the certificate for {served}"));
            }
        }
        acme::probe(&config.tls, config.tls_listen().port(), output::say).await?;
        let beside = config.tls.listen.map_or_else(String::new, |tls| format!(", and with TLS on {tls}"));
        output::say(&format!("{} is fine: listens on {}{beside}", self.config.display(), config.listen));
        Ok(())
    }
}
