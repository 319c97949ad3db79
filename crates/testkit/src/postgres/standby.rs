//! Failover: a standby becomes the primary, and the former primary becomes its standby.

use std::process::Command;

use tempfile::TempDir;

use super::{
    Postgres,
    programs::Programs,
    resync::{self, Resync},
    template,
};
use crate::child_process::output;

impl Postgres {
    /// Starts a standby of this server from a copy of its data. It is synchronous once the server's
    /// `synchronous_standby_names` is `*`.
    ///
    /// # Panics
    ///
    /// Where the data can't be copied, or the standby does not start.
    #[must_use]
    pub fn start_standby(&self) -> Self {
        self.start_standby_at(template::temporary_folder())
    }

    /// The same, with its data in this folder, which is empty.
    ///
    /// # Panics
    ///
    /// As [`Postgres::start_standby`].
    #[must_use]
    pub fn start_standby_at(&self, folder: TempDir) -> Self {
        let programs = Programs::find();
        resync::base_backup(&programs, folder.path(), &self.url());
        Self::start_in(programs, folder, self.settings.clone())
    }

    /// Makes a standby the primary. Returns when it can be written to.
    ///
    /// # Panics
    ///
    /// When it is no standby, or does not run.
    pub fn promote(&self) {
        let mut promote = self.programs.command("pg_ctl", self.folder.path());
        output(promote.args(["promote", "--wait", "--timeout=60", "-D"]).arg(self.folder.path()));
        // pg_rewind reads the timeline from the control file, which the next checkpoint writes.
        let mut checkpoint = Command::new(self.program("psql"));
        output(checkpoint.args(["--no-psqlrc", "-d", &self.url(), "-c", "CHECKPOINT"]));
    }

    /// Starts this server, which does not run, as a standby of `primary`, whatever it has that `primary` does not have.
    ///
    /// # Panics
    ///
    /// When it runs, or does not start.
    pub fn follow(&mut self, primary: &Self) -> Resync {
        assert!(self.server.is_none(), "the server still runs");
        let resync = resync::resync(&self.programs, self.folder.path(), &primary.url());
        self.start_again();
        resync
    }
}
