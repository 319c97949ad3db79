//! `keeper`: the process that decides for all hooks of a user.

mod admin;
mod own_home;

use std::{
    ffi::OsString,
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::{Args, Subcommand};
use countersign_agents::{
    call_socket::place::{CallSocket, own_user},
    hook_line::place::Place,
    install::program,
    keeper::Keeper,
    platform::{guard_memory, most_open_files},
    tool::{
        account::Account,
        exit::{Exit, Failure},
        home::{ACCOUNTS, Home, KEEPER_ACCOUNT},
        output::{out, say},
    },
};
use rustix::process::{Resource, Rlimit};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use self::own_home::in_home;
use super::options::Options;
use crate::background::Background;

/// How long it may take to call the keeper.
const CALL_TIME: Duration = Duration::from_secs(1);

/// Run the keeper, which decides for all agents on this machine.
///
/// Without a keeper, each hook of an agent reads rules and keys itself. With one, hooks only ask it: they are faster, and need
/// none of these files (docs/keeper.md). Start it, then run `countersign install HOST --keeper`.
///
/// Only a keeper under an account of its own is out of an agent's reach. Root sets it up, and `as` runs commands for it.
#[derive(Debug, Subcommand)]
pub(super) enum KeeperCommand {
    /// Start the keeper in the background; where the system has services for users, also at every login.
    Start(Start),
    /// Stop the keeper. Agents whose hooks ask it can do nothing then.
    Stop(Stop),
    /// Show whether the keeper runs.
    Status(Status),
    /// Run the keeper in this terminal, until it is stopped.
    Serve(Serve),
    /// Run a command for the keeper of this machine, about what it keeps for an account.
    ///
    /// Root may run every command: join, pair, rules, keys. You may, for your own account, look and tighten: status, devices,
    /// grants, history, rules show, devices revoke, grants revoke, and rules set, which asks your paired devices before it
    /// loosens anything.
    ///
    /// For example:  sudo countersign keeper as ada join
    As(As),
}

#[derive(Debug, Args)]
pub(super) struct Start {}

#[derive(Debug, Args)]
pub(super) struct Stop {}

#[derive(Debug, Args)]
pub(super) struct Status {
    /// The one under an account of its own.
    #[arg(long)]
    system: bool,
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    place: Place,
    /// Decide for every account that root has set up, under an account of its own.
    #[arg(long, conflicts_with_all = ["home", "profile_file"])]
    system: bool,
}

#[derive(Debug, Args)]
pub(super) struct As {
    /// The account whose agents ask, by name or number.
    user: String,
    /// The account that the keeper runs as.
    #[arg(long, value_name = "ACCOUNT", default_value = KEEPER_ACCOUNT)]
    account: String,
    /// A command of countersign with its arguments, such as `join`, `pair`, `rules show` or `status`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl KeeperCommand {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        match self {
            Self::Start(_) => start(options).await,
            Self::Stop(_) => stop(options).await,
            Self::Status(asked) => asked.run(options),
            Self::As(command) => return command.run(options).await,
            Self::Serve(serve) => serve.run().await,
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Whether it works for many at once.
    pub(super) fn is_service(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// Whether a keeper answers.
pub(super) fn answers(socket: &CallSocket) -> bool {
    socket.connect(CALL_TIME).is_ok()
}

fn background(home: &Home) -> Result<Background, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Exit::Failed, format!("the keeper can't be started: {error}"));
    let program = program::current()?;
    let folder = home.folder().join("keeper");
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let whole = std::path::absolute(home.folder()).map_err(failed)?;
    let words = ["keeper", "serve", "--home"].map(OsString::from);
    Ok(Background {
        name: "keeper",
        service: "countersign-keeper",
        command: [vec![program.into()], words.into(), vec![whole.into()]].concat(),
        folder,
        may_be_service: home.is_usual(),
    })
}

async fn start(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let socket = CallSocket::of(&home);
    let was_running = answers(&socket);
    if !was_running {
        program::lasting()?;
        background(&home)?.start(async || answers(&socket)).await?;
    }
    if options.json {
        return out(&json!({ "outcome": "done", "wasRunning": was_running }).to_string());
    }
    match was_running {
        true => say("The keeper is running already."),
        false => say("✓ The keeper is running. Hooks ask it after `countersign install HOST --keeper`."),
    }
    Ok(())
}

async fn stop(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let socket = CallSocket::of(&home);
    let was_running = background(&home)?.stop(async || answers(&socket)).await?;
    if options.json {
        return out(&json!({ "outcome": "done", "wasRunning": was_running }).to_string());
    }
    match was_running {
        true => say("✓ The keeper is stopped. What its hooks ask is denied until it runs again."),
        false => say("The keeper was not running."),
    }
    Ok(())
}

impl Status {
    fn run(self, options: &Options) -> Result<(), Failure> {
        let socket = match self.system {
            true => CallSocket::of_system(),
            false => CallSocket::of(&Home::of_user()?),
        };
        if let Err(error) = socket.connect(CALL_TIME) {
            let what = format!("the keeper does not answer at {}: {error}", socket.path().display());
            return Err(
                Failure::new(Exit::Unreachable, what).next(format!("start it with `{}`", socket.remedy()))
            );
        }
        if options.json {
            return out(&json!({ "outcome": "done", "socket": socket.path() }).to_string());
        }
        say(&format!("✓ The keeper answers at {}.", socket.path().display()));
        Ok(())
    }
}

impl Serve {
    async fn run(self) -> Result<(), Failure> {
        let failed =
            |error: std::io::Error| Failure::new(Exit::Failed, format!("the keeper can't run: {error}"));
        if self.system && own_user() == 0 {
            let what =
                "the keeper of a machine does not run as root: it needs no right but that to its own files";
            return Err(Failure::new(Exit::Usage, what)
                .next("set it up with `packaging/account/install.sh`, which makes an account for it"));
        }
        guard().map_err(failed)?;
        let (socket, keeper) = if self.system {
            (CallSocket::of_system(), Keeper::of_accounts(ACCOUNTS.into()))
        } else {
            let home = self.place.home()?;
            (CallSocket::of(&home), Keeper::new(home))
        };
        let Some(listening) = socket.listen().map_err(failed)? else {
            return Err(Failure::new(Exit::Failed, "another keeper runs here")
                .next("stop it with `countersign keeper stop`"));
        };
        let listener = tokio::net::UnixListener::from_std(listening.listener).map_err(failed)?;
        let admin = match self.system {
            true => Some(admin::listen().map_err(failed)?),
            false => None,
        };
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        say(&format!("The keeper answers at {}.", socket.path().display()));
        tokio::select! {
            error = keeper.serve(listener) => Err(failed(error)),
            error = admin::serve(admin) => Err(failed(error)),
            // Whoever waits gets no verdict, which is a no.
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    }
}

impl As {
    async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("it can't be run for the keeper: {error}"))
        };
        let user = account(&self.user)?.user;
        if own_user() == user && user != 0 {
            return admin::ask(&self.command, options).await;
        }
        if own_user() != 0 {
            return Err(Failure::new(
                Exit::Usage,
                "only root may change what the keeper of this machine keeps for others",
            )
            .next("run it with sudo"));
        }
        let keeper = account(&self.account)?;
        if keeper.user == 0 || keeper.user == user {
            return Err(Failure::new(Exit::Usage, "the keeper needs an account of its own")
                .next("name another one with --account"));
        }
        let program = std::env::current_exe().map_err(failed)?;
        // What is the keeper's is made as the keeper: root follows nothing that lies in its folder.
        keeper.become_it().map_err(failed)?;
        let home = Home::of_served(user);
        match std::fs::DirBuilder::new().mode(0o700).create(&home) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                let what = format!("{} can't be made: {error}", home.display());
                return Err(
                    Failure::new(Exit::NotSetUp, what).next("run `packaging/account/install.sh` first")
                );
            }
            _ => {}
        }
        Err(failed(in_home(Command::new(program).args(self.command), &home).exec()))
    }
}

fn account(name: &str) -> Result<Account, Failure> {
    let unknown = || Failure::new(Exit::NotSetUp, format!("there is no account {name} on this machine"));
    Account::named(name).ok_or_else(|| unknown().next("say its name or its number"))
}

/// Keeps other processes of this user from reading its memory, and lets it hold as many connections as the system allows.
fn guard() -> std::io::Result<()> {
    guard_memory()?;
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit { current: most_open_files(maximum), maximum };
    Ok(rustix::process::setrlimit(Resource::Nofile, limit)?)
}
