//! `keeper`: the process that decides for all hooks of a user.

use std::{
    ffi::OsString,
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    process::Command,
    time::Duration,
};

use clap::{Args, Subcommand};
use countersign_agents::{
    call_socket::place::{CallSocket, own_user},
    hook_line::place::Place,
    keeper::Keeper,
    tool::{
        account::Account,
        exit::{Exit, Failure},
        home::{ACCOUNTS, Home},
        output::{out, say},
    },
};
use countersign_client::profile::HOME_VARIABLE;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

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
    /// Run a command for the keeper of this machine, about what it keeps for an account. Only root may.
    ///
    /// Whatever loosens goes this way: joining, pairing, rules, keys.
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
    #[arg(long, value_name = "ACCOUNT", default_value = ACCOUNT)]
    account: String,
    /// A command of countersign with its arguments, such as `join`, `pair`, `rules show` or `status`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The account of a keeper that has one of its own.
const ACCOUNT: &str = "countersign";

/// What commands for the keeper get of the environment.
const PASSED: [&str; 5] = ["COLORTERM", "LANG", "LC_ALL", "NO_COLOR", "TERM"];

impl KeeperCommand {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Start(_) => start(options).await,
            Self::Stop(_) => stop(options).await,
            Self::Status(asked) => asked.run(options),
            Self::As(command) => command.run(),
            Self::Serve(serve) => serve.run().await,
        }
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
    let program = std::env::current_exe().map_err(failed)?;
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
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        say(&format!("The keeper answers at {}.", socket.path().display()));
        tokio::select! {
            error = keeper.serve(listener) => Err(failed(error)),
            // Whoever waits gets no verdict, which is a no.
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    }
}

impl As {
    fn run(self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("it can't be run for the keeper: {error}"))
        };
        if own_user() != 0 {
            return Err(Failure::new(
                Exit::Usage,
                "only root may change what the keeper of this machine keeps",
            )
            .next("run it with sudo"));
        }
        let user = account(&self.user)?.user;
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
        let passed = PASSED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let error = Command::new(program)
            .args(self.command)
            .env_clear()
            .envs(passed)
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &home)
            .env(HOME_VARIABLE, &home)
            .current_dir(&home)
            .exec();
        Err(failed(error))
    }
}

fn account(name: &str) -> Result<Account, Failure> {
    let unknown = || Failure::new(Exit::NotSetUp, format!("there is no account {name} on this machine"));
    Account::named(name).ok_or_else(|| unknown().next("say its name or its number"))
}

/// Keeps other processes of this user from reading its memory, and lets it hold as many connections as the system allows.
fn guard() -> std::io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
