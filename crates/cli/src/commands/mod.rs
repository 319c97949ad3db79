//! The commands of `countersign`.

mod ask;
mod ask_again;
mod change;
mod config;
mod decide;
mod devices;
mod doctor;
mod exec;
mod export;
mod fleet;
mod follow;
mod grants;
mod groups;
mod history;
mod hook;
mod inbox;
mod install;
mod join;
mod keeper;
mod keys;
mod listen;
mod manual;
mod mcp;
mod options;
mod pair;
mod policy;
mod presence;
mod prompt;
mod recovery;
mod replay;
mod rules;
mod run;
mod sessions;
mod set_rules;
mod status;
mod stop;
mod suggest;
mod up;
mod verify;
mod vouch;
mod wait;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use countersign_agents::tool::exit::Failure;

pub use self::options::Options;

/// Let a person approve what an agent does.
///
/// An agent's machine asks, a person answers on their own device, and nothing runs without approval. Requests are encrypted
/// and answers are signed: the gateway in between can't read the one or forge the other.
///
/// To begin, on one machine:  countersign up, then  countersign exec -- CMD
///
/// Messages for people go to stderr. With --json, one object goes to stdout.
#[derive(Debug, Parser)]
#[command(version, name = "countersign", max_term_width = 100, help_template = groups::template(&commands()))]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    command: Command,
}

/// The commands alone, with their short descriptions.
fn commands() -> clap::Command {
    Command::augment_subcommands(clap::Command::new("countersign"))
}

/// What each is for is said where its arguments are, in short and at length.
#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
    Down(up::Down),
    Join(join::Join),
    Status(status::Status),
    Config(config::Config),
    Pair(pair::Pair),
    Vouch(vouch::Vouch),
    Recovery(recovery::Recovery),
    Devices(devices::Devices),
    Exec(exec::Exec),
    Run(run::Run),
    Ask(ask::Ask),
    Wait(wait::Wait),
    Inbox(inbox::Inbox),
    Show(inbox::Show),
    Approve(decide::Approve),
    Reject(decide::Reject),
    Change(change::Change),
    AskAgain(ask_again::AskAgain),
    History(history::History),
    Prompt(prompt::Prompt),
    Sessions(sessions::Sessions),
    Stop(stop::Stop),
    Listen(listen::Listen),
    Grants(grants::Grants),
    Hook(hook::Hook),
    Mcp(mcp::Mcp),
    Away(presence::Away),
    Here(presence::Here),
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    Keeper(keeper::KeeperCommand),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Doctor(doctor::Doctor),
    Fleet(fleet::Fleet),
    Export(export::Export),
    Verify(verify::Verify),
    /// Show, export or lock the keys of a profile.
    #[command(subcommand)]
    Keys(keys::Keys),
    Completions(manual::Completions),
    Man(manual::Man),
}

impl Cli {
    /// Whether the command works for many at once, and so on several threads.
    pub fn is_service(&self) -> bool {
        matches!(&self.command, Command::Keeper(keeper) if keeper.is_service())
    }

    /// Runs the command and returns how the process ends.
    pub async fn run(self) -> Result<ExitCode, Failure> {
        let options = &self.options;
        match self.command {
            Command::Exec(exec) => return exec.run(options).await,
            Command::Run(run) => return run.run(options),
            Command::Hook(hook) => return Ok(Box::pin(hook.run(options)).await),
            Command::Keeper(keeper) => return keeper.run(options).await,
            Command::Mcp(mcp) => mcp.run(options).await,
            Command::Away(_) => presence::Away::run(options),
            Command::Here(_) => presence::Here::run(options),
            Command::Doctor(doctor) => return doctor.run(options).await,
            Command::Fleet(fleet) => return fleet.run(options).await,
            Command::Up(up) => up.run(options).await,
            Command::Down(down) => down.run(options).await,
            Command::Join(join) => join.run(options).await,
            Command::Status(status) => status.run(options).await,
            Command::Config(config::Config {}) => config::run(options),
            Command::Pair(pair) => pair.run(options).await,
            Command::Vouch(vouch) => vouch.run(options).await,
            Command::Recovery(recovery) => recovery.run(options).await,
            Command::Prompt(prompt) => prompt.run(options).await,
            Command::Sessions(sessions) => sessions.run(options).await,
            Command::Stop(stop) => stop.run(options).await,
            Command::History(history) => history.run(options).await,
            Command::Listen(listen) => listen.run(options).await,
            Command::Devices(devices) => devices.run(options).await,
            Command::Ask(ask) => ask.run(options).await,
            Command::Wait(wait) => wait.run(options).await,
            Command::Grants(grants) => grants.run(options).await,
            Command::Rules(rules) => rules.run(options).await,
            Command::Policy(policy) => policy.run(options),
            Command::Export(export) => export.run(options).await,
            Command::Verify(verify) => verify.run(options),
            Command::Install(install) => install.run(options),
            Command::Uninstall(uninstall) => uninstall.run(options),
            Command::Inbox(inbox) => inbox.run(options).await,
            Command::Show(show) => show.run(options).await,
            Command::Approve(approve) => approve.run(options).await,
            Command::Reject(reject) => reject.run(options).await,
            Command::Change(change) => change.run(options).await,
            Command::AskAgain(again) => again.run(options).await,
            Command::Keys(keys) => keys.run(options),
            Command::Completions(completions) => completions.run(Self::command()),
            Command::Man(man) => man.run(Self::command()),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
