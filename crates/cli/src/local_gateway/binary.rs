//! Where the program of the gateway is.

use std::{env, path::PathBuf};

use countersign_agents::{
    install::program,
    tool::exit::{Exit, Failure},
};

/// The program beside this one, or the one in the PATH.
pub(super) fn binary() -> Result<PathBuf, Failure> {
    let name = "countersign-gateway";
    let beside = program::current().ok().map(|own| PathBuf::from(own).with_file_name(name));
    beside.filter(|path| path.is_file()).or_else(|| in_path(name)).ok_or_else(|| {
        Failure::new(Exit::NotSetUp, format!("the program {name} is not installed"))
            .next("install it beside `countersign`, or join somebody else's gateway with `countersign join`")
    })
}

/// A program of this name in the PATH.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}
