//! What code of an agent may try. Each attempt either succeeds or says how it was refused.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixStream},
    },
    path::{Path, PathBuf},
};

use rustix::{
    mount::{UnmountFlags, unmount},
    process::{Pid, test_kill_process},
};
use serde::{Deserialize, Serialize};

/// What is attacked, by its paths and numbers at the point from where it is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// The folder of Countersign.
    pub ours: PathBuf,
    /// The settings with the hook.
    pub settings: PathBuf,
    /// The program of the hook.
    pub hook: PathBuf,
    /// The socket at which hooks ask the keeper.
    pub call: PathBuf,
    /// The number of the keeper's process.
    pub keeper: i32,
    /// A process of the person, and a word of its command line.
    pub outsider: (i32, String),
    /// Another project of the person.
    pub elsewhere: PathBuf,
    /// A service of the person, by the path of its socket and by an abstract name.
    pub service: (PathBuf, String),
    /// A folder that can be written to.
    pub scratch: PathBuf,
    /// The word for the host that is attacked.
    pub host: String,
}

/// How each attempt was refused; nothing if it succeeded.
pub type Results = BTreeMap<String, Option<String>>;

/// One thing that code of an agent may try.
#[derive(Debug)]
pub struct Attempt {
    /// What is tried, in words.
    pub name: &'static str,
    run: fn(&Targets) -> io::Result<()>,
    /// Whether it is open to whatever runs beside the host, and only a host's own sandbox for tools holds it.
    pub is_open_beside_host: bool,
    /// Whether it is about the host itself, so that there has to be one.
    pub needs_host: bool,
}

const fn held(name: &'static str, run: fn(&Targets) -> io::Result<()>) -> Attempt {
    Attempt { name, run, is_open_beside_host: false, needs_host: false }
}

const fn open_beside_host(name: &'static str, run: fn(&Targets) -> io::Result<()>) -> Attempt {
    Attempt { name, run, is_open_beside_host: true, needs_host: false }
}

/// All of them, in the order in which they are tried.
pub const ATTEMPTS: &[Attempt] = &[
    held("read the keys", |targets| fs::read(targets.ours.join("profiles/agent/secret")).map(drop)),
    held("change the rules", |targets| append(&targets.ours.join("rules.toml"))),
    held("change the journal", |targets| append(&targets.ours.join("profiles/agent/journal"))),
    held("write to the settings with the hook", |targets| append(&targets.settings)),
    held("put other settings in their place", |targets| {
        let other = targets.scratch.join("other-settings");
        fs::write(&other, "{}")?;
        fs::rename(other, &targets.settings)
    }),
    held("remove the settings", |targets| fs::remove_file(&targets.settings)),
    held("move the folder of the settings away", |targets| move_away(targets.settings.parent())),
    held("uncover what lies below the settings", |targets| uncover(&targets.settings)),
    held("change the program of the hook", |targets| append(&targets.hook)),
    held("put a socket in place of the keeper's", |targets| move_away(targets.call.parent())),
    held("signal the keeper", |targets| signal(targets.keeper, "keeper")),
    held("see a process outside", |targets| is_process(targets.outsider.0, &targets.outsider.1)),
    held("read another project", |targets| fs::read(targets.elsewhere.join("file")).map(drop)),
    held("call a service outside by its path", |targets| UnixStream::connect(&targets.service.0).map(drop)),
    open_beside_host("call a service outside by its abstract name", |targets| {
        let address = SocketAddr::from_abstract_name(&targets.service.1)?;
        UnixStream::connect_addr(&address).map(drop)
    }),
    open_beside_host("call the keeper without the hook", |targets| {
        UnixStream::connect(&targets.call).map(drop)
    }),
    Attempt {
        name: "read the memory of the host",
        run: |targets| memory_of_host(&targets.host),
        is_open_beside_host: true,
        needs_host: true,
    },
];

/// Tries everything, from where this process runs.
pub fn run(targets: &Targets) -> Results {
    let tried = |attempt: &Attempt| {
        let refused = (attempt.run)(targets).err().map(|error| error.to_string());
        (attempt.name.to_owned(), refused)
    };
    ATTEMPTS.iter().map(tried).collect()
}

fn append(file: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(file)?.write_all(b"\n")
}

fn move_away(folder: Option<&Path>) -> io::Result<()> {
    let folder = folder.ok_or(io::ErrorKind::InvalidInput)?;
    let away = folder.with_extension("moved");
    fs::rename(folder, &away)?;
    fs::rename(away, folder)
}

/// Where the file itself can be changed, nothing covers it.
fn uncover(file: &Path) -> io::Result<()> {
    match append(file) {
        Ok(()) => Ok(()),
        Err(_) => Ok(unmount(file, UnmountFlags::DETACH)?),
    }
}

fn signal(process: i32, word: &str) -> io::Result<()> {
    let number = Pid::from_raw(process).ok_or(io::ErrorKind::NotFound)?;
    test_kill_process(number)?;
    is_process(process, word)
}

/// In another namespace another process may have the number.
fn is_process(process: i32, word: &str) -> io::Result<()> {
    let line = fs::read(format!("/proc/{process}/cmdline"))?;
    match String::from_utf8_lossy(&line).contains(word) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "that process is not there")),
    }
}

/// Opens the memory of the nearest process above this one that is a host, also through an interpreter.
fn memory_of_host(host: &str) -> io::Result<()> {
    let mut process = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
    while process > 1 {
        let line = fs::read(format!("/proc/{process}/cmdline"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_named = |word: &str| {
            let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.trim_start_matches('.').starts_with(host)
        };
        if line.split('\0').take(2).any(is_named) {
            return File::open(format!("/proc/{process}/mem")).map(drop);
        }
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        process = fields.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()).unwrap_or(0);
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the host is not among its ancestors"))
}
