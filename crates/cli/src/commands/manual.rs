//! `completions` and `man`: made from the same definitions as the help.

use std::{io, path::PathBuf};

use clap::{Args, CommandFactory as _};

use super::Cli;
use crate::{
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
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "countersign", &mut script);
        write(&script)
    }
}

/// Print the manual page, or write one page for each command into a folder.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// Where to write one page for each command, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::new(Exit::Failed, format!("the manual can't be written: {error}"));
        let Some(folder) = self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
            return write(&page);
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &folder).map_err(failed)?;
        say(&format!("The pages are in {}", folder.display()));
        Ok(())
    }
}

fn write(text: &[u8]) -> Result<(), Failure> {
    crate::output::out(String::from_utf8_lossy(text).trim_end())
}
