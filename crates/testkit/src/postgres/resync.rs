//! How a server gets the data of another one.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use super::programs::Programs;
use crate::child_process::output;

/// How a former primary got the history of the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// `pg_rewind` copied what differs.
    Rewound,
    /// `pg_rewind` was not possible: a new base backup.
    CopiedAnew,
}

/// Makes the data of a server that does not run those of a standby of the primary, whatever they have that it does not have.
pub(super) fn resync(programs: &Programs, data: &Path, primary_url: &str) -> Resync {
    let mut rewind = programs.command("pg_rewind", data);
    rewind.args(["--write-recovery-conf", "--source-server", primary_url, "--target-pgdata"]).arg(data);
    let rewound = rewind.output().is_ok_and(|done| done.status.success());
    // Without a difference it writes nothing, and the server would start as a second primary.
    if rewound && data.join("standby.signal").is_file() {
        Resync::Rewound
    } else {
        empty(data);
        base_backup(programs, data, primary_url);
        Resync::CopiedAnew
    }
}

/// Copies a running server's data into `folder`, which then is a standby's.
pub(super) fn base_backup(programs: &Programs, folder: &Path, primary_url: &str) {
    // PostgreSQL refuses a folder that others may read.
    fs::set_permissions(folder, Permissions::from_mode(0o700)).expect("our own folder");
    programs.hand_over(folder);
    let mut copy = programs.command("pg_basebackup", folder);
    copy.args(["-d", primary_url, "--checkpoint=fast", "--write-recovery-conf", "-D"]).arg(folder);
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
