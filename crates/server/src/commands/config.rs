//! `config`.

use clap::Args;

use super::output;
use crate::config::DEFAULT;

/// Print the default configuration, with every setting explained.
#[derive(Debug, Args)]
pub struct PrintConfig {}

impl PrintConfig {
    #[expect(clippy::unused_self, reason = "all commands are run alike")]
    pub(super) fn run(self) -> anyhow::Result<()> {
        output::out(DEFAULT.trim_end())
    }
}
