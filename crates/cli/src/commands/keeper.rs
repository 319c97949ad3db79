//! `keeper`: the process that decides for all hooks of a user.

use std::{ffi::OsString, time::Duration};

use clap::{Args, Subcommand};
use countersign_agents::{
    call_socket::place::CallSocket,
    hook_line::place::Place,
    keeper::Keeper,
    tool::{
        exit::{Exit, Failure},
        home::Home,
        output::{out, say},
    },
};
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
}

#[derive(Debug, Args)]
pub(super) struct Start {}

#[derive(Debug, Args)]
pub(super) struct Stop {}

#[derive(Debug, Args)]
pub(super) struct Status {}

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    place: Place,
}

impl KeeperCommand {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Start(_) => start(options).await,
            Self::Stop(_) => stop(options).await,
            Self::Status(_) => status(options),
            Self::Serve(serve) => serve.run().await,
        }
    }

    /// Whether it works for many at once.
    pub(super) fn is_service(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// Whether a keeper answers in this home.
pub(super) fn answers(home: &Home) -> bool {
    CallSocket::of(home).connect(CALL_TIME).is_ok()
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
    let was_running = answers(&home);
    if !was_running {
        background(&home)?.start(async || answers(&home)).await?;
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
    let was_running = background(&home)?.stop(async || answers(&home)).await?;
    if options.json {
        return out(&json!({ "outcome": "done", "wasRunning": was_running }).to_string());
    }
    match was_running {
        true => say("✓ The keeper is stopped. What its hooks ask is denied until it runs again."),
        false => say("The keeper was not running."),
    }
    Ok(())
}

fn status(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let socket = CallSocket::of(&home);
    if let Err(error) = socket.connect(CALL_TIME) {
        let what = format!("the keeper does not answer at {}: {error}", socket.path().display());
        return Err(Failure::new(Exit::Unreachable, what).next("start it with `countersign keeper start`"));
    }
    if options.json {
        return out(&json!({ "outcome": "done", "socket": socket.path() }).to_string());
    }
    say(&format!("✓ The keeper answers at {}.", socket.path().display()));
    Ok(())
}

impl Serve {
    async fn run(self) -> Result<(), Failure> {
        let home = self.place.home()?;
        let failed =
            |error: std::io::Error| Failure::new(Exit::Failed, format!("the keeper can't run: {error}"));
        guard().map_err(failed)?;
        let socket = CallSocket::of(&home);
        let Some(listening) = socket.listen().map_err(failed)? else {
            return Err(Failure::new(Exit::Failed, "another keeper runs here")
                .next("stop it with `countersign keeper stop`"));
        };
        let listener = tokio::net::UnixListener::from_std(listening.listener).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        say(&format!("The keeper answers at {}.", socket.path().display()));
        tokio::select! {
            error = Keeper::new(home.sharing()).serve(listener) => Err(failed(error)),
            // Whoever waits gets no verdict, which is a no.
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        }
    }
}

/// Keeps other processes of this user from reading its memory, and lets it hold as many connections as the system allows.
fn guard() -> std::io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
