//! A copy of everything that protects, built by the same code, with a keeper of its own. Nothing of the person's is touched.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        fs::{OpenOptionsExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{
    attempts::{Results, START_FILE, Targets, WRITE_START_FILE},
    outcome::Outcome,
};
use crate::{
    call_socket::place::CallSocket,
    hook_line::keeper::KeeperPlace,
    hosts::{Host, claude},
    install::{places::Places, program},
    platform::{bind_abstract, command_line},
    sandbox::place::{HOME, HOOK, Place, TOOL, Wanted, contained, hook_line, make_state},
    tool::{
        exit::{Exit, Failure},
        home::Home,
    },
};

/// What the model wants the host to run.
pub(super) const COMMAND: &str = "./attack";

/// The only thing that the copy allows.
const RULES: &str =
    "[[rule]]\nverdict = \"allow\"\ncommand = \"./attack\"\neffect = [\"leavesRepository\"]\n";

/// What the script of the project lets this tool do in the sandbox.
const ARGUMENTS: &str = "doctor --attack-inside \"$(cat targets.json)\" > results.json";

/// What is in files that an attack may change.
const AS_IT_WAS: &str = "as it was";

/// What stands for keys and a journal.
const KEPT: [&str; 2] = ["secret", "journal"];

/// How long the copy's keeper may take to start.
const KEEPER_TIME: Duration = Duration::from_secs(20);

/// The copy, with a keeper that runs for as long as this is kept.
pub(super) struct Scratch {
    folder: TempDir,
    host: Host,
    /// The program of the host.
    pub(super) program: PathBuf,
    /// The project in which the agent works.
    pub(super) project: PathBuf,
    user: PathBuf,
    ours: PathBuf,
    keeper: Child,
    abstract_name: String,
    _services: [UnixListener; 3],
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.keeper.kill());
        drop(self.keeper.wait());
    }
}

impl Scratch {
    /// Makes the copy and starts its keeper.
    pub(super) async fn make(host: Host, program: PathBuf) -> Result<Self, Failure> {
        let folder = in_users_folder().map_err(|error| failed(&error))?;
        let (user, ours) = (folder.path().join("home"), folder.path().join("countersign"));
        let project = user.join("project");
        let abstract_name = format!("{}-service", folder.path().display());
        let services =
            prepare(folder.path(), &project, &ours, &abstract_name).map_err(|error| failed(&error))?;
        let keeper = Command::new(program::current()?)
            .args(["keeper", "serve", "--home"])
            .arg(&ours)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let scratch =
            Self { folder, host, program, project, user, ours, keeper, abstract_name, _services: services };
        let socket = CallSocket::of(&Home::at(&scratch.ours));
        let until = Instant::now() + KEEPER_TIME;
        while socket.connect(Duration::from_secs(1)).is_err() {
            if Instant::now() > until {
                return Err(failed(&io::Error::other("its keeper does not start")));
            }
            sleep(Duration::from_millis(20)).await;
        }
        scratch.restore()?;
        Ok(scratch)
    }

    /// Everything as it was before an attack that has succeeded.
    pub(super) fn restore(&self) -> Result<(), Failure> {
        let written = || {
            let agent = self.ours.join("profiles/agent");
            fs::create_dir_all(&agent)?;
            fs::write(self.start_file(), AS_IT_WAS)?;
            for name in KEPT {
                fs::write(agent.join(name), AS_IT_WAS)?;
            }
            drop(fs::remove_file(self.project.join(".git/hooks/pre-commit")));
            let outside = self.outside();
            for file in [outside.settings, outside.hook] {
                fs::write(file, AS_IT_WAS)?;
            }
            let mut rules = fs::OpenOptions::new();
            rules.write(true).create(true).truncate(true).mode(0o600);
            io::Write::write_all(&mut rules.open(self.ours.join("rules.toml"))?, RULES.as_bytes())
        };
        written().map_err(|error| failed(&error))
    }

    fn start_file(&self) -> PathBuf {
        self.user.join(START_FILE)
    }

    /// What was written in a sandbox may have reached nobody.
    pub(super) fn corrected(&self, mut results: Results) -> Results {
        let is_unchanged = fs::read_to_string(self.start_file()).is_ok_and(|text| text == AS_IT_WAS);
        if let Some(open) =
            results.get_mut(WRITE_START_FILE).filter(|it| is_unchanged && **it == Outcome::Open)
        {
            *open = Outcome::Held { by: "what is written there stays in the sandbox".to_owned() };
        }
        results
    }

    /// The targets where nothing protects: for what exists in a sandbox only, something of the same kind.
    pub(super) fn outside(&self) -> Targets {
        let at = |name: &str| self.folder.path().join(name);
        Targets {
            settings: at("settings/settings.json"),
            hook: at("settings/hook"),
            call: at("socket/call.sock"),
            // As somebody would write it who does not know what variables do.
            line: "countersign-hook hook claude --mode gate".to_owned(),
            // No host runs this, so this process stands for it.
            host: own_parent(),
            ..self.inside()
        }
    }

    /// The targets as they are in the sandbox.
    pub(super) fn inside(&self) -> Targets {
        let settings = self.settings().ok().and_then(|files| files.into_iter().next());
        let pid = |id: u32| i32::try_from(id).unwrap_or(0);
        Targets {
            ours: self.ours.clone(),
            settings: settings.map(|(path, _)| path).unwrap_or_default(),
            hook: PathBuf::from(HOOK),
            call: Path::new(HOME).join("call/call.sock"),
            keeper: pid(self.keeper.id()),
            outsider: (pid(std::process::id()), "countersign".to_owned()),
            elsewhere: self.folder.path().join("elsewhere"),
            service: (self.folder.path().join("service.sock"), self.abstract_name.clone()),
            scratch: self.project.clone(),
            user: self.user.clone(),
            line: hook_line(claude::HOST, KeeperPlace::User).for_shell(),
            host: self.host.word().to_owned(),
        }
    }

    fn settings(&self) -> Result<Vec<(PathBuf, String)>, Failure> {
        let places = Places::of_user()?.with_home(&self.user);
        (contained(self.host)?.settings)(&places, &hook_line(self.host, KeeperPlace::User))
    }

    /// The sandbox, with variables that the host gets besides the usual ones.
    pub(super) fn place(&self, variables: &[(OsString, OsString)]) -> Result<Place, Failure> {
        let settings = self.settings()?;
        let paths: Vec<&Path> = settings.iter().map(|(path, _)| path.as_path()).collect();
        make_state(&self.user, contained(self.host)?, &paths)?;
        let tool = PathBuf::from(program::current()?);
        let programs = [tool.clone(), tool.with_file_name("countersign-hook")];
        let home = ("HOME".into(), self.user.clone().into_os_string());
        let inherited = std::env::vars_os().filter(|(name, _)| name != "HOME");
        let environment: Vec<_> = inherited.chain([home]).collect();
        let mut place = Place::of(&Wanted {
            program: &self.program,
            host: self.host,
            keeper: KeeperPlace::User,
            folder: &self.project,
            user: &self.user,
            ours: &self.ours,
            programs: &programs,
            writes: &[],
            has_network: true,
            passed: &[],
            environment: &environment,
            settings: &settings,
        })?;
        place.variables.extend_from_slice(variables);
        Ok(place)
    }

    /// Puts the targets where the script of the project finds them.
    pub(super) fn write_targets(&self) -> io::Result<()> {
        drop(fs::remove_file(self.project.join("results.json")));
        let text = serde_json::to_string(&self.inside()).map_err(io::Error::other)?;
        fs::write(self.project.join("targets.json"), text)
    }

    /// What came of the attempts, if the script has run.
    pub(super) fn results(&self) -> Option<Results> {
        serde_json::from_slice(&fs::read(self.project.join("results.json")).ok()?).ok()
    }
}

/// Not in `/tmp`, where some hosts make no programs for their own sandboxes.
fn in_users_folder() -> io::Result<TempDir> {
    let cache =
        Places::of_user().map_err(|failure| io::Error::other(failure.to_string()))?.home.join(".cache");
    fs::create_dir_all(&cache)?;
    tempfile::Builder::new().prefix("countersign-attack-").tempdir_in(cache)
}

fn prepare(folder: &Path, project: &Path, ours: &Path, name: &str) -> io::Result<[UnixListener; 3]> {
    for made in [
        project.join(".git"),
        ours.to_owned(),
        folder.join("settings"),
        folder.join("socket"),
        folder.join("elsewhere"),
    ] {
        fs::create_dir_all(made)?;
    }
    for file in ["settings/settings.json", "settings/hook", "elsewhere/file"] {
        fs::write(folder.join(file), "x")?;
    }
    let script = project.join("attack");
    fs::write(&script, format!("#!/bin/sh\nexec {TOOL} {ARGUMENTS}\n"))?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
    Ok([
        UnixListener::bind(folder.join("service.sock"))?,
        UnixListener::bind(folder.join("socket/call.sock"))?,
        bind_abstract(name)?,
    ])
}

/// The name of the process that has started this one.
fn own_parent() -> String {
    let parent = rustix::process::getppid().map_or(0, rustix::process::Pid::as_raw_pid);
    let line = command_line(parent).unwrap_or_default();
    let first = String::from_utf8_lossy(&line).split('\0').next().unwrap_or_default().to_owned();
    Path::new(&first)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .trim_start_matches(['.', '-'])
        .to_owned()
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the copy to be attacked can't be made: {error}"))
}
