//! `completions` and `man`: made from the same definitions as the help.

use std::{io, path::PathBuf};

use clap::{Args, Command};
use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::say,
};

/// Print a completion script for a shell.
///
/// For example:  countersign completions bash > ~/.local/share/bash-completion/completions/countersign
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell that the script is for.
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self, mut tool: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut tool, "countersign", &mut script);
        write(&script)
    }
}

/// Print the manual page, or write one for each command to a folder.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// Where to write one page for each command, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self, tool: Command) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::new(Exit::Failed, format!("the manual can't be written: {error}"));
        let Some(folder) = self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(tool).render(&mut page).map_err(failed)?;
            return write(&page);
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(tool, &folder).map_err(failed)?;
        say(&format!("The pages are in {}", folder.display()));
        Ok(())
    }
}

fn write(text: &[u8]) -> Result<(), Failure> {
    countersign_agents::tool::output::out(String::from_utf8_lossy(text).trim_end())
}
