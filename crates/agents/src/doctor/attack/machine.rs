//! The keeper of this machine, attacked from an account that it decides for. It is the real one, because what holds is who owns
//! its files; so files are opened and not written to, and what could be moved is moved back.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    os::unix::{
        fs::MetadataExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use tempfile::TempDir;

use super::{
    attempts::move_away,
    outcome::{Outcome, is_open, is_refusal},
};
use crate::{
    call_socket::place::{ADMIN_FOLDER, CallSocket, SYSTEM_FOLDER, own_user},
    hosts,
    install::{inspection::Inspection, places::Places, program},
    platform::{memory, peer_process},
    tool::{
        exit::{Exit, Failure},
        home::Home,
        output::say,
    },
};

/// How long the keeper may take to accept a call.
const CALL_TIME: Duration = Duration::from_secs(5);

/// What came of one attempt on the keeper of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineLine {
    /// What was tried, in words.
    pub attempt: &'static str,
    /// What came of it on the keeper.
    pub keeper: Outcome,
    /// On something of the same kind that belongs to this account, where it has to succeed.
    pub control: Outcome,
    pub is_wrong: bool,
}

/// What is attacked: what the keeper has, or what this account has of the same kind.
struct Targets {
    /// What the keeper keeps for this account.
    home: PathBuf,
    /// The folders of its sockets: for hooks, and for people.
    call: PathBuf,
    admin: PathBuf,
    /// The programs of the hooks.
    hooks: Vec<PathBuf>,
    /// The settings with a hook that an administrator has put there.
    settings: Vec<PathBuf>,
    /// The number of the keeper's process.
    process: Option<i32>,
}

/// What is tried, in words, and how.
type Attempt = (&'static str, fn(&Targets) -> io::Result<()>);

const ATTEMPTS: &[Attempt] = &[
    ("list what it keeps for you", |targets| fs::read_dir(&targets.home).map(drop)),
    ("read the rules", |targets| File::open(targets.rules()).map(drop)),
    ("change the rules", |targets| open_to_change(&targets.rules())),
    ("move its folder away", |targets| move_away(Some(&targets.home))),
    ("put a socket in place of the one for hooks", |targets| replace(&targets.call)),
    ("put a socket in place of the one for people", |targets| replace(&targets.admin)),
    ("change the program of the hook", |targets| any(&targets.hooks, open_to_change)),
    ("put another program in its place", |targets| any(&targets.hooks, put_beside)),
    ("signal it", |targets| {
        let number = Pid::from_raw(targets.process()?).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(test_kill_process(number)?)
    }),
    ("read its memory", |targets| memory(targets.process()?).map(drop)),
];

/// Where a hook is installed for every user.
const ON_SETTINGS: [Attempt; 2] = [
    ("change the settings with the hook", |targets| any(&targets.settings, open_to_change)),
    ("put other settings in their place", |targets| any(&targets.settings, put_beside)),
];

impl Targets {
    /// The ones of this machine.
    fn of_machine() -> Result<Self, Failure> {
        let (places, project) = (Places::of_user()?, std::env::current_dir().unwrap_or_default());
        let inspected = hosts::ALL.into_iter().flat_map(|host| host.inspect(&places, &project));
        let (settings, mut hooks) = installed(inspected);
        if hooks.is_empty() {
            hooks.push(Path::new(&program::current()?).with_file_name("countersign-hook"));
        }
        Ok(Self {
            home: Home::of_served(own_user()),
            call: SYSTEM_FOLDER.into(),
            admin: ADMIN_FOLDER.into(),
            hooks,
            settings,
            process: CallSocket::of_system().connect(CALL_TIME).ok().and_then(|stream| peer_process(&stream)),
        })
    }

    fn rules(&self) -> PathBuf {
        self.home.join("rules.toml")
    }

    fn process(&self) -> io::Result<i32> {
        self.process.ok_or_else(|| absent("the keeper does not answer"))
    }
}

/// Something of the same kind that belongs to this account.
struct Control {
    folder: TempDir,
    process: Child,
    _sockets: [UnixListener; 2],
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Control {
    fn make() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for name in ["home", "call", "admin"] {
            fs::create_dir(at(name))?;
        }
        for file in ["home/rules.toml", "hook", "settings"] {
            fs::write(at(file), "")?;
        }
        let sockets =
            [UnixListener::bind(at("call/call.sock"))?, UnixListener::bind(at("admin/admin.sock"))?];
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        Ok(Self { folder, process, _sockets: sockets })
    }

    fn targets(&self) -> Targets {
        let at = |name: &str| self.folder.path().join(name);
        Targets {
            home: at("home"),
            call: at("call"),
            admin: at("admin"),
            hooks: vec![at("hook")],
            settings: vec![at("settings")],
            process: i32::try_from(self.process.id()).ok(),
        }
    }
}

/// Attacks the keeper of this machine, if it decides for this account.
pub(super) fn attack() -> Result<Vec<MachineLine>, Failure> {
    if !Home::is_served() {
        return Ok(Vec::new());
    }
    let control = Control::make().map_err(|error| {
        Failure::new(Exit::Failed, format!("there is nothing to compare the keeper with: {error}"))
    })?;
    let (keeper, control) = (Targets::of_machine()?, control.targets());
    let on_settings = ON_SETTINGS.iter().filter(|_| !keeper.settings.is_empty());
    let tried = |(attempt, run): &Attempt| line(attempt, run(&keeper), run(&control));
    Ok(ATTEMPTS.iter().chain(on_settings).map(tried).collect())
}

/// The files with a hook for every user, and the programs that they name.
fn installed(inspected: impl Iterator<Item = Inspection>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut settings, mut hooks) = (BTreeSet::new(), BTreeSet::new());
    for inspection in inspected.filter(|inspection| inspection.is_managed) {
        let lines = inspection.hooks.iter().filter_map(|hook| hook.line.as_ref());
        hooks.extend(lines.map(|line| PathBuf::from(&line.program)));
        settings.insert(inspection.file);
    }
    (settings.into_iter().collect(), hooks.into_iter().collect())
}

fn line(attempt: &'static str, keeper: io::Result<()>, control: io::Result<()>) -> MachineLine {
    let [keeper, control] = [keeper, control].map(Outcome::on_machine);
    let is_wrong = keeper == Outcome::Open;
    MachineLine { attempt, keeper, control, is_wrong }
}

/// Succeeds if it succeeds with any of the files; otherwise one that could not be tried counts before those that hold.
fn any(files: &[PathBuf], attempt: fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut refused: Option<io::Error> = None;
    for file in files {
        let Err(error) = attempt(file) else { return Ok(()) };
        if refused.as_ref().is_none_or(|refused| is_refusal(refused.kind())) || is_open(error.kind()) {
            refused = Some(io::Error::new(error.kind(), format!("{}: {error}", file.display())));
        }
        if is_open(error.kind()) {
            break;
        }
    }
    Err(refused.unwrap_or_else(|| absent("there is no such file")))
}

fn absent(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, what)
}

fn open_to_change(file: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(file).map(drop)
}

/// Whoever can put a socket into the folder can put it in the place of the one that is there.
fn replace(folder: &Path) -> io::Result<()> {
    let socket = folder.join(own_name());
    // A folder of which nothing can be seen is closed, and one that is gone is not there.
    fs::metadata(folder)?;
    let _listening = UnixListener::bind(&socket)?;
    let answered = UnixStream::connect(&socket).map(drop);
    remove(&socket);
    answered
}

/// Whoever can make a file in one of the folders around it can put another one in its place, or move the folder away. Nothing is
/// moved: without the hook agents would ask nobody.
fn put_beside(file: &Path) -> io::Result<()> {
    fs::metadata(file)?;
    let own = own_user();
    let mut refused = None;
    for (part, folder) in file.ancestors().zip(file.ancestors().skip(1)) {
        let (of_part, of_folder) = (fs::symlink_metadata(part)?, fs::metadata(folder)?);
        let made = folder.join(own_name());
        let made_there = OpenOptions::new().write(true).create_new(true).open(&made);
        let error = if let Err(error) = made_there {
            error
        } else {
            remove(&made);
            // In a folder with the sticky bit nobody can replace what another owns.
            if of_folder.mode() & 0o1000 == 0 || [of_part.uid(), of_folder.uid()].contains(&own) {
                return Ok(());
            }
            io::Error::new(io::ErrorKind::PermissionDenied, "it is another account's, in a sticky folder")
        };
        // That of the nearest folder says most.
        refused.get_or_insert(error);
    }
    Err(refused.unwrap_or_else(|| absent("it is in no folder")))
}

/// Not left over from another run.
fn own_name() -> String {
    format!(".countersign-attack-{}", std::process::id())
}

fn remove(file: &Path) {
    if let Err(error) = fs::remove_file(file) {
        say(&format!("! {} was made and can't be removed ({error}). Remove it yourself.", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{
        hook_line::{HookLine, keeper::KeeperPlace},
        hosts::{claude, codex},
        install::inspection::InstalledHook,
        sandbox::place::hook_line,
    };

    fn all() -> impl Iterator<Item = &'static Attempt> {
        ATTEMPTS.iter().chain(&ON_SETTINGS)
    }

    #[test]
    fn everything_succeeds_on_what_belongs_to_this_account() {
        let control = Control::make().unwrap();
        let targets = control.targets();
        for (attempt, run) in all() {
            assert_eq!(Outcome::on_machine(run(&targets)), Outcome::Open, "{attempt}");
        }
        // And left no trace.
        let count = |name: &str| fs::read_dir(control.folder.path().join(name)).unwrap().count();
        assert_eq!(["home", "call", "admin", ""].map(count), [1, 1, 1, 5]);
        assert_eq!(fs::read(targets.rules()).unwrap(), b"");
    }

    #[test]
    fn what_an_earlier_run_has_left_changes_nothing() {
        let control = Control::make().unwrap();
        let at = |name: &str| control.folder.path().join(name);
        fs::create_dir_all(at("home.moved/inner")).unwrap();
        fs::write(at("call/attack.sock"), "").unwrap();
        for (attempt, run) in all() {
            assert_eq!(Outcome::on_machine(run(&control.targets())), Outcome::Open, "{attempt}");
        }
    }

    #[test]
    fn what_is_not_there_was_not_tried() {
        let folder = tempfile::tempdir().unwrap();
        let gone = |name: &str| folder.path().join(name);
        let targets = Targets {
            home: gone("home"),
            call: gone("call"),
            admin: gone("admin"),
            hooks: vec![gone("hook")],
            settings: vec![gone("settings")],
            process: None,
        };
        for (attempt, run) in all() {
            assert!(matches!(Outcome::on_machine(run(&targets)), Outcome::NotTried { .. }), "{attempt}");
        }
    }

    #[test]
    fn what_is_refused_holds_and_what_succeeds_is_wrong() {
        let refused = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let held = line("x", refused(), Ok(()));
        assert!(!held.is_wrong && matches!(held.keeper, Outcome::Held { .. }));
        assert!(line("x", Ok(()), Ok(())).is_wrong);
    }

    #[test]
    fn one_file_that_is_open_is_enough_and_one_that_is_gone_is_said() {
        fn by_name(file: &Path) -> io::Result<()> {
            match file.to_str() {
                Some("open") => Ok(()),
                Some("busy") => Err(io::ErrorKind::ExecutableFileBusy.into()),
                Some("gone") => Err(io::ErrorKind::NotFound.into()),
                _ => Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
        let outcome = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            Outcome::on_machine(any(&files, by_name))
        };
        assert_eq!(outcome(&["held", "open", "gone"]), Outcome::Open);
        assert_eq!(outcome(&["gone", "busy", "held"]), Outcome::Open);
        assert!(
            matches!(outcome(&["held", "gone", "held"]), Outcome::NotTried { why } if why.starts_with("gone"))
        );
        assert!(matches!(outcome(&["held", "closed"]), Outcome::Held { .. }));
        assert!(matches!(outcome(&[]), Outcome::NotTried { .. }));
    }

    #[test]
    fn a_file_that_can_be_replaced_is_open_though_it_can_not_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("settings");
        fs::write(&settings, "").unwrap();
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o400)).unwrap();
        put_beside(&settings).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn every_file_and_program_of_a_hook_for_all_users_is_attacked_and_no_other() {
        let inspected = |host: hosts::Host, is_managed, file: &str, program: &str| {
            let line = HookLine { program: program.to_owned(), ..hook_line(host, KeeperPlace::System) };
            let hook = InstalledHook { event: "PreToolUse".to_owned(), line: Some(line), limit: None };
            Inspection {
                host: host.names,
                is_managed,
                file: file.into(),
                hooks: vec![hook],
                findings: Vec::new(),
            }
        };
        let (settings, hooks) = installed(
            [
                inspected(
                    claude::HOST,
                    false,
                    "/home/ada/.claude/settings.json",
                    "/home/ada/countersign-hook",
                ),
                inspected(claude::HOST, true, "/etc/claude-code/managed-settings.json", "/usr/lib/one"),
                inspected(codex::HOST, true, "/etc/codex/requirements.toml", "/usr/lib/two"),
            ]
            .into_iter(),
        );
        assert_eq!(
            settings,
            ["/etc/claude-code/managed-settings.json", "/etc/codex/requirements.toml"].map(PathBuf::from)
        );
        assert_eq!(hooks, ["/usr/lib/one", "/usr/lib/two"].map(PathBuf::from));
    }
}
