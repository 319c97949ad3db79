//! API keys, made with the gateway's own command.

use std::{path::Path, process::Command};

use crate::{Failure, servers::gateway::make_key};

/// The keys of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) operator: String,
    pub(crate) enforcer: String,
    pub(crate) approver: String,
}

impl Keys {
    /// Makes them. `gateway` are the words that run a gateway's commands.
    pub(crate) fn create(gateway: &[String], config: &Path, tenant: &str) -> Result<Self, Failure> {
        let (program, words) = gateway.split_first().ok_or("a program has a name")?;
        let key = |role: &[&str]| {
            let mut command = Command::new(program);
            command.args(words);
            make_key(command, config, tenant, role)
        };
        Ok(Self {
            operator: key(&["operator"])?,
            enforcer: key(&["enforcer", "--any"])?,
            approver: key(&["approver", "--any"])?,
        })
    }
}
