//! `man`: made from the same definitions as the help.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};

use super::output;

/// Print the manual page, or write one for each command to a folder.
#[derive(Debug, Args)]
pub struct Man {
    /// Where to write one page for each command, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self, gateway: Command) -> anyhow::Result<()> {
        let Some(folder) = self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(gateway).render(&mut page)?;
            return output::out(String::from_utf8_lossy(&page).trim_end());
        };
        let failed = || format!("the manual can't be written to {}", folder.display());
        std::fs::create_dir_all(&folder).with_context(failed)?;
        clap_mangen::generate_to(gateway, &folder).with_context(failed)?;
        output::out(&format!("The pages are in {}", folder.display()))
    }
}
