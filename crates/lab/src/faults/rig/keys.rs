//! API keys, made with the gateway's own command.

use std::{path::Path, process::Command};

use crate::Failure;

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
        let key = |role: &[&str]| create(gateway, config, tenant, role);
        Ok(Self {
            operator: key(&["operator"])?,
            enforcer: key(&["enforcer", "--any"])?,
            approver: key(&["approver", "--any"])?,
        })
    }
}

fn create(gateway: &[String], config: &Path, tenant: &str, role: &[&str]) -> Result<String, Failure> {
    let (program, words) = gateway.split_first().ok_or("a program has a name")?;
    let mut command = Command::new(program);
    command.args(words).args(["keys", "create", "--tenant", tenant, "--config"]).arg(config);
    let made = command.arg("--role").args(role).output()?;
    match made.status.success() {
        true => Ok(String::from_utf8(made.stdout)?.trim().to_owned()),
        false => Err(String::from_utf8_lossy(&made.stderr).into()),
    }
}
