//! What is in a sandbox, in the order in which it is put there.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::lists::{OF_THE_SYSTEM, TOOLS, VARIABLES, is_never_passed};
use crate::{
    call_socket::place::SYSTEM_FOLDER,
    examine::{git::folder::GitFolder, repository},
    hook_line::{self, HookLine, keeper::KeeperPlace, mode::Mode},
    hosts::{
        Host,
        spec::{Contained, State},
    },
    tool::exit::{Exit, Failure},
};

/// Ours in the sandbox: on a file system that nobody in there can write to, so nothing of it can be moved away.
pub const OURS: &str = "/run/countersign-sandbox";

/// The folder that hooks are told as our home: it has the keeper's socket and nothing else.
pub const HOME: &str = "/run/countersign-sandbox/home";

/// This tool in the sandbox.
pub const TOOL: &str = "/run/countersign-sandbox/bin/countersign";

/// The program of the hook.
pub const HOOK: &str = "/run/countersign-sandbox/bin/countersign-hook";

/// How long hosts wait for an answer.
const HOST_TIMEOUT: Duration = Duration::from_mins(10);

/// What somebody wants to run, and how narrow the place is to be.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The program of a host, as it is typed and found.
    pub program: &'a Path,
    /// What is to be started.
    pub host: Host,
    /// The folder that it is started in, as an absolute path.
    pub folder: &'a Path,
    /// Which keeper decides about its calls.
    pub keeper: KeeperPlace,
    /// The person's own folder, HOME.
    pub user: &'a Path,
    /// The folder of Countersign, of which only the keeper's socket is in the sandbox.
    pub ours: &'a Path,
    /// Our two programs, which hooks are.
    pub programs: &'a [PathBuf],
    /// What may be written to in place of the whole project.
    pub writes: &'a [PathBuf],
    /// Whether there is a network.
    pub has_network: bool,
    /// Variables that are passed besides the usual ones.
    pub passed: &'a [String],
    /// The environment that they come from.
    pub environment: &'a [(OsString, OsString)],
    /// The settings that its users can't change.
    pub settings: &'a [(PathBuf, String)],
}

/// One thing that is put into the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A folder or a file that can be read, from a path, at a path.
    Read(PathBuf, PathBuf),
    /// The same, that can be written to.
    Write(PathBuf, PathBuf),
    /// A file with this text, which nobody can write to.
    Text(PathBuf, String),
    /// A link at a path, and what stands in it.
    Link(PathBuf, PathBuf),
    /// An empty folder of the sandbox's own, in memory.
    Empty(PathBuf),
    /// From here on nothing is put into this folder, and nobody in the sandbox can.
    Close(PathBuf),
}

/// What is in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In the order in which it is put there.
    pub parts: Vec<Part>,
    /// All of the environment, in its order.
    pub variables: Vec<(OsString, OsString)>,
    /// Names that were not passed.
    pub dropped: Vec<String>,
    /// The folder that the program starts in.
    pub folder: PathBuf,
    /// The repository around that folder, or the folder.
    pub project: PathBuf,
    /// Whether there is a network.
    pub has_network: bool,
}

impl Place {
    /// What is in the sandbox for this.
    pub fn of(wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let contained = contained(wanted.host)?;
        let project = project(wanted)?;
        let (variables, dropped) = variables(wanted, contained)?;
        let mut parts = system()?;
        parts.push(Part::Empty(PathBuf::from("/tmp")));
        parts.push(Part::Empty(wanted.user.to_owned()));
        parts.extend(tools(wanted));
        parts.extend(state(wanted.user, contained));
        parts.extend(of_project(wanted, &project)?);
        // Last, so that nothing lies over what protects.
        parts.extend(settings(wanted.settings)?);
        parts.extend(ours(wanted));
        let place = Self {
            parts,
            variables,
            dropped,
            folder: wanted.folder.to_owned(),
            project,
            has_network: wanted.has_network,
        };
        place.keeps_ours_apart(wanted)?;
        Ok(place)
    }

    /// The folders and files that can be written to.
    pub fn writable(&self) -> Vec<&Path> {
        let found = self.parts.iter().filter_map(|part| match part {
            Part::Write(_, at) => Some(at.as_path()),
            _ => None,
        });
        found.collect()
    }

    /// The same without the host's own.
    pub fn writable_besides(&self, user: &Path, contained: &Contained) -> Vec<&Path> {
        let own = state(user, contained);
        let is_own = |path: &&Path| own.iter().any(|part| at(part) == *path);
        self.writable().into_iter().filter(|path| !is_own(path)).collect()
    }

    /// Nothing that can be written to may have our keys, our programs or the person's whole home in it.
    fn keeps_ours_apart(&self, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let kept = wanted.programs.iter().map(PathBuf::as_path).chain([wanted.ours]);
        for kept in kept.map(real) {
            let is_open = |open: &PathBuf| kept.starts_with(open) || open.starts_with(&kept);
            if let Some(open) = self.writable().into_iter().map(real).find(is_open) {
                let what =
                    format!("{} lies in {}, which the agent could write to", kept.display(), open.display());
                return Err(Failure::new(Exit::NotSetUp, what)
                    .next("install Countersign elsewhere, such as in /usr/local/bin"));
            }
        }
        let (ours, call) = (real(wanted.ours), wanted.ours.join("call"));
        let readable = self.parts.iter().filter_map(|part| match part {
            Part::Read(from, _) if *from != call => Some(real(from)),
            _ => None,
        });
        match readable.into_iter().find(|open| ours.starts_with(open) || open.starts_with(&ours)) {
            None => Ok(()),
            Some(open) => {
                let what = format!("{} would be seen in the sandbox, with the keys in it", open.display());
                Err(Failure::new(Exit::NotSetUp, what).next("move Countersign's folder, or that one"))
            }
        }
    }
}

/// The line of the hook of a host: it asks the keeper about every call.
pub fn hook_line(host: Host, keeper: KeeperPlace) -> HookLine {
    let home = (keeper == KeeperPlace::User).then(|| HOME.to_owned());
    HookLine {
        program: HOOK.to_owned(),
        host: host.names,
        place: hook_line::place::Place { home, profile_file: None },
        keeper: Some(keeper),
        mode: Mode::Gate,
        host_timeout: HOST_TIMEOUT,
    }
}

/// What is known of a host in a sandbox.
pub fn contained(host: Host) -> Result<&'static Contained, Failure> {
    host.contained().ok_or_else(|| {
        let what = format!(
            "{} can't be run in the sandbox: it has no settings that its users can't change",
            host.name()
        );
        Failure::new(Exit::Failed, what)
            .next("run it in a container of your own that sees only the keeper's socket (docs/keeper.md)")
    })
}

/// The repository around the folder, or the folder. What holds the whole home is no project.
fn project(wanted: &Wanted<'_>) -> Result<PathBuf, Failure> {
    let project = repository::root_of(wanted.folder).unwrap_or_else(|| wanted.folder.to_owned());
    match wanted.user.starts_with(&project) || project == Path::new("/") {
        false => Ok(project),
        true => Err(Failure::new(
            Exit::Usage,
            format!("{} is no project: it has your whole home in it", project.display()),
        )
        .next("go to the folder of a project first")),
    }
}

/// The programs of the system, its settings, and the folders that every process needs.
fn system() -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for path in OF_THE_SYSTEM.iter().map(PathBuf::from) {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                parts
                    .push(Part::Link(fs::read_link(&path).map_err(|error| unreadable(&path, &error))?, path));
            }
            Ok(_) => parts.push(Part::Read(path.clone(), path)),
            Err(_) => {}
        }
    }
    // It has the socket of a service.
    let services = Path::new("/nix/var");
    parts.extend(services.is_dir().then(|| Part::Empty(services.to_owned())));
    Ok(parts)
}

/// A copy of `/etc` in which these files stand. Its folders lie in memory, so that nothing can be put in their place. Those that
/// belong into the host's own folder lie over what is there, and nobody in the sandbox can move the folder, which is a mount.
fn settings(files: &[(PathBuf, String)]) -> Result<Vec<Part>, Failure> {
    let etc = Path::new("/etc");
    let (files, of_host): (Vec<_>, Vec<_>) =
        files.iter().cloned().partition(|(path, _)| path.starts_with(etc));
    let files = &files;
    let mut parts = vec![Part::Empty(etc.to_owned())];
    let folders: BTreeSet<&Path> = files.iter().filter_map(|(path, _)| path.parent()).collect();
    parts.extend(copied(etc, |path| folders.contains(path) || files.iter().any(|(file, _)| file == path))?);
    for folder in folders.into_iter().filter(|folder| *folder != etc && folder.is_dir()) {
        parts.extend(copied(folder, |path| files.iter().any(|(file, _)| file == path))?);
    }
    parts.extend(files.iter().map(|(path, text)| Part::Text(path.clone(), text.clone())));
    parts.push(Part::Close(etc.to_owned()));
    parts.extend(of_host.into_iter().map(|(path, text)| Part::Text(path, text)));
    Ok(parts)
}

/// What is in a folder, one by one, apart from what something else takes the place of.
fn copied(folder: &Path, is_replaced: impl Fn(&Path) -> bool) -> Result<Vec<Part>, Failure> {
    let failed = |error: io::Error| unreadable(folder, &error);
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_replaced(&path) {
            continue;
        }
        let link = fs::read_link(&path).ok();
        let leads_to_run = fs::canonicalize(&path).ok().filter(|real| real.starts_with("/run"));
        match (link, leads_to_run) {
            // Such as the addresses of name servers.
            (Some(_), Some(real)) => parts.push(Part::Read(real, path)),
            (Some(target), None) => parts.push(Part::Link(target, path)),
            (None, _) if is_readable(&path) => parts.push(Part::Read(path.clone(), path)),
            (None, _) => {}
        }
    }
    parts.sort_by(|one, other| at(one).cmp(at(other)));
    Ok(parts)
}

fn at(part: &Part) -> &Path {
    match part {
        Part::Read(_, at)
        | Part::Write(_, at)
        | Part::Text(at, _)
        | Part::Link(_, at)
        | Part::Empty(at)
        | Part::Close(at) => at,
    }
}

/// Whether others than root can read it: what they can't, no agent needs.
fn is_readable(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
}

/// The host's program, and what people build with.
fn tools(wanted: &Wanted<'_>) -> Vec<Part> {
    let mut paths: BTreeSet<PathBuf> = TOOLS.iter().map(|name| wanted.user.join(name)).collect();
    let real = fs::canonicalize(wanted.program).ok();
    let of_program = [Some(wanted.program.to_owned()), real].into_iter().flatten();
    paths.extend(of_program.filter_map(|path| package(&path)));
    let search = wanted.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let search = search.map(std::env::split_paths).into_iter().flatten();
    // A link could have been made by an agent in another project, and lead anywhere.
    let is_itself = |folder: &PathBuf| fs::canonicalize(folder).is_ok_and(|real| real == *folder);
    paths.extend(search.filter(|folder| folder.parent().is_some() && is_itself(folder)));
    let is_new = |path: &PathBuf| !OF_THE_SYSTEM.iter().any(|known| path.starts_with(known));
    let is_apart = |path: &PathBuf| !wanted.ours.starts_with(path) && !wanted.user.starts_with(path);
    let there = paths.into_iter().filter(|path| is_new(path) && is_apart(path) && path.exists());
    there.map(|path| Part::Read(path.clone(), path)).collect()
}

/// The folder that a program needs beside it: that with all packages, or its own.
fn package(program: &Path) -> Option<PathBuf> {
    let packages =
        program.ancestors().filter(|folder| folder.file_name() == Some(OsStr::new("node_modules")));
    packages.last().or(program.parent()).map(Path::to_owned)
}

/// Where the host keeps its sessions and the person's settings.
fn state(user: &Path, contained: &Contained) -> Vec<Part> {
    let path = |state: &State| match state {
        State::Folder(name) | State::File(name, _) => user.join(name),
    };
    contained.state.iter().map(path).map(|path| Part::Write(path.clone(), path)).collect()
}

/// Makes what the host would make itself at its first start, where it is missing: what is not there can't be put in.
/// `settings` are the files that lie over what is there; an empty one counts for nothing outside.
pub fn make_state(user: &Path, contained: &Contained, settings: &[&Path]) -> Result<(), Failure> {
    for state in contained.state {
        let (path, made) = match state {
            State::Folder(name) => {
                let path = user.join(name);
                let made = fs::create_dir_all(&path);
                (path, made)
            }
            State::File(name, content) => {
                let path = user.join(name);
                let made = if path.exists() { Ok(()) } else { fs::write(&path, content) };
                (path, made)
            }
        };
        made.map_err(|error| unreadable(&path, &error))?;
    }
    for file in settings.iter().filter(|file| file.starts_with(user) && !file.exists()) {
        let mut options = fs::OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(file);
        made.map(drop).map_err(|error| unreadable(file, &error))?;
    }
    Ok(())
}

/// The project, and where Git keeps the files of a work tree that is not the first.
fn of_project(wanted: &Wanted<'_>, project: &Path) -> Result<Vec<Part>, Failure> {
    let folders = [Some(project.to_owned()), repository_of_work_tree(project)].into_iter().flatten();
    let is_narrow = !wanted.writes.is_empty();
    let part = |path: PathBuf| match is_narrow {
        true => Part::Read(path.clone(), path),
        false => Part::Write(path.clone(), path),
    };
    let mut parts: Vec<Part> = folders.map(part).collect();
    for named in wanted.writes {
        let path = wanted.folder.join(named);
        let real = fs::canonicalize(&path).map_err(|error| unreadable(&path, &error))?;
        if !real.starts_with(project) {
            let what = format!("{} is outside of the project {}", real.display(), project.display());
            return Err(Failure::new(Exit::Usage, what).next("name folders of the project with --write"));
        }
        parts.push(Part::Write(real.clone(), real));
    }
    Ok(parts)
}

/// The folder with the repository of a work tree that Git has made elsewhere. The project says which it is, and an agent may have
/// written that; so it counts only if the repository says the same, where the agent could not write.
fn repository_of_work_tree(project: &Path) -> Option<PathBuf> {
    let git = GitFolder::of(project)?;
    let [own, common] = [git.own, git.common].map(|folder| fs::canonicalize(folder).ok());
    let (own, common) = (own?, common?);
    let is_elsewhere = !common.starts_with(project);
    let is_repository = ["HEAD", "objects", "refs"].iter().all(|name| common.join(name).exists());
    let named = fs::read_to_string(own.join("gitdir")).ok()?;
    let named = fs::canonicalize(own.join(named.trim())).ok()?;
    let is_own = own.parent() == Some(&common.join("worktrees"))
        && named == fs::canonicalize(project.join(".git")).ok()?;
    (is_elsewhere && is_repository && is_own).then_some(common)
}

/// The programs that hooks are, and the folder with the keeper's socket.
fn ours(wanted: &Wanted<'_>) -> Vec<Part> {
    let run = PathBuf::from("/run");
    let mut parts = vec![Part::Empty(run.clone())];
    for program in wanted.programs {
        let name = program.file_name().unwrap_or_default();
        parts.push(Part::Read(program.clone(), Path::new(OURS).join("bin").join(name)));
    }
    parts.push(match wanted.keeper {
        KeeperPlace::User => Part::Read(wanted.ours.join("call"), Path::new(HOME).join("call")),
        KeeperPlace::System => Part::Read(SYSTEM_FOLDER.into(), SYSTEM_FOLDER.into()),
    });
    parts.push(Part::Close(run));
    parts
}

/// The whole environment, and the names of what is not in it.
type Environment = (Vec<(OsString, OsString)>, Vec<String>);

fn variables(wanted: &Wanted<'_>, contained: &Contained) -> Result<Environment, Failure> {
    if let Some(name) = wanted.passed.iter().find(|name| is_never_passed(name)) {
        let what = format!("{name} can't be passed: it would load other code, or lead out of the sandbox");
        return Err(Failure::new(Exit::Usage, what).next("run it without"));
    }
    let is_passed = |name: &str| {
        VARIABLES.contains(&name)
            || name.starts_with("LC_")
            || contained.variables.contains(&name)
            || wanted.passed.iter().any(|asked| asked == name)
    };
    let (mut passed, mut dropped) = (Vec::new(), Vec::new());
    for (name, value) in wanted.environment {
        match name.to_str() {
            Some(text) if is_passed(text) => passed.push((name.clone(), value.clone())),
            _ => dropped.push(name.to_string_lossy().into_owned()),
        }
    }
    dropped.sort();
    Ok((passed, dropped))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{} can't be used for the sandbox: {error}", path.display()))
}

#[cfg(test)]
mod tests;
