//! Failover: a standby becomes the primary, and the former primary becomes its standby.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use super::{Postgres, programs::Programs, template};
use crate::child_process::output;

/// How a former primary got the history of the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// `pg_rewind` copied what differs.
    Rewound,
    /// `pg_rewind` was not possible: a new base backup.
    CopiedAnew,
}

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
        base_backup(&programs, folder.path(), self);
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
        let data = self.folder.path();
        let mut rewind = self.programs.command("pg_rewind", data);
        rewind
            .args(["--write-recovery-conf", "--source-server", &primary.url(), "--target-pgdata"])
            .arg(data);
        let rewound = rewind.output().is_ok_and(|done| done.status.success());
        // Without a difference it writes nothing, and the server would start as a second primary.
        let resync = if rewound && data.join("standby.signal").is_file() {
            Resync::Rewound
        } else {
            empty(data);
            base_backup(&self.programs, data, primary);
            Resync::CopiedAnew
        };
        self.start_again();
        resync
    }
}

fn base_backup(programs: &Programs, folder: &Path, primary: &Postgres) {
    // PostgreSQL refuses a folder that others may read.
    fs::set_permissions(folder, Permissions::from_mode(0o700)).expect("our own folder");
    programs.hand_over(folder);
    let mut copy = programs.command("pg_basebackup", folder);
    copy.args(["-d", &primary.url(), "--checkpoint=fast", "--write-recovery-conf", "-D"]).arg(folder);
    output(&mut copy);
}

fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).expect("our own folder") {
        let entry = entry.expect("our own folder");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed =
            if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        removed.expect("our own file");
    }
}
