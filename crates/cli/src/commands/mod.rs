//! The commands of `countersign`.

mod ask;
mod decide;
mod devices;
mod doctor;
mod exec;
mod export;
mod follow;
mod grants;
mod inbox;
mod install;
mod join;
mod keys;
mod listen;
mod manual;
mod pair;
mod prompt;
mod status;
mod up;
mod verify;
mod vouch;
mod wait;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::exit::Failure;

/// Let a person approve what an agent does.
///
/// An agent's machine asks, a person answers on a device of their own, and nothing runs that was not approved. What is
/// asked is encrypted between the two, and the answer is signed: the gateway between them can read neither, and can't answer
/// by itself.
///
/// On one machine, for yourself:  countersign up, then  countersign exec -- CMD
///
/// Everything for people goes to stderr. With --json one object goes to stdout.
#[derive(Debug, Parser)]
#[command(version, name = "countersign", max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    command: Command,
}

/// Options that every command has.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The profile to act with. Not needed while there is one for each role.
    #[arg(long, global = true, value_name = "NAME", env = "COUNTERSIGN_PROFILE", hide_env_values = true)]
    pub profile: Option<String>,
    /// Write one object to stdout, for programs.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a gateway of your own on this machine, and set up both sides.
    Up(up::Up),
    /// Stop the gateway that `up` has started.
    Down(up::Down),
    /// Join a gateway with an invitation link.
    Join(join::Join),
    /// Say who this machine is, and whether its gateway can be reached.
    Status(status::Status),
    /// Pair an agent's machine with a person's device.
    Pair(pair::Pair),
    /// Let a new device approve too, because a device that is paired already says so.
    Vouch(vouch::Vouch),
    /// List paired devices, or revoke one.
    Devices(devices::Devices),
    /// Run a command after a person has approved it.
    Exec(exec::Exec),
    /// Ask about a command, plan, patch or checkpoint, and print the answer.
    Ask(ask::Ask),
    /// Wait for the answer to a request that was asked with --detach.
    Wait(wait::Wait),
    /// Read what waits for your answer, and answer it.
    Inbox(inbox::Inbox),
    /// Show everything about a request that waits for you.
    Show(inbox::Show),
    /// Approve a request that waits for you.
    Approve(decide::Approve),
    /// Reject a request that waits for you.
    Reject(decide::Reject),
    /// Send words to an agent, without being asked.
    Prompt(prompt::Prompt),
    /// Show what a session of an agent is doing.
    Sessions(prompt::Sessions),
    /// Listen to what approvers say to this machine.
    Listen(listen::Listen),
    /// List what may run without asking again, or take it back.
    Grants(grants::Grants),
    /// Put Countersign into the settings of an agent.
    Install(install::Install),
    /// Take Countersign out of the settings of an agent.
    Uninstall(install::Uninstall),
    /// Check that agents ask, and that somebody can answer.
    Doctor(doctor::Doctor),
    /// Write finished exchanges of this machine into a folder, for `verify`.
    Export(export::Export),
    /// Check a saved exchange offline: what was asked, decided and done.
    Verify(verify::Verify),
    /// Show, export or lock the keys of a profile.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Print a completion script for a shell.
    Completions(manual::Completions),
    /// Print the manual page, or write one page for each command into a folder.
    Man(manual::Man),
}

impl Cli {
    /// Runs the command and returns how the process ends.
    pub async fn run(self) -> Result<ExitCode, Failure> {
        let options = &self.options;
        match self.command {
            Command::Exec(exec) => return exec.run(options).await,
            Command::Doctor(doctor) => return doctor.run(options).await,
            Command::Up(up) => up.run(options).await,
            Command::Down(down) => down.run(options).await,
            Command::Join(join) => join.run(options).await,
            Command::Status(status) => status.run(options).await,
            Command::Pair(pair) => pair.run(options).await,
            Command::Vouch(vouch) => vouch.run(options).await,
            Command::Prompt(prompt) => prompt.run(options).await,
            Command::Sessions(sessions) => sessions.run(options).await,
            Command::Listen(listen) => listen.run(options).await,
            Command::Devices(devices) => devices.run(options).await,
            Command::Ask(ask) => ask.run(options).await,
            Command::Wait(wait) => wait.run(options).await,
            Command::Grants(grants) => grants.run(options).await,
            Command::Export(export) => export.run(options).await,
            Command::Verify(verify) => verify.run(options),
            Command::Install(install) => install.run(options),
            Command::Uninstall(uninstall) => uninstall.run(options),
            Command::Inbox(inbox) => inbox.run(options).await,
            Command::Show(show) => show.run(options).await,
            Command::Approve(approve) => approve.run(options).await,
            Command::Reject(reject) => reject.run(options).await,
            Command::Keys(keys) => keys.run(options),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
