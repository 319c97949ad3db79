//! `run`: an agent in a sandbox, where it can reach neither keys nor rules nor its own hook.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{ArgAction, Args};
use countersign_agents::{
    call_socket::place::CallSocket,
    doctor::canary,
    hook_line::keeper::KeeperPlace,
    hosts::{self, Host},
    install::{places::Places, program},
    platform::has_sandbox,
    sandbox::{
        bubblewrap::{self, Sandboxed},
        inside::Expected,
        place::{Part, Place, TOOL, Wanted, contained, hook_line, make_state},
    },
    tool::{
        exit::{Exit, Failure},
        home::Home,
        output::{object, say},
    },
};
use countersign_wire::hash::Sha256Hex;
use serde_json::json;

use super::{keeper, options::Options};

/// Run an agent in a sandbox, away from your keys and rules.
///
/// The agent gets its project, its own settings and the network, and of Countersign only the way to the keeper. Your other files,
/// the desktop, Docker and other processes are not there, and it can't change its own hook (docs/sandbox.md). It needs a keeper (`countersign keeper start`) and
/// bubblewrap, and works with Claude Code, Codex CLI and OpenCode.
///
/// For example:  countersign run -- claude
#[derive(Debug, Args)]
pub(super) struct Run {
    /// Let it write only here, in its project. Can be repeated. Without it: in the whole project.
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// host: as outside. none: no network at all, which few agents can work with.
    #[arg(long, action = ArgAction::Set, value_name = "host|none", default_value = "host", value_parser = has_network)]
    net: bool,
    /// Pass this variable on, such as a key for a model. Can be repeated.
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Show what the agent could reach, and start nothing.
    #[arg(long)]
    show: bool,
    /// What holds in the sandbox, tried from inside.
    #[arg(long, hide = true, value_parser = expected)]
    inside: Option<Expected>,
    /// The agent's program and its arguments.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

fn has_network(word: &str) -> Result<bool, String> {
    match word {
        "host" => Ok(true),
        "none" => Ok(false),
        _ => Err("must be host or none".to_owned()),
    }
}

fn expected(text: &str) -> Result<Expected, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// All that is needed to start it.
struct Prepared {
    host: Host,
    user: PathBuf,
    place: Place,
    expected: Expected,
    bubblewrap: &'static Path,
    argv: Vec<OsString>,
}

impl Run {
    pub(super) fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        if let Some(expected) = &self.inside {
            return expected
                .check()
                .map(|()| ExitCode::SUCCESS)
                .map_err(|what| Failure::new(Exit::Failed, what));
        }
        let shows = self.show;
        let prepared = self.prepare()?;
        if shows {
            return prepared.show(options).map(|()| ExitCode::SUCCESS);
        }
        make_state(&prepared.user, contained(prepared.host)?, &prepared.fixed())?;
        prepared.try_first()?;
        prepared.announce()?;
        let mut sandboxed = prepared.sandboxed(&prepared.argv)?;
        let error = sandboxed.command.exec();
        Err(Failure::new(Exit::NotExecutable, format!("bubblewrap can't be started: {error}")))
    }

    fn prepare(self) -> Result<Prepared, Failure> {
        if !has_sandbox() {
            return Err(Failure::new(Exit::NotSetUp, "the sandbox is on Linux only, so nothing was started")
                .next("start the agent by itself; `countersign install` puts the hook in front of it"));
        }
        if rustix::process::geteuid().is_root() {
            return Err(Failure::new(
                Exit::Failed,
                "the sandbox is not for root, who owns whatever is in it",
            )
            .next("run the agent as an ordinary user"));
        }
        let bubblewrap = bubblewrap::program().ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "bubblewrap is not installed; without it nothing is started")
                .next("install it, such as with `sudo apt install bubblewrap`")
        })?;
        let home = Home::of_user()?;
        let keeper = keeper_of(&home)?;
        let host = host(&self.command)?;
        let contained = contained(host)?;
        let path = program_of(host, &self.command)?;
        if let Some(refused) = self.command.iter().find(|word| contained.refused.iter().any(|it| *word == it))
        {
            let what = format!("{} would start {} without its hook", refused.display(), host.name());
            return Err(Failure::new(Exit::Usage, what).next("run it without that option"));
        }
        let settings = (contained.settings)(&Places::of_user()?, &hook_line(host, keeper))?;
        let failed =
            |error| Failure::new(Exit::Failed, format!("the working directory can't be found: {error}"));
        let folder = env::current_dir().map_err(failed)?;
        let environment: Vec<_> = env::vars_os().collect();
        let user = home.user().map(Path::to_owned).ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "there is no home folder").next("set HOME, and try again")
        })?;
        let programs = programs()?;
        let wanted = Wanted {
            program: &path,
            host,
            keeper,
            folder: &folder,
            user: &user,
            ours: home.folder(),
            programs: &programs,
            writes: &self.write,
            has_network: self.net,
            passed: &self.env,
            environment: &environment,
            settings: &settings,
        };
        let place = Place::of(&wanted)?;
        let digest = |(path, text): (PathBuf, String)| (path, Sha256Hex::digest(text.as_bytes()));
        let settings = settings.into_iter().map(digest).collect();
        let expected = Expected {
            ours: home.folder().to_owned(),
            settings,
            folder,
            is_system: keeper == KeeperPlace::System,
        };
        let argv = [vec![path.into_os_string()], self.command.into_iter().skip(1).collect()].concat();
        Ok(Prepared { host, user, place, expected, bubblewrap, argv })
    }
}

impl Prepared {
    fn sandboxed(&self, argv: &[OsString]) -> Result<Sandboxed, Failure> {
        bubblewrap::command(self.bubblewrap, &self.place, argv)
            .map_err(|error| Failure::new(Exit::Failed, format!("the sandbox can't be prepared: {error}")))
    }

    /// Builds the sandbox and looks at it from inside. Nothing is started in one that does not hold.
    fn try_first(&self) -> Result<(), Failure> {
        let failed = |what: String| {
            Failure::new(Exit::Failed, format!("the sandbox does not hold, so nothing was started: {what}"))
                .next("docs/sandbox.md says what it needs from the system")
        };
        let expected = serde_json::to_string(&self.expected).map_err(|error| failed(error.to_string()))?;
        let argv = [TOOL, "run", "--inside", &expected].map(OsString::from);
        let output = self.sandboxed(&argv)?.command.output().map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    /// What a person knows before it starts.
    fn announce(&self) -> Result<(), Failure> {
        let folders = self.place.writable_besides(&self.user, contained(self.host)?);
        let folders: Vec<String> = folders.iter().map(|path| path.display().to_string()).collect();
        say(&format!(
            "{} runs in a sandbox. It can write to {} and its own settings{}.",
            self.host.name(),
            folders.join(", "),
            if self.place.has_network { "" } else { ", and has no network" },
        ));
        Ok(())
    }

    /// The settings that nobody in it can change.
    fn fixed(&self) -> Vec<&Path> {
        self.expected.settings.iter().map(|(path, _)| path.as_path()).collect()
    }

    /// All that the agent could reach.
    fn show(&self, options: &Options) -> Result<(), Failure> {
        let read = self.place.parts.iter().filter_map(|part| match part {
            Part::Read(_, at) if !at.starts_with("/etc") => Some(at.as_path()),
            _ => None,
        });
        let read: Vec<&Path> = read.collect();
        let write = self.place.writable();
        let variables: Vec<_> = self.place.variables.iter().map(|(name, _)| name.to_string_lossy()).collect();
        if options.json {
            return object(&json!({
                "host": self.host.word(), "write": write, "read": read, "variables": variables,
                "dropped": self.place.dropped, "network": self.place.has_network, "settings": self.fixed(),
            }));
        }
        let list = |paths: &[&Path]| {
            let lines: Vec<String> = paths.iter().map(|path| format!("    {}", path.display())).collect();
            lines.join("\n")
        };
        let command: Vec<_> = self.argv.iter().map(|word| word.to_string_lossy()).collect();
        say(&format!("In the sandbox of `{}`:", command.join(" ")));
        say(&format!("  It can write\n{}", list(&write)));
        say(&format!("  It can read, besides the system's settings\n{}", list(&read)));
        say(&format!("  Nobody in it can change\n{}", list(&self.fixed())));
        let network = if self.place.has_network { "as outside" } else { "none" };
        say(&format!("  Network: {network}"));
        say(&format!("  Variables: {}", variables.join(" ")));
        say(&format!("  Not passed (--env NAME passes one): {}", self.place.dropped.join(" ")));
        Ok(())
    }
}

/// The machine's keeper where this account is set up there, else the person's own.
fn keeper_of(home: &Home) -> Result<KeeperPlace, Failure> {
    let (place, socket) = match Home::is_served() {
        true => (KeeperPlace::System, CallSocket::of_system()),
        false => (KeeperPlace::User, CallSocket::of(home)),
    };
    match keeper::answers(&socket) {
        true => Ok(place),
        false => Err(Failure::new(Exit::NotSetUp, "no keeper runs here, so every call would be denied")
            .next(format!("start it with `{}`, then run this again", socket.remedy()))),
    }
}

/// The host that a command starts.
fn host(command: &[OsString]) -> Result<Host, Failure> {
    let Some(word) = command.first() else {
        return Err(Failure::new(Exit::Usage, "there is nothing to run")
            .next("name the agent: `countersign run -- claude`"));
    };
    let is_named = |host: &Host| Path::new(word).file_name().is_some_and(|name| name == host.word());
    hosts::ALL.into_iter().find(is_named).ok_or_else(|| {
        let known = hosts::ALL.iter().filter(|host| host.contained().is_some()).map(|host| host.word());
        let known: Vec<&str> = known.collect();
        Failure::new(Exit::Usage, format!("no agent is called {}", word.to_string_lossy()))
            .next(format!("these can be run: {}", known.join(", ")))
    })
}

/// Where the program of a command is.
fn program_of(host: Host, command: &[OsString]) -> Result<PathBuf, Failure> {
    let named = Path::new(command.first().map_or("".as_ref(), OsString::as_os_str));
    let found = match named.components().count() {
        1 => canary::program(host, env::var_os("PATH").as_deref()),
        _ => std::path::absolute(named).ok().filter(|path| path.is_file()),
    };
    found.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("there is no program {}", named.display()))
            .next("install it, or name its whole path")
    })
}

/// The programs that hooks are.
fn programs() -> Result<[PathBuf; 2], Failure> {
    let tool = PathBuf::from(program::current()?);
    let hook = tool.with_file_name("countersign-hook");
    match hook.is_file() {
        true => Ok([tool, hook]),
        false => Err(Failure::new(Exit::NotSetUp, format!("there is no {}", hook.display()))
            .next("install countersign-hook beside countersign")),
    }
}
