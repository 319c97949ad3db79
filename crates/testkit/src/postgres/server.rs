//! One run of the server: the postmaster as our child, and what it writes to its log.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use super::programs::Programs;
use crate::child_process::{output, spawn_from_permanent_thread};

/// A server that has written nothing to its log for this long won't start.
const START_TIMEOUT: Duration = Duration::from_secs(15);

const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    // On is the default too; the tests of durability would be worth nothing without it.
    "shared_buffers=32MB",
];

/// A postmaster that was ready to accept connections.
#[derive(Debug)]
pub(super) struct Server {
    postmaster: Child,
    /// Ends when the last process that has the log open is gone.
    log_reader: JoinHandle<()>,
}

/// Why the server did not start, with its log.
#[derive(Debug)]
pub(super) enum NotStarted {
    PortIsTaken(String),
    Refused(String),
}

impl Server {
    pub(super) fn start(
        programs: &Programs,
        data: &Path,
        port: u16,
        settings: &[String],
    ) -> Result<Self, NotStarted> {
        let mut command = programs.command("postgres", data);
        command.arg("-D").arg(data).arg("-p").arg(port.to_string());
        // The last one counts.
        for setting in SETTINGS.iter().copied().chain(settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.stderr(Stdio::piped()).env("LC_ALL", "C");
        let mut postmaster = spawn_from_permanent_thread(command);
        let (lines, log) = mpsc::channel();
        let stderr = postmaster.stderr.take().expect("the log is piped");
        let log_reader = thread::spawn(move || read_log(stderr, &lines));

        let server = Self { postmaster, log_reader };
        let mut log_so_far = String::new();
        while let Ok(line) = log.recv_timeout(START_TIMEOUT) {
            log_so_far.push_str(&line);
            log_so_far.push('\n');
            // A standby is ready for "read-only connections".
            if line.contains("database system is ready to accept") {
                return Ok(server);
            }
        }
        server.end("KILL");
        if log_so_far.contains("Address already in use") {
            Err(NotStarted::PortIsTaken(log_so_far))
        } else {
            Err(NotStarted::Refused(log_so_far))
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.postmaster.id()
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.postmaster.try_wait().is_ok_and(|exited| exited.is_none())
    }

    /// Sends the postmaster this signal and returns when it and all its children are gone.
    pub(super) fn end(mut self, signal: &str) {
        // A child that exits after this check keeps its pid until we wait for it, so the pid can't belong to another process.
        if self.is_running() {
            output(Command::new("kill").args(["-s", signal]).arg(self.pid().to_string()));
        }
        self.postmaster.wait().expect("the postmaster is our child");
        // Its children inherited the log and close it after the shared memory that would keep a new server from
        // starting.
        self.log_reader.join().expect("reading the log does not panic");
    }
}

/// Reads to the end even if the receiver is gone: a full pipe would block the server.
fn read_log(stderr: ChildStderr, lines: &mpsc::Sender<String>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        lines.send(String::from_utf8_lossy(&line).into_owned()).ok();
    }
}
