//! Which programs the nodes run.

use std::env;

use super::{args::FaultsArgs, rig::Program};
use crate::{Failure, servers::gateway};

#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// The words that run a command of the gateway.
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
        let first = match &args.previous {
            Some(path) => serving(vec![word(gateway::program(Some(path))?)?]),
            None => node.clone(),
        };
        Ok(Self { commands, node, first })
    }
}

fn serving(mut words: Vec<String>) -> Program {
    words.push("serve".to_owned());
    Program { serve: words, after: Vec::new() }
}

fn word(path: std::path::PathBuf) -> Result<String, Failure> {
    Ok(path.into_os_string().into_string().map_err(|path| format!("{} is not text", path.display()))?)
}
