//! Which programs the nodes run.

use std::env;

use super::{args::FaultsArgs, rig::Program};
use crate::{Failure, servers::gateway};

#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// The words that run a command of the gateway, of the same program that the nodes run first: another one could change the
    /// database before its time.
    pub(crate) commands: Vec<String>,
    /// What the nodes run, with `--rolling` after their first restart.
    pub(crate) node: Program,
    /// What they run before.
    pub(crate) first: Program,
}

impl Programs {
    pub(crate) fn find(args: &FaultsArgs) -> Result<Self, Failure> {
        let ours = word(env::current_exe()?)?;
        let commands = match &args.gateway {
            Some(path) => vec![word(gateway::program(Some(path))?)?],
            None => vec![ours.clone(), "gateway".to_owned()],
        };
        let node = match &args.bug {
            Some(bug) => {
                Program { serve: vec![ours, "node".to_owned()], after: vec!["--bug".to_owned(), bug.clone()] }
            }
            None => serving(commands.clone()),
        };
        Ok(match &args.previous {
            Some(path) => {
                let commands = vec![word(gateway::program(Some(path))?)?];
                Self { first: serving(commands.clone()), commands, node }
            }
            None => Self { commands, first: node.clone(), node },
        })
    }
}

fn serving(mut words: Vec<String>) -> Program {
    words.push("serve".to_owned());
    Program { serve: words, after: Vec::new() }
}

fn word(path: std::path::PathBuf) -> Result<String, Failure> {
    Ok(path.into_os_string().into_string().map_err(|path| format!("{} is not text", path.display()))?)
}
