//! The commands of `countersign-gateway`.

mod check;
mod config;
mod dev;
mod invite;
mod keys;
mod secret;
mod serve;

use std::time::Duration;

use clap::Parser;

pub use serve::run_node;

/// The approval gateway for AI agents.
///
/// An agent's enforcer submits what the agent is about to do, a person decides, and the gateway carries both.
/// Try it on this machine with `countersign-gateway dev`.
#[derive(Debug, Parser)]
#[command(version, name = "countersign-gateway")]
pub enum Command {
    /// Run a gateway to try things out: on this machine only, nothing to configure.
    Dev(dev::Dev),
    /// Run the gateway as a service.
    Serve(serve::Serve),
    /// Print the default configuration, with every setting explained.
    Config(config::PrintConfig),
    /// Say what is wrong with a configuration, without starting anything.
    Check(check::Check),
    /// Invite an enforcer or approver: print a link with which they make a key of their own.
    Invite(invite::Invite),
    /// Make, list and revoke API keys, directly in the store.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Manage the secrets that all nodes share.
    #[command(subcommand)]
    Secret(secret::Secret),
}

impl Command {
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Dev(dev) => dev.run().await,
            Self::Serve(serve) => serve.run().await,
            Self::Config(config) => config.run(),
            Self::Check(check) => check.run().await,
            Self::Invite(invite) => invite.run().await,
            Self::Keys(keys) => keys.run().await,
            Self::Secret(secret) => secret.run().await,
        }
    }
}

/// Writes to stdout, which is for programs. Who closes it early has seen enough.
fn out(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes to stderr, which is for people.
fn say(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// How long something is valid: a whole number and its unit, at least a second and at most a hundred years.
fn life(text: &str) -> Result<Duration, String> {
    let rule = || "must be a whole number of s, m, h or d, from 1s to 36500d".to_owned();
    let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(rule)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(rule()),
    };
    if !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(rule());
    }
    let life =
        count.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)).map(Duration::from_secs);
    life.filter(|life| (Duration::from_secs(1)..=Duration::from_hours(36_500 * 24)).contains(life))
        .ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_number_and_a_unit() {
        for (text, seconds) in [("1s", 1), ("90m", 5_400), ("12h", 43_200), ("7d", 604_800)] {
            assert_eq!(life(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "d", "7", "0d", "-1d", "+1d", "1.5h", "1 d", "36501d", "99999999999999999999d", "1ä", "7D"]
        {
            life(text).unwrap_err();
        }
    }
}
