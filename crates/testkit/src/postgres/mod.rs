//! A private PostgreSQL server per test, from Debian's packages: on a free loopback port, in a temporary folder,
//! stopped when its owner is dropped.

mod programs;
mod resync;
mod server;
mod standby;
mod template;

use std::path::PathBuf;

use tempfile::TempDir;

use programs::Programs;
pub use programs::{command_as_server_user, hand_over_to_server_user, programs_folder};
pub use resync::Resync;
use server::{NotStarted, Server};

use crate::child_process::free_port;

/// How many ports to try: another process may take a free port before the server binds it.
const PORTS_TO_TRY: u32 = 5;

/// A private server with one empty database. When dropped it stops at once and its folder is removed.
#[derive(Debug)]
pub struct Postgres {
    programs: Programs,
    folder: TempDir,
    port: u16,
    /// Settings beside our own, as `name=value`; the server keeps them when it is started again.
    settings: Vec<String>,
    server: Option<Server>,
}

impl Postgres {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    ///
    /// Where there is no PostgreSQL, or it does not start: a test that needs it must fail, not be skipped.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these settings, each `name=value`, in place of ours.
    ///
    /// # Panics
    ///
    /// As [`Postgres::start`].
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_at(template::temporary_folder(), settings)
    }

    /// The same, with its data in this folder, which is empty.
    ///
    /// # Panics
    ///
    /// As [`Postgres::start`].
    pub fn start_at(folder: TempDir, settings: &[&str]) -> Self {
        let programs = Programs::find();
        template::copy(&programs, folder.path());
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self::start_in(programs, folder, settings)
    }

    /// One of the programs that come with the server, such as `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    fn start_in(programs: Programs, folder: TempDir, settings: Vec<String>) -> Self {
        let mut last_log = String::new();
        for _ in 0..PORTS_TO_TRY {
            let port = free_port();
            match Server::start(&programs, folder.path(), port, &settings) {
                Ok(server) => return Self { programs, folder, port, settings, server: Some(server) },
                Err(NotStarted::PortIsTaken(log)) => last_log = log,
                Err(NotStarted::Refused(log)) => panic!("PostgreSQL does not start:\n{log}"),
            }
        }
        panic!("PostgreSQL found no free port:\n{last_log}");
    }

    /// The libpq connection string of its database, as superuser.
    pub fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// The port, which stays the same for as long as this lives.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the postmaster.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.server.as_ref().expect("the server runs").pid()
    }

    /// Whether the postmaster still runs. It ends by itself when it can't recover from a crash, on a full disk for example.
    pub fn is_running(&mut self) -> bool {
        self.server.as_mut().is_some_and(Server::is_running)
    }

    /// Stops it as an operator would: open transactions are rolled back, connections closed. Does nothing if
    /// the server does not run.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end("INT");
        }
    }

    /// Kills the postmaster as a crash would, and returns when its children are gone too, so that it can be
    /// restarted. Does nothing if it does not run.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.end("KILL");
        }
    }

    /// Starts it again after [`Postgres::stop`] or [`Postgres::kill`], with the same data on the same port.
    ///
    /// # Panics
    ///
    /// When it runs already or does not start.
    pub fn start_again(&mut self) {
        assert!(self.server.is_none(), "the server still runs");
        match Server::start(&self.programs, self.folder.path(), self.port, &self.settings) {
            Ok(server) => self.server = Some(server),
            Err(NotStarted::PortIsTaken(log) | NotStarted::Refused(log)) => {
                panic!("PostgreSQL does not start again:\n{log}")
            }
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end("QUIT");
        }
    }
}
