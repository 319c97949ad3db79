//! A node of the gateway as a process that is started again whenever it ends.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_testkit::child_process::spawn_from_permanent_thread;
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::process::signal;
use crate::{Failure, servers::ends_with_us, stopwatch::Stopwatch};

/// Debian's `faketime` has its library here, below the folder of the machine's architecture.
const LIBRARIES: &str = "/usr/lib";
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

/// How long a node that ended by itself stays down, as with a service manager.
const RESTART_DELAY: Duration = Duration::from_millis(300);

const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A node drains for up to 10 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How a node's program is started: the words before `--config`.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) serve: Vec<String>,
    /// The words after the name of the file.
    pub(crate) after: Vec<String>,
}

/// One node. When dropped it is killed.
#[derive(Debug)]
pub(crate) struct Node {
    shared: Arc<Shared>,
    supervisor: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    port: u16,
    clock_library: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    program: Program,
    child: Option<Child>,
    /// When it may be started again; `None` while it must stay down.
    start_at: Option<Instant>,
    starts: u64,
}

impl Node {
    /// A node with its configuration in `folder`, which it listens on `port` with. It is being started.
    pub(crate) fn start(program: Program, folder: PathBuf, port: u16) -> Result<Self, Failure> {
        let state = State { program, child: None, start_at: Some(Instant::now()), starts: 0 };
        let clock_library = clock_library();
        let shared = Arc::new(Shared { folder, port, clock_library, state: Mutex::new(state) });
        shared.write_clock(0)?;
        let supervised = Arc::clone(&shared);
        let supervisor = tokio::spawn(async move {
            loop {
                supervised.supervise();
                sleep(CHECK_INTERVAL).await;
            }
        });
        Ok(Self { shared, supervisor })
    }

    pub(crate) fn port(&self) -> u16 {
        self.shared.port
    }

    pub(crate) fn can_move_clock(&self) -> bool {
        self.shared.clock_library.is_some()
    }

    /// Moves its wall clock by this many seconds from the right time, within a second.
    pub(crate) fn move_clock(&self, seconds: i64) -> Result<(), Failure> {
        self.shared.write_clock(seconds)
    }

    /// Kills it. It is started again after `down`.
    pub(crate) fn kill(&self, down: Duration) -> Result<(), Failure> {
        let mut state = self.shared.state.lock();
        if let Some(mut child) = state.child.take() {
            child.kill()?;
            child.wait()?;
            clean_up_after(child.id());
        }
        state.start_at = Some(Instant::now() + down);
        Ok(())
    }

    /// Sends its process a signal, if it runs.
    pub(crate) fn signal(&self, number: Signal) -> Result<(), Failure> {
        match &self.shared.state.lock().child {
            Some(child) => signal(child.id(), number),
            None => Ok(()),
        }
    }

    /// Stops it as an operator would, waits until it has drained, and starts `program` in its place.
    pub(crate) async fn restart(&self, program: Program) -> Result<Duration, Failure> {
        let stopped = {
            let mut state = self.shared.state.lock();
            state.start_at = None;
            state.program = program;
            state.child.take()
        };
        let watch = Stopwatch::start();
        if let Some(mut child) = stopped {
            signal(child.id(), Signal::TERM)?;
            let exited = async {
                while child.try_wait()?.is_none() {
                    sleep(CHECK_INTERVAL).await;
                }
                Ok::<(), Failure>(())
            };
            let drained = timeout(STOP_TIMEOUT, exited).await;
            clean_up_after(child.id());
            if drained.is_err() {
                child.kill()?;
                child.wait()?;
                return Err(format!("a node did not stop within {STOP_TIMEOUT:?}").into());
            }
        }
        self.shared.state.lock().start_at = Some(Instant::now());
        Ok(watch.elapsed())
    }

    /// How often its process was started.
    pub(crate) fn starts(&self) -> u64 {
        self.shared.state.lock().starts
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.supervisor.abort();
        let mut state = self.shared.state.lock();
        state.start_at = None;
        if let Some(mut child) = state.child.take() {
            drop((child.kill(), child.wait()));
            clean_up_after(child.id());
        }
    }
}

impl Shared {
    /// Starts the process if it should run and does not.
    fn supervise(&self) {
        let mut state = self.state.lock();
        if state.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|exited| exited.is_some())) {
            let ended = state.child.take();
            clean_up_after(ended.map_or(0, |child| child.id()));
            state.start_at = Some(Instant::now() + RESTART_DELAY);
        }
        let is_due = state.start_at.is_some_and(|at| at <= Instant::now());
        if state.child.is_none() && is_due {
            // A file that can't be opened is tried again.
            state.child = self.command(&state.program).ok().map(spawn_from_permanent_thread);
            state.starts += 1;
        }
    }

    fn command(&self, program: &Program) -> Result<Command, Failure> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let (first, rest) = program.serve.split_first().ok_or("a program has a name")?;
        let mut command = ends_with_us("KILL", first);
        command.args(rest).arg("--config").arg(self.folder.join("gateway.toml")).args(&program.after);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        if let Some(library) = &self.clock_library {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.clock_file());
            command.env("FAKETIME_CACHE_DURATION", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        Ok(command)
    }

    fn clock_file(&self) -> PathBuf {
        self.folder.join("clock")
    }

    /// The library reads it every second. A rename lets it see the old file or the new one, never half of it.
    fn write_clock(&self, seconds: i64) -> Result<(), Failure> {
        let new = self.folder.join("clock.new");
        fs::write(&new, format!("{seconds:+}\n"))?;
        Ok(fs::rename(new, self.clock_file())?)
    }
}

/// The library that moves the clock of a process, if Debian's package `faketime` is installed.
fn clock_library() -> Option<PathBuf> {
    let folders = fs::read_dir(LIBRARIES).ok()?;
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join(FAKETIME)));
    files.into_iter().find(|file| file.is_file())
}

/// Removes what the library leaves in shared memory when its process is killed.
fn clean_up_after(pid: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        // It is there only where the library is used.
        drop(fs::remove_file(Path::new("/dev/shm").join(format!("{name}{pid}"))));
    }
}
